//! Runs the corpus and some mutations of it through every target.

use std::time::Duration;

use kubewright_fuzz::{driver::drive, targets::ALL};

#[test]
fn corpus_and_mutations_neither_panic_nor_hang() {
    for target in ALL {
        let summary = drive(target, 1, 200, Duration::from_secs(30));
        assert!(summary.is_ok(), "{}: {summary:?}", target.0);
    }
}
