//! Response bodies that all implementations read.

use crate::pods::{self, pod};

/// Number of events of a watch.
pub const EVENTS: usize = 20_000;
/// Number of Pods that those events change.
pub const PODS: usize = 2_000;

/// The lines of a watch that changes each of 2,000 Pods ten times.
pub fn watch_lines() -> impl Iterator<Item = String> + Send {
    (0..EVENTS).map(|i| {
        let object = pod(i % PODS).replacen(
            &format!("\"resourceVersion\":\"{}\"", 1_000_000 + i % PODS),
            &format!("\"resourceVersion\":\"{}\"", version(i)),
            1,
        );
        let kind = if i < PODS { "ADDED" } else { "MODIFIED" };
        format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
    })
}

fn version(event: usize) -> usize {
    2_000_000 + event
}

/// The version of the last event.
pub fn last_version() -> String {
    version(EVENTS - 1).to_string()
}

/// List of this many Pods in the order of their keys, as servers send it, piece by piece.
pub fn list(
    count: usize,
    applications: usize,
    pod: fn(usize) -> String,
) -> impl Iterator<Item = String> + Send {
    let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000000"},"items":["#;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|i| pods::key(*i, applications));
    let items = order.into_iter().enumerate();
    let items = items.map(move |(at, i)| format!("{}{}", if at > 0 { "," } else { "" }, pod(i)));
    std::iter::once(head.to_owned()).chain(items).chain(std::iter::once("]}".to_owned()))
}
