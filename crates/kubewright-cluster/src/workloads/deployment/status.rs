//! What a deployment says about itself.

use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet};

use super::{
    conditions::{self, AVAILABLE, DONE, PROGRESSING, REPLICA_FAILURE, TIMED_OUT},
    rollout::{Rollout, available},
};
use crate::objects::omit_zero;

/// Numbers and availability, without a word about progress.
pub(super) fn observed(rollout: &Rollout) -> DeploymentStatus {
    let sum = |number: fn(&ReplicaSet) -> i32| -> i32 { rollout.all().map(number).sum() };
    let actual = |set: &ReplicaSet| set.status.as_ref().map_or(0, |status| status.replicas);
    let ready = |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let has = sum(available);
    let before = rollout.deployment.status.clone().unwrap_or_default();
    // A set that has not counted them yet leaves the sum unknown.
    let ending = |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.terminating_replicas);
    let mut status = DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: omit_zero(sum(actual)),
        updated_replicas: omit_zero(rollout.new.as_ref().map_or(0, actual)),
        ready_replicas: omit_zero(sum(ready)),
        available_replicas: omit_zero(has),
        unavailable_replicas: omit_zero((rollout.total() - has).max(0)),
        terminating_replicas: Some(rollout.all().filter_map(ending).sum()),
        collision_count: before.collision_count,
        conditions: before.conditions,
    };
    let enough = has >= rollout.desired() - rollout.max_unavailable();
    let (flag, reason, message) = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    conditions::set(&mut status, conditions::new(AVAILABLE, flag, reason, message.into(), rollout.now));
    status
}

/// The same, with what can be said about progress and about sets that fail.
pub(super) fn progressed(rollout: &Rollout) -> DeploymentStatus {
    let mut status = observed(rollout);
    let before = rollout.deployment.status.clone().unwrap_or_default();
    if conditions::has_deadline(&rollout.deployment) {
        let settled =
            status.replicas == status.updated_replicas && conditions::has_reason(&before, PROGRESSING, DONE);
        if !settled {
            tell_progress(rollout, &before, &mut status);
        }
    } else {
        conditions::remove(&mut status, PROGRESSING);
    }
    let failures = |set: &ReplicaSet| {
        let conditions = set.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE))
            .cloned()
    };
    let failure = rollout.new.iter().chain(&rollout.old).find_map(failures);
    match failure {
        Some(failure) => conditions::set(&mut status, conditions::from_set(&failure)),
        None => conditions::remove(&mut status, REPLICA_FAILURE),
    }
    status
}

fn tell_progress(rollout: &Rollout, before: &DeploymentStatus, status: &mut DeploymentStatus) {
    let subject = match &rollout.new {
        Some(set) => format!("ReplicaSet \"{}\"", set.metadata.name.as_deref().unwrap_or_default()),
        None => format!("Deployment \"{}\"", rollout.deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    let now = rollout.now;
    if is_done(rollout, status) {
        let message = format!("{subject} has successfully progressed.");
        conditions::set(status, conditions::new(PROGRESSING, "True", DONE, message, now));
    } else if has_progressed(before, status) {
        let message = format!("{subject} is progressing.");
        let condition = conditions::new(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        conditions::refresh(status, condition);
    } else if conditions::is_timed_out(&rollout.deployment, status, now) {
        let message = format!("{subject} has timed out progressing.");
        conditions::set(status, conditions::new(PROGRESSING, "False", TIMED_OUT, message, now));
    }
}

/// Whether everything that is asked for is there, new and available.
fn is_done(rollout: &Rollout, status: &DeploymentStatus) -> bool {
    let desired = omit_zero(rollout.desired());
    status.updated_replicas == desired
        && status.replicas == desired
        && status.available_replicas == desired
        && status.observed_generation >= rollout.deployment.metadata.generation
}

/// Whether the last written status says that the rollout is done.
pub(super) fn is_complete(rollout: &Rollout) -> bool {
    rollout.deployment.status.as_ref().is_some_and(|status| is_done(rollout, status))
}

/// Whether there are more new pods, fewer old ones, or more that are ready or available, than there were.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let number = |value: Option<i32>| value.unwrap_or(0);
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(after.updated_replicas) > number(before.updated_replicas)
        || old(after) < old(before)
        || number(after.ready_replicas) > number(before.ready_replicas)
        || number(after.available_replicas) > number(before.available_replicas)
}
