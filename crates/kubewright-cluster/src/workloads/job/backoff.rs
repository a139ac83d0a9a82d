//! How long a job waits before it replaces failed pods: 10 seconds, 20, 40, up to ten minutes.
//!
//! Upstream remembers failures in memory; here they are counted from the pods, which stay until the job goes. A restarted
//! controller waits as long as one that never stopped.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{batch::v1::JobSpec, core::v1::Pod};

use super::{Sync, has_finalizer};
use crate::pod;

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_secs(600);

/// What is left to wait, if anything, after the failures since the last success.
pub(super) fn remaining(sync: &Sync, now: Timestamp) -> Option<Duration> {
    let ended = |pod: &&Pod| pod::phase(pod) == "Failed" || (has_finalizer(pod) && sync.is_failed(pod));
    let succeeded = sync.pods.iter().filter(|pod| pod::phase(pod) == "Succeeded");
    let last_success = succeeded.filter_map(finished_at).max();
    let failures: Vec<Timestamp> = sync.pods.iter().filter(ended).filter_map(finished_at).collect();
    let since: Vec<&Timestamp> =
        failures.iter().filter(|failed| last_success.is_none_or(|won| **failed > won)).collect();
    wait(since.len(), since.into_iter().max().copied(), now)
}

/// What is left to wait after so many failures, the last of them then.
pub(super) fn wait(failures: usize, last: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures.checked_sub(1)?).unwrap_or(u32::MAX).min(6);
    let delay = (FIRST * 2i32.pow(doublings)).min(LONGEST);
    let left = delay - now.duration_since(last?);
    (left > SignedDuration::ZERO).then(|| left.try_into().unwrap_or_default())
}

/// When a pod ended: by its containers, by its readiness, by its deletion, and, failing all that, when it began.
pub(super) fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let ends: Option<Vec<Timestamp>> = statuses
        .iter()
        .map(|status| status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0))
        .collect();
    let by_containers = ends.and_then(|ends| ends.into_iter().max());
    let by_readiness = || {
        let ready = pod::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let by_deletion = || {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        pod.metadata.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
    };
    let by_creation = || pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    by_containers.or_else(by_readiness).or_else(by_deletion).or_else(by_creation)
}

/// Whether the containers of pods that restart in place have done so too often.
pub(super) fn restarted_too_often(spec: &JobSpec, all: &[Pod], limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let alive = all.iter().filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let restarts: i32 = alive
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| {
            status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
        })
        .map(|status| status.restart_count)
        .sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

#[cfg(test)]
mod tests {
    use super::{super::super::testing::time, *};

    #[test]
    fn the_wait_doubles_with_every_failure() {
        let waits: Vec<u64> =
            (1..9).map(|failures| wait(failures, Some(time(0)), time(0)).unwrap().as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(wait(1, Some(time(0)), time(4)), Some(Duration::from_secs(6)));
        assert_eq!(wait(1, Some(time(0)), time(10)), None);
        assert_eq!(wait(0, None, time(0)), None);
    }
}
