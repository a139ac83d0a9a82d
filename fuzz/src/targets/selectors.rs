//! Label and field selectors, as text and as objects.

use kubewright_apiserver::registry::selector::{FieldSelector, LabelSelector};

use crate::report_outcome;

/// Runs the target.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let parsed = LabelSelector::parse(&text);
    report_outcome(parsed.as_ref().err().map_or("parsed", |why| why.as_str()));
    if let Ok(selector) = parsed {
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
}
