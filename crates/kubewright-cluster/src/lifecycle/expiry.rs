//! What disappears by itself: events after an hour.
//!
//! Upstream gives events a lease in etcd; here a sweep deletes them. Tokens need no sweep: the server stops believing
//! them when their time is over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kubewright::{
    client::ApiStatus,
    manager::{RunContext, Runnable, Stage, runnable_fn},
};
use tokio::time::{Instant, MissedTickBehavior};

use crate::ControllerContext;

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

/// The sweep, as a manager runs it.
pub fn runnable(cluster: &ControllerContext) -> impl Runnable {
    let client = cluster.clients().client();
    runnable_fn("event-expiry", Stage::Elected, move |cx: RunContext| async move {
        let mut ticks = tokio::time::interval_at(Instant::now() + PERIOD, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = cx.stop().cancelled() => return Ok(()),
                _ = ticks.tick() => {}
            }
            if let Err(error) = sweep(&client, cx.clock().now()).await {
                tracing::warn!(%error, "old events cannot be deleted; trying again in a minute");
            }
        }
    })
}

async fn sweep(client: &kube::Client, now: Timestamp) -> Result<(), kube::Error> {
    let events = kube::Api::<Event>::all(client.clone());
    let mut params = ListParams::default().limit(500);
    loop {
        let page = events.list(&params).await?;
        for event in page.items.iter().filter(|event| is_over(event, now)) {
            let meta = &event.metadata;
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let delete = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: meta.uid.clone(),
                    resource_version: meta.resource_version.clone(),
                }),
                ..DeleteParams::default()
            };
            let name = meta.name.as_deref().unwrap_or_default();
            // One that was written again meanwhile lives on.
            match kube::Api::<Event>::namespaced(client.clone(), namespace).delete(name, &delete).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
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
