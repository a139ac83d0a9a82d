//! What disappears by itself: events after an hour.
//!
//! Upstream gives events a lease in etcd; here a sweep deletes them. Tokens need no sweep: the server stops believing
//! them when their time is over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;

/// How long an event stays after it was last written.
pub const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);
/// The time between two sweeps.
pub const PERIOD: Duration = Duration::from_mins(1);

/// When an event was last written, as far as it says.
pub fn last_seen(event: &Event) -> Option<Timestamp> {
    let series =
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let micro = event.event_time.as_ref().map(|time| time.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    [series, last, micro, created].into_iter().flatten().max()
}

/// Whether an event's time is over.
pub fn is_over(event: &Event, now: Timestamp) -> bool {
    last_seen(event).is_some_and(|seen| seen + EVENT_TTL <= now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_lives_an_hour_from_its_last_repetition() {
        let event: Event = serde_json::from_value(json!({
            "metadata": {"name": "e", "creationTimestamp": "2026-08-01T00:00:00Z"},
            "involvedObject": {}, "lastTimestamp": "2026-08-01T00:30:00Z",
        }))
        .unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(!is_over(&event, at("2026-08-01T01:29:59Z")));
        assert!(is_over(&event, at("2026-08-01T01:30:00Z")));
    }
}
