//! Documents of any bytes are refused or read, and what was read can be written and is read the same again.
#![no_main]

use kubewright_apiserver::protobuf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = protobuf::decode(bytes) else { return };
    let written = protobuf::encode(&object).expect("what was read has a built-in kind");
    assert_eq!(protobuf::decode(&written).expect("what was written can be read"), object);
});
