//! Pod helpers that all controllers share: phase, conditions, node, and Pods from templates.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::objects::controller_reference;

/// The phase; empty for a Pod that the server has not stored yet.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the Pod is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether all containers have terminated and none will be restarted.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the Pod counts as a replica: neither terminal nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_terminating(pod)
}

/// Whether the Pod is being deleted and still runs, as `terminatingReplicas` counts.
pub(crate) fn is_ending(pod: &Pod) -> bool {
    is_terminating(pod) && !is_terminal(pod)
}

/// The condition of this type.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the pod is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// How long until the pod has been ready for `min_ready` seconds; `None` when it is not ready.
pub(crate) fn until_available(pod: &Pod, min_ready: i32, now: Timestamp) -> Option<SignedDuration> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready <= 0 {
        return Some(SignedDuration::ZERO);
    }
    let at = ready_since(pod)?.checked_add(SignedDuration::from_secs(min_ready.into())).ok()?;
    Some(at.duration_since(now).max(SignedDuration::ZERO))
}

/// Whether the pod has been ready for `min_ready` seconds.
pub(crate) fn is_available(pod: &Pod, min_ready: i32, now: Timestamp) -> bool {
    until_available(pod, min_ready, now).is_some_and(|left| left.is_zero())
}

/// The soonest moment at which one of the ready pods will have been ready for long enough, as a delay from now.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready: i32,
    now: Timestamp,
) -> Option<std::time::Duration> {
    let left = pods.into_iter().filter_map(|pod| until_available(pod, min_ready, now));
    left.filter(|left| !left.is_zero()).min().and_then(|left| left.try_into().ok())
}

/// The node that the pod is bound to.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// A pod as the template of `owner` describes it, with a name that the server makes up.
pub(crate) fn from_template<K: k8s_openapi::Resource>(owner: &ObjectMeta, template: &PodTemplateSpec) -> Pod {
    let described = template.metadata.as_ref();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", owner.name.as_deref().unwrap_or_default())),
            namespace: owner.namespace.clone(),
            labels: described.and_then(|meta| meta.labels.clone()),
            annotations: described.and_then(|meta| meta.annotations.clone()),
            finalizers: described.and_then(|meta| meta.finalizers.clone()),
            owner_references: Some(vec![controller_reference::<K>(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
