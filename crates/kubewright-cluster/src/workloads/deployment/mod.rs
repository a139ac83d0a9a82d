//! The `Deployment` controller: one `ReplicaSet` per template, and an orderly way from one to the next.
//!
//! [`plan`] reads best from the top: what is asked for decides between scaling, rolling over and recreating; each of
//! them moves replicas between sets in memory; in the end the sets that changed are written, and then the status.
//!
//! The order of writes is upstream's where it can be seen: a new set is created, its revision and a first condition are
//! written, then everything else.

mod annotations;
mod conditions;
use crate::objects;
pub(crate) mod reconcile;
mod recreate;
mod rolling;
mod rollout;
mod scaling;
mod status;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};

use super::{
    claim::{self, Claim},
    selector,
    step::{Note, Step},
};
use conditions::creation_failed;
use rollout::{Rollout, same_template};

/// What a pass does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
    /// When to look again although nothing happens.
    pub(crate) after: Option<Duration>,
}

/// The sets of a deployment, and what is to be done about others that it takes or lets go.
pub(crate) fn claim_sets(deployment: &Deployment, all: &[ReplicaSet]) -> (Vec<ReplicaSet>, Vec<Step>) {
    let (mut owned, mut steps) = (Vec::new(), Vec::new());
    let spec = &deployment.spec;
    let owner = &deployment.metadata;
    let reference = objects::controller_reference::<Deployment>(owner);
    for set in all {
        match claim::claim(owner, &spec.selector, &set.metadata) {
            Claim::Keep => owned.push(set.clone()),
            Claim::Adopt => {
                let patch = claim::adoption(&set.metadata, &reference, None);
                steps.push(Step::Patch(set.clone().into(), patch));
                let mut adopted = set.clone();
                adopted.metadata.owner_references.get_or_insert_default().push(reference.clone());
                // The patch will have changed it; without a version the update does not insist on an old one.
                adopted.metadata.resource_version = None;
                owned.push(adopted);
            }
            Claim::Release => {
                let patch = claim::release(&set.metadata, owner, None);
                steps.push(Step::Patch(set.clone().into(), patch));
            }
            Claim::Ignore => {}
        }
    }
    (owned, steps)
}

/// What to do about a deployment that has these sets. `all_pods` are the pods of those sets, if it
/// [is recreated](is_recreated).
pub(crate) fn plan(deployment: &Deployment, sets: Vec<ReplicaSet>, all_pods: &[Pod], now: Timestamp) -> Plan {
    let spec = &deployment.spec;
    if selector::is_everything(&spec.selector) {
        return selects_everything(deployment);
    }
    let mut rollout = Rollout::new(deployment, sets, now);
    if deployment.metadata.deletion_timestamp.is_some() {
        rollout.find_new_set();
        return rollout.finish(status::observed);
    }
    conditions::note_pause(&mut rollout);
    if spec.paused == Some(true) {
        rollout.find_new_set();
        scaling::scale(&mut rollout);
        rollout.clean_up();
        return rollout.finish(status::observed);
    }
    rollout.find_new_set();
    if scaling::was_scaled(&rollout) {
        scaling::scale(&mut rollout);
        return rollout.finish(status::observed);
    }
    if rollout.is_recreate() {
        recreate::roll(&mut rollout, all_pods);
    } else {
        rolling::roll(&mut rollout);
    }
    rollout.finish(status::progressed)
}

/// Whether all old Pods go before new ones come; only then a plan looks at Pods.
pub(crate) fn is_recreated(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// A selector that chooses everything is refused by word, not by deed.
fn selects_everything(deployment: &Deployment) -> Plan {
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    let mut steps = vec![Step::Say(Note::warning("SelectingAll", message))];
    let mut seen = deployment.clone();
    let status = seen.status.get_or_insert_default();
    if status.observed_generation < deployment.metadata.generation {
        status.observed_generation = deployment.metadata.generation;
        steps.push(Step::Status(seen.into()));
    }
    Plan { steps, after: None }
}

#[cfg(test)]
mod tests;
