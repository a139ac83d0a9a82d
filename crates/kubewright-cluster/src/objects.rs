//! Helpers for built-in objects that several controllers use.

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

/// Field manager of the built-in controllers.
pub(crate) const FIELD_MANAGER: &str = "kube-controller-manager";

/// Returns the Pod's condition of this type.
pub(crate) fn pod_condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// Whether the Pod's `Ready` condition is true.
pub(crate) fn pod_ready(pod: &Pod) -> bool {
    pod_condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// The Pod's phase; empty if it has none.
pub(crate) fn pod_phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the Pod has succeeded or failed.
pub(crate) fn pod_finished(pod: &Pod) -> bool {
    matches!(pod_phase(pod), "Succeeded" | "Failed")
}

/// The node that the Pod is bound to.
pub(crate) fn pod_node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The owner reference with `controller: true`.
pub(crate) fn controller_of(owners: Option<&Vec<OwnerReference>>) -> Option<&OwnerReference> {
    owners?.iter().find(|owner| owner.controller == Some(true))
}

/// Whether the label selector matches; an absent or invalid one matches nothing.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(Ok(selector)) = selector.map(|selector| Selector::try_from(selector.clone())) else {
        return false;
    };
    let empty = BTreeMap::new();
    selector.matches(labels.unwrap_or(&empty))
}

/// Whether the labels contain all of the selector's. An empty selector matches nothing: a Service without one
/// has no Pods.
pub(crate) fn selects_all(
    selector: Option<&BTreeMap<String, String>>,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return false };
    let Some(labels) = labels else { return false };
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// The quantity in thousandths, as Go's `MilliValue`; 0 if it is absent or invalid.
pub(crate) fn milli_value(quantity: Option<&Quantity>) -> i128 {
    quantity.and_then(|quantity| quantity::parse_text(&quantity.0)).unwrap_or(0)
}
