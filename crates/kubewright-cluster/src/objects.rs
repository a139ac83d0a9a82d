//! Small questions about built-in objects that several controllers ask.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Pod, PodCondition},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, OwnerReference},
    },
};
use kube::core::{Selector, SelectorExt};
use kubewright_apiserver::registry::quantity;

/// The name under which the built-in controllers own fields.
pub(crate) const FIELD_MANAGER: &str = "kube-controller-manager";

/// A pod's condition of some type.
pub(crate) fn pod_condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// Whether a pod's `Ready` condition is true.
pub(crate) fn pod_ready(pod: &Pod) -> bool {
    pod_condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// A pod's phase; empty when it has none.
pub(crate) fn pod_phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether a pod has run to its end.
pub(crate) fn pod_finished(pod: &Pod) -> bool {
    matches!(pod_phase(pod), "Succeeded" | "Failed")
}

/// The node that a pod is bound to.
pub(crate) fn pod_node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The reference to an object's controller.
pub(crate) fn controller_of(owners: Option<&Vec<OwnerReference>>) -> Option<&OwnerReference> {
    owners?.iter().find(|owner| owner.controller == Some(true))
}

/// Whether a label selector matches; one that cannot be read matches nothing, and so does none at all.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(Ok(selector)) = selector.map(|selector| Selector::try_from(selector.clone())) else {
        return false;
    };
    let empty = BTreeMap::new();
    selector.matches(labels.unwrap_or(&empty))
}

/// Whether every label of a plain selector is there. An empty selector matches nothing here: a Service without one has
/// no pods.
pub(crate) fn selects_all(
    selector: Option<&BTreeMap<String, String>>,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return false };
    let Some(labels) = labels else { return false };
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// A quantity in thousandths; what cannot be read is none.
pub(crate) fn thousandths(quantity: Option<&Quantity>) -> i128 {
    quantity.and_then(|quantity| quantity::parse_text(&quantity.0)).unwrap_or(0)
}
