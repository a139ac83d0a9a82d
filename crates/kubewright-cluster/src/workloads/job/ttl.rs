//! Jobs that go by themselves some time after they have finished.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use super::is_finished;

/// What is to be done about a job's time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// It has none, or has not finished.
    None,
    /// It is over in so long.
    In(Duration),
    /// It is over.
    Over,
}

/// How long a finished job still has.
pub(crate) fn left(job: &Job, now: Timestamp) -> Ttl {
    let seconds = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
    let finish = is_finished(job).and_then(|finish| finish.last_transition_time.as_ref());
    let (Some(seconds), Some(finish), None) = (seconds, finish, &job.metadata.deletion_timestamp) else {
        return Ttl::None;
    };
    let left = SignedDuration::from_secs(seconds.into()) - now.duration_since(finish.0);
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Ttl::In(left),
        _ => Ttl::Over,
    }
}
