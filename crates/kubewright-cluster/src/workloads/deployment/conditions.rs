//! The conditions of a deployment, and the rules by which they change.
//!
//! A condition whose status and reason stay the same is left as it is. One that changes goes to the end of the list; its
//! transition time is new only if its status is.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSetCondition};

use super::rollout::Rollout;
use crate::objects::timestamp;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reason of a rollout that has ended well.
pub(super) const DONE: &str = "NewReplicaSetAvailable";
/// The reason of a rollout that has made no progress for too long.
pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

pub(super) fn get<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some(kind))
}

pub(super) fn has_reason(status: &DeploymentStatus, kind: &str, reason: &str) -> bool {
    get(status, kind).is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

pub(super) fn new(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: Some(kind.to_owned()),
        status: Some(status.to_owned()),
        last_update_time: Some(timestamp(now)),
        last_transition_time: Some(timestamp(now)),
        reason: Some(reason.to_owned()),
        message: Some(message),
    }
}

pub(super) fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = status.conditions.as_mut() {
        conditions.retain(|condition| condition.type_.as_deref() != Some(kind));
        if conditions.is_empty() {
            status.conditions = None;
        }
    }
}

/// Sets a condition unless one of the same status and reason is there.
pub(super) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let kind = condition.type_.clone().unwrap_or_default();
    if let Some(known) = get(status, &kind) {
        if known.status == condition.status && known.reason == condition.reason {
            return;
        }
        if known.status == condition.status {
            condition.last_transition_time.clone_from(&known.last_transition_time);
        }
    }
    remove(status, &kind);
    status.conditions.get_or_insert_default().push(condition);
}

/// As [`set`], but a condition of the same reason gets a new update time: there was progress again.
pub(super) fn refresh(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let kind = condition.type_.clone().unwrap_or_default();
    if let Some(known) = get(status, &kind)
        && known.status == condition.status
    {
        condition.last_transition_time.clone_from(&known.last_transition_time);
    }
    remove(status, &kind);
    status.conditions.get_or_insert_default().push(condition);
}

/// The failure of a set as the deployment tells it.
pub(super) fn from_set(condition: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        last_update_time: condition.last_transition_time.clone(),
        last_transition_time: condition.last_transition_time.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    }
}

/// Whether progress is to be watched at all.
pub(super) fn has_deadline(deployment: &Deployment) -> bool {
    deadline(deployment).is_some()
}

/// The largest number stands for "never".
fn deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

fn note(deployment: &mut Deployment, status: &str, reason: &str, message: String, now: Timestamp) {
    if has_deadline(deployment) {
        let condition = new(PROGRESSING, status, reason, message, now);
        set(deployment.status.get_or_insert_default(), condition);
    }
}

/// Pausing and resuming stop the watch over progress and start it anew.
pub(super) fn note_pause(rollout: &mut Rollout) {
    let status = rollout.deployment.status.clone().unwrap_or_default();
    if has_reason(&status, PROGRESSING, TIMED_OUT) {
        return;
    }
    let (paused, known) = (rollout.spec.paused == Some(true), has_reason(&status, PROGRESSING, PAUSED));
    let now = rollout.now;
    if paused && !known {
        note(&mut rollout.deployment, "Unknown", PAUSED, "Deployment is paused".into(), now);
    } else if !paused && known {
        note(&mut rollout.deployment, "Unknown", "DeploymentResumed", "Deployment is resumed".into(), now);
    }
}

/// A set was created.
pub(super) fn created(deployment: &mut Deployment, name: &str, now: Timestamp) {
    let message = format!("Created new replica set \"{name}\"");
    note(deployment, "True", "NewReplicaSetCreated", message, now);
}

/// A set was found that nobody has told of yet.
pub(super) fn found(deployment: &mut Deployment, name: &str, now: Timestamp) {
    if deployment.status.as_ref().and_then(|status| get(status, PROGRESSING)).is_none() {
        note(deployment, "True", "FoundNewReplicaSet", format!("Found new replica set \"{name}\""), now);
    }
}

/// The deployment with the news that its set could not be created.
pub(super) fn creation_failed(deployment: &Deployment, message: &str, now: Timestamp) -> Deployment {
    let mut told = deployment.clone();
    note(&mut told, "False", "ReplicaSetCreateError", message.to_owned(), now);
    told
}

/// Whether there was no progress for longer than the deadline.
pub(super) fn is_timed_out(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> bool {
    let Some(condition) = get(status, PROGRESSING) else { return false };
    match condition.reason.as_deref() {
        Some(DONE) => return false,
        Some(TIMED_OUT) => return true,
        _ => {}
    }
    expiry(deployment, condition).is_some_and(|at| now > at)
}

fn expiry(deployment: &Deployment, condition: &DeploymentCondition) -> Option<Timestamp> {
    let updated = condition.last_update_time.as_ref()?.0;
    updated.checked_add(deadline(deployment)?).ok()
}

/// When to look at a rollout again that may be stuck: a second after its deadline.
pub(super) fn next_look(deployment: &Deployment, now: Timestamp) -> Option<Duration> {
    let condition = deployment.status.as_ref().and_then(|status| get(status, PROGRESSING))?;
    let settled = matches!(condition.reason.as_deref(), Some(DONE | TIMED_OUT | PAUSED));
    if settled || deployment.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let left = expiry(deployment, condition)?.duration_since(now).max(SignedDuration::ZERO);
    (left + SignedDuration::from_secs(1)).try_into().ok()
}
