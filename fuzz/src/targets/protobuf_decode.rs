//! Documents of any bytes are refused or read, and what was read can be written and is read the same again.

use kubewright_schema::protobuf;

use crate::saw;

/// The target.
pub fn run(bytes: &[u8]) {
    let object = match protobuf::decode(bytes) {
        Ok(object) => object,
        Err(why) => return saw(&why.to_string()),
    };
    let written = protobuf::encode(&object).expect("what was read has a built-in kind");
    assert_eq!(protobuf::decode(&written).expect("what was written can be read"), object);
}
