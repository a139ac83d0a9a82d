//! Selectors of labels and fields, as text and as objects.
#![no_main]

use kubewright_apiserver::registry::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    if let Ok(selector) = LabelSelector::parse(&text) {
        let empty = selector.matches(|_| None);
        if selector.is_empty() {
            assert!(empty, "a selector of nothing matches everything");
        }
        selector.matches(|key| text.get(..key.len()));
    }
    if let Ok(selector) = FieldSelector::parse(&text) {
        selector.required("metadata.name");
    }
    if let Ok(value) = serde_json::from_slice(input)
        && let Some(selector) = LabelSelector::from_object(&value)
    {
        selector.matches(|_| Some("a"));
    }
});
