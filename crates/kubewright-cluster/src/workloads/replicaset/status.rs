//! What a `ReplicaSet` says about itself.

use crate::{
    objects::{self, count, omit_zero},
    pod,
};
use std::borrow::Borrow;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
    core::v1::Pod,
};

/// The condition that tells of pods which could not be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why pods could not be created or deleted in this pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `FailedCreate` or `FailedDelete`.
    pub(crate) reason: &'static str,
    /// What the server said.
    pub(crate) message: String,
}

/// The status of a set with these pods, after a pass that may have failed.
pub(crate) fn status(
    set: &ReplicaSet,
    owned: &[impl Borrow<Pod>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = &set.spec;
    let template = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let owned = || owned.iter().map(Borrow::borrow);
    let active: Vec<&Pod> = owned().filter(|pod| pod::is_active(pod)).collect();
    let labelled = |pod: &&&Pod| {
        let labels = pod.metadata.labels.as_ref();
        template
            .into_iter()
            .flatten()
            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    let ready: Vec<&Pod> = active.iter().copied().filter(|pod| pod::is_ready(pod)).collect();
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let before = set.status.clone().unwrap_or_default();
    let mut conditions = before.conditions.unwrap_or_default();
    let known = conditions.iter().any(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE));
    match failure {
        Some(failure) if !known => conditions.push(ReplicaSetCondition {
            type_: Some(REPLICA_FAILURE.into()),
            status: Some("True".into()),
            last_transition_time: Some(objects::timestamp(now)),
            reason: Some(failure.reason.into()),
            message: Some(failure.message.clone()),
        }),
        None if known => conditions.retain(|condition| condition.type_.as_deref() != Some(REPLICA_FAILURE)),
        _ => {}
    }
    ReplicaSetStatus {
        replicas: count(&active),
        fully_labeled_replicas: omit_zero(count(active.iter().filter(labelled))),
        ready_replicas: omit_zero(count(&ready)),
        available_replicas: omit_zero(count(
            ready.iter().filter(|pod| pod::is_available(pod, min_ready, now)),
        )),
        terminating_replicas: Some(count(owned().filter(|pod| pod::is_ending(pod)))),
        observed_generation: set.metadata.generation,
        conditions: (!conditions.is_empty()).then_some(conditions),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::testing::{controlled, pod, ready, replica_set, time},
        *,
    };

    #[test]
    fn zeros_are_left_out_but_for_replicas_and_terminating_ones() {
        let status = status(&replica_set("rs", 2), &[] as &[Pod], None, time(0));
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1})
        );
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_for_long_enough() {
        let mut set = replica_set("rs", 1);
        set.spec.min_ready_seconds = Some(10);
        let pod = ready(controlled(pod("a"), &set.metadata), time(100));
        let early = status(&set, std::slice::from_ref(&pod), None, time(109));
        assert_eq!((early.ready_replicas, early.available_replicas), (Some(1), None));
        assert_eq!(status(&set, &[pod], None, time(110)).available_replicas, Some(1));
    }

    #[test]
    fn a_failure_is_a_condition_until_a_pass_succeeds() {
        let mut set = replica_set("rs", 1);
        let failure = Failure { reason: "FailedCreate", message: "quota".into() };
        set.status = Some(status(&set, &[] as &[Pod], Some(&failure), time(0)));
        let later = status(&set, &[] as &[Pod], Some(&failure), time(5));
        let condition = &later.conditions.as_ref().unwrap()[0];
        assert_eq!(
            condition.last_transition_time,
            Some(objects::timestamp(time(0))),
            "the first failure's time stays"
        );
        assert_eq!(status(&set, &[] as &[Pod], None, time(6)).conditions, None);
    }

    #[test]
    fn terminating_pods_are_counted_apart() {
        let set = replica_set("rs", 1);
        let mut going = controlled(pod("a"), &set.metadata);
        going.metadata.deletion_timestamp = Some(objects::timestamp(time(0)));
        let status = status(&set, &[going], None, time(0));
        assert_eq!((status.replicas, status.terminating_replicas), (0, Some(1)));
    }
}
