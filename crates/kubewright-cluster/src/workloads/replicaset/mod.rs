//! The `ReplicaSet` controller: as many pods as asked for.
//!
//! Pods that match the selector and belong to nobody are adopted, pods that stopped matching are let go. Failed pods are
//! kept but not counted. The status of a pass is computed from the pods it began with, as upstream does: what it
//! created shows up when the cache tells of it.

mod rank;
pub(crate) mod reconcile;
mod status;

use std::{
    borrow::{Borrow, Cow},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

use crate::{objects, pod};
pub(crate) use rank::deletion_order;

use super::{
    claim::{self, Claim},
    step::Step,
};
use status::{Failure, status};

/// At most so many pods are created or deleted in one pass.
pub(crate) const BURST: usize = 500;

/// What a pass does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan<'a> {
    /// Adoptions and releases, before anything else.
    pub(crate) claims: Vec<Step>,
    /// Pods to create, in batches that begin with one and double.
    pub(crate) create: Vec<Pod>,
    /// Pods to delete.
    pub(crate) delete: Vec<Pod>,
    /// The Pods of this set, including terminal ones.
    pub(crate) owned: Vec<Cow<'a, Pod>>,
}

/// Sorts Pods into those that are the owner's and what is to be done about others.
pub(crate) fn claim_pods<'a, K: k8s_openapi::Resource>(
    owner: &ObjectMeta,
    selector: &LabelSelector,
    all: &'a [impl Borrow<Pod>],
    finalizer: Option<&str>,
    wanted: impl Fn(&Pod) -> bool,
) -> (Vec<Cow<'a, Pod>>, Vec<Step>) {
    let reference = objects::controller_reference::<K>(owner);
    let (mut owned, mut steps) = (Vec::with_capacity(all.len()), Vec::new());
    for pod in all.iter().map(Borrow::borrow) {
        match claim::claim(owner, selector, &pod.metadata) {
            Claim::Keep => owned.push(Cow::Borrowed(pod)),
            Claim::Adopt if wanted(pod) => {
                let patch = claim::adoption(&pod.metadata, &reference, finalizer);
                steps.push(Step::Patch(pod.clone().into(), patch));
                let mut adopted = pod.clone();
                adopted.metadata.owner_references.get_or_insert_default().push(reference.clone());
                if let Some(finalizer) = finalizer {
                    adopted.metadata.finalizers.get_or_insert_default().push(finalizer.to_owned());
                }
                owned.push(Cow::Owned(adopted));
            }
            Claim::Release if wanted(pod) => {
                let patch = claim::release(&pod.metadata, owner, finalizer);
                steps.push(Step::Patch(pod.clone().into(), patch));
            }
            Claim::Adopt | Claim::Release | Claim::Ignore => {}
        }
    }
    (owned, steps)
}

/// What to do about a set. `all` are the Pods of its namespace that may be its own, `related` those of sets with the same
/// controller, which scaling down spreads over nodes.
pub(crate) fn plan<'a>(
    set: &ReplicaSet,
    all: &'a [impl Borrow<Pod>],
    related: &[Arc<Pod>],
    now: Timestamp,
) -> Plan<'a> {
    let spec = &set.spec;
    // A Pod that is terminal or being deleted is neither adopted nor released: it is no replica any more.
    let (owned, claims) = claim_pods::<ReplicaSet>(&set.metadata, &spec.selector, all, None, pod::is_active);
    let (mut create, mut delete) = (Vec::new(), Vec::new());
    if set.metadata.deletion_timestamp.is_none() {
        let active: Vec<&Pod> = owned.iter().map(Borrow::borrow).filter(|pod| pod::is_active(pod)).collect();
        let want = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        if active.len() < want {
            let template = spec.template.clone().unwrap_or_default();
            let pod = pod::from_template::<ReplicaSet>(&set.metadata, &template);
            create = vec![pod; (want - active.len()).min(BURST)];
        } else if active.len() > want {
            let surplus = (active.len() - want).min(BURST);
            delete = deletion_order(&active, related, now).into_iter().take(surplus).cloned().collect();
        }
    }
    Plan { claims, create, delete, owned }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{controlled, pod, replica_set, time},
        *,
    };

    #[test]
    fn missing_pods_are_created_from_the_template() {
        let set = replica_set("rs", 3);
        let pods = [controlled(pod("a"), &set.metadata)];
        let plan = plan(&set, &pods, &[], time(0));
        assert_eq!(plan.create.len(), 2);
        assert!(plan.delete.is_empty() && plan.claims.is_empty());
        let made = &plan.create[0];
        assert_eq!(made.metadata.generate_name.as_deref(), Some("rs-"));
        assert_eq!(objects::label(&made.metadata, "app"), Some("web"));
        let owner = objects::controller_of(&made.metadata).unwrap();
        assert_eq!((owner.kind.as_str(), owner.block_owner_deletion), ("ReplicaSet", Some(true)));
    }

    #[test]
    fn failed_pods_are_kept_and_replaced() {
        let set = replica_set("rs", 1);
        let mut failed = controlled(pod("a"), &set.metadata);
        failed.status.get_or_insert_default().phase = Some("Failed".into());
        let pods = [failed];
        let plan = plan(&set, &pods, &[], time(0));
        assert_eq!((plan.create.len(), plan.delete.len(), plan.owned.len()), (1, 0, 1));
    }

    #[test]
    fn an_orphan_is_adopted_and_counted_and_a_surplus_goes() {
        let set = replica_set("rs", 1);
        let mine = controlled(pod("a"), &set.metadata);
        let pods = [pod("orphan")];
        let result = plan(&set, &pods, &[], time(0));
        assert_eq!((result.claims.len(), result.create.len()), (1, 0));
        let pods = [mine, pod("orphan")];
        let result = plan(&set, &pods, &[], time(0));
        assert_eq!((result.claims.len(), result.delete.len()), (1, 1));
    }

    #[test]
    fn a_pod_that_no_longer_matches_is_released_and_replaced() {
        let set = replica_set("rs", 1);
        let mut stray = controlled(pod("a"), &set.metadata);
        stray.metadata.labels = None;
        let pods = [stray];
        let plan = plan(&set, &pods, &[], time(0));
        let Step::Patch(_, patch) = &plan.claims[0] else { panic!("{:?}", plan.claims) };
        assert_eq!(patch["metadata"]["ownerReferences"][0]["$patch"], "delete");
        assert_eq!(plan.create.len(), 1);
    }

    #[test]
    fn a_set_that_is_going_creates_nothing() {
        let mut set = replica_set("rs", 2);
        set.metadata.deletion_timestamp = Some(objects::timestamp(time(0)));
        let pods = [pod("orphan")];
        let plan = plan(&set, &pods, &[], time(0));
        assert!(plan.create.is_empty() && plan.claims.is_empty());
    }

    #[test]
    fn a_burst_is_bounded() {
        assert_eq!(plan(&replica_set("rs", 2000), &[] as &[Pod], &[], time(0)).create.len(), BURST);
    }
}
