//! Arbitrary bytes as protobuf: refused or decoded, and encoding and decoding again gives the same.

use kubewright_schema::protobuf;

use crate::report_outcome;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let object = match protobuf::decode(bytes) {
        Ok(object) => object,
        Err(why) => return report_outcome(&why.to_string()),
    };
    let written = protobuf::encode(&object).expect("what was read has a built-in kind");
    assert_eq!(protobuf::decode(&written).expect("what was written can be read"), object);
}
