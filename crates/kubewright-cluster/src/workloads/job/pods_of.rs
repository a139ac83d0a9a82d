//! The pods of a job: what they look like, and which of them go first.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::{Value, json};

use super::{super::replicaset::deletion_order, Sync, per_index};
use crate::{objects, pod};

/// What a pod carries until its end has been counted.
pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label of a pod's index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Whether the end of a pod has still to be counted.
pub(crate) fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// The patch that takes the finalizer off.
pub(crate) fn without_finalizer(meta: &ObjectMeta) -> Value {
    json!({"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}})
}

/// The index of a pod.
pub(super) fn index(pod: &Pod) -> Option<i32> {
    objects::annotation(&pod.metadata, INDEX)?.parse().ok().filter(|index| *index >= 0)
}

/// A pod of the job, of an index if it has one.
pub(super) fn pod(sync: &Sync, index: Option<i32>) -> Pod {
    let owner = &sync.job.metadata;
    let mut pod = pod::from_template::<Job>(owner, &sync.spec.template);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let Some(index) = index else { return pod };
    let job = owner.name.as_deref().unwrap_or_default();
    pod.metadata.generate_name = Some(format!("{job}-{index}-"));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let body = pod.spec.get_or_insert_default();
    body.hostname = Some(format!("{job}-{index}"));
    let containers = body.init_containers.iter_mut().flatten().chain(&mut body.containers);
    for container in containers {
        let env = container.env.get_or_insert_default();
        if !env.iter().any(|known| known.name == "JOB_COMPLETION_INDEX") {
            env.push(index_variable());
        }
    }
    if sync.spec.backoff_limit_per_index.is_some() {
        per_index::annotate(sync, &mut pod, index);
    }
    pod
}

fn index_variable() -> EnvVar {
    EnvVar {
        name: "JOB_COMPLETION_INDEX".into(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: format!("metadata.labels['{INDEX}']"),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// The lowest indexes that have no pod and are not done.
pub(super) fn pending_indexes(sync: &Sync, active: &[Pod], most: usize) -> Vec<i32> {
    let taken: BTreeSet<i32> = active.iter().filter_map(|pod| sync.index(pod)).collect();
    let failed = |index: &i32| sync.failed_indexes.as_ref().is_some_and(|failed| failed.contains(*index));
    let open = (0..sync.completions())
        .filter(|index| !taken.contains(index) && !sync.succeeded_indexes.contains(*index));
    open.filter(|index| !failed(index)).take(most).collect()
}

/// At least so many active pods to remove: of an indexed job also those without an index or with one that is taken.
pub(super) fn for_removal(sync: &Sync, active: &[Pod], at_least: usize) -> Vec<Pod> {
    let all: Vec<&Pod> = active.iter().collect();
    let mut order: Vec<&Pod> = deletion_order(&all, &[], sync.now);
    let mut going: Vec<&Pod> = Vec::new();
    if sync.is_indexed() {
        let mut seen = BTreeSet::new();
        // Of two pods of an index the one that got further stays.
        let mut kept = Vec::new();
        for pod in order.into_iter().rev() {
            match sync.index(pod) {
                Some(index) if seen.insert(index) => kept.push(pod),
                _ => going.push(pod),
            }
        }
        kept.reverse();
        order = kept;
    }
    let more = at_least.saturating_sub(going.len());
    going.extend(order.into_iter().take(more));
    going.into_iter().cloned().collect()
}
