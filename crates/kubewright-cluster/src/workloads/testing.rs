//! Objects for the tests of the planning functions.

use crate::objects::timestamp;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetSpec},
        core::v1::{Container, Pod, PodCondition, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};

/// A moment, in seconds after some beginning.
pub(crate) fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub(crate) fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some("default".into()),
        uid: Some(format!("uid-{name}")),
        generation: Some(1),
        creation_timestamp: Some(timestamp(time(0))),
        labels: Some([("app".to_owned(), "web".to_owned())].into()),
        ..ObjectMeta::default()
    }
}

pub(crate) fn template() -> PodTemplateSpec {
    let container = Container { name: "c".into(), image: Some("nginx:1".into()), ..Container::default() };
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some([("app".to_owned(), "web".to_owned())].into()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    }
}

pub(crate) fn selector() -> LabelSelector {
    LabelSelector {
        match_labels: Some([("app".to_owned(), "web".to_owned())].into()),
        match_expressions: None,
    }
}

/// A pending pod that carries the label of [`selector`].
pub(crate) fn pod(name: &str) -> Pod {
    let mut pod = Pod { metadata: meta(name), spec: template().spec, status: None };
    pod.status.get_or_insert_default().phase = Some("Pending".into());
    pod
}

pub(crate) fn controlled(mut pod: Pod, owner: &ObjectMeta) -> Pod {
    pod.metadata.owner_references = Some(vec![OwnerReference {
        uid: owner.uid.clone().unwrap(),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    pod
}

pub(crate) fn bound(mut pod: Pod, node: &str) -> Pod {
    pod.spec.as_mut().unwrap().node_name = Some(node.into());
    pod
}

pub(crate) fn in_phase(mut pod: Pod, phase: &str) -> Pod {
    pod.status.get_or_insert_default().phase = Some(phase.into());
    pod
}

pub(crate) fn running(pod: Pod) -> Pod {
    in_phase(pod, "Running")
}

pub(crate) fn going(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(timestamp(time(0)));
    pod
}

/// A running pod that is ready since then.
pub(crate) fn ready(pod: Pod, since: Timestamp) -> Pod {
    let mut pod = running(pod);
    pod.status.get_or_insert_default().conditions = Some(vec![PodCondition {
        type_: "Ready".into(),
        status: "True".into(),
        last_transition_time: Some(timestamp(since)),
        ..PodCondition::default()
    }]);
    pod
}

pub(crate) fn created_at(mut pod: Pod, then: Timestamp) -> Pod {
    pod.metadata.creation_timestamp = Some(timestamp(then));
    pod
}

pub(crate) fn replica_set(name: &str, replicas: i32) -> ReplicaSet {
    ReplicaSet {
        metadata: meta(name),
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            selector: selector(),
            template: Some(template()),
            min_ready_seconds: None,
        },
        status: None,
    }
}
