//! Arbitrary bytes as input of the decoder: no panic, no hang, each error has a position, and objects decoded
//! without a type survive encoding and decoding.

use kubewright::scheme::{Scheme, to_yaml};

use crate::report_outcome;

/// Runs the target.
pub fn run(input: &[u8]) {
    let scheme = Scheme::kubernetes();
    for object in scheme.decode(input) {
        match object {
            Ok(object) => drop(to_yaml(&object)),
            Err(error) => {
                report_outcome(&error.to_string());
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
