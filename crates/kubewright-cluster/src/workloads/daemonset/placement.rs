//! Where daemon pods belong, and what they look like.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec},
    core::v1::{
        Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec,
        Toleration,
    },
};

use super::super::history;
use crate::{nodes::placement, objects, pod};

/// The label that numbers the template.
pub(super) const GENERATION: &str = "pod-template-generation";

/// What every daemon pod tolerates: nodes that are unwell are no reason to leave.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The number of the template, as the server keeps it.
pub(super) fn template_generation(set: &DaemonSet) -> Option<&str> {
    objects::annotation(&set.metadata, "deprecated.daemonset.template.generation")
}

/// Whether a pod should run on a node, and whether one that does may stay.
pub(super) fn decide(spec: &DaemonSetSpec, node: &Node) -> (bool, bool) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let body = body(spec);
    let pinned = spec.template.spec.as_ref().and_then(|body| body.node_name.as_deref());
    if pinned.is_some_and(|pinned| !pinned.is_empty() && pinned != name)
        || !placement::is_selected(&body, node)
    {
        return (false, false);
    }
    let tolerations = body.tolerations.unwrap_or_default();
    let taints = placement::taints(node);
    if placement::untolerated(taints, &tolerations, &["NoExecute", "NoSchedule"]).is_none() {
        return (true, true);
    }
    (false, placement::untolerated(taints, &tolerations, &["NoExecute"]).is_none())
}

/// The node that a daemon pod is on or pinned to.
pub(super) fn target(pod: &Pod) -> Option<&str> {
    pod::node(pod).or_else(|| {
        let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
        let fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
        let named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
        named.filter_map(|field| field.values.as_ref()?.first()).map(String::as_str).next()
    })
}

/// The daemon pod of a node.
pub(super) fn pod(set: &DaemonSet, spec: &DaemonSetSpec, hash: &str, node: &str) -> Pod {
    let mut pod = pod::from_template::<DaemonSet>(&set.metadata, &spec.template);
    let labels = pod.metadata.labels.get_or_insert_default();
    if let Some(generation) = template_generation(set) {
        labels.insert(GENERATION.to_owned(), generation.to_owned());
    }
    if !hash.is_empty() {
        labels.insert(history::POD_HASH.to_owned(), hash.to_owned());
    }
    let mut body = body(spec);
    pin(&mut body, node);
    pod.spec = Some(body);
    pod
}

/// The template's spec with what every daemon pod tolerates.
fn body(spec: &DaemonSetSpec) -> PodSpec {
    let mut body = spec.template.spec.clone().unwrap_or_default();
    let host_network = body.host_network == Some(true);
    let tolerations = body.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED {
        tolerate(tolerations, key, effect);
    }
    if host_network {
        tolerate(tolerations, "node.kubernetes.io/network-unavailable", "NoSchedule");
    }
    body
}

fn tolerate(tolerations: &mut Vec<Toleration>, key: &str, effect: &str) {
    let toleration = Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".into()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    };
    match tolerations
        .iter_mut()
        .find(|known| known.key == toleration.key && known.effect == toleration.effect)
    {
        Some(known) => *known = toleration,
        None => tolerations.push(toleration),
    }
}

/// Replaces the terms of the required node affinity with one that matches only this node, by name.
fn pin(body: &mut PodSpec, node: &str) {
    let field = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity: &mut Affinity = body.affinity.get_or_insert_default();
    let affinity: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    let required: &mut NodeSelector =
        affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    // The terms of the template have been checked against the node's labels already, as upstream's
    // ReplaceDaemonSetPodNodeNameNodeAffinity assumes.
    required.node_selector_terms =
        vec![NodeSelectorTerm { match_expressions: None, match_fields: Some(vec![field]) }];
}
