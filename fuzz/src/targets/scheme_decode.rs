//! Any bytes at all through the decoder: it must neither panic nor hang, every error must have a place, and what was
//! decoded without a type must survive being written and read again.

use kubewright::scheme::{Scheme, to_yaml};

use crate::saw;

/// The target.
pub fn run(input: &[u8]) {
    let scheme = Scheme::kubernetes();
    for object in scheme.decode(input) {
        match object {
            Ok(object) => drop(to_yaml(&object)),
            Err(error) => {
                saw(&error.to_string());
                assert!(error.location().line() > 0, "{error}");
            }
        }
    }
    let decoder = scheme.decoder().lenient().unstructured();
    for object in decoder.decode(input).flatten() {
        let written = to_yaml(&object).expect("a decoded object has a kind");
        let read =
            decoder.decode(&written).next().expect("one object was written").expect("it is well formed");
        assert_eq!(written, to_yaml(&read).expect("a decoded object has a kind"));
    }
}
