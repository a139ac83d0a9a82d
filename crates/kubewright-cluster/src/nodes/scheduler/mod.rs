//! The scheduler: the node that a pod goes to, or why there is none.

use crate::{objects, pod};
mod cache;
pub(super) mod reconcile;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodSpec};

use self::cache::{NodeInfo, SchedulerCache};
use super::{placement, requests};

/// What a decision is made from.
#[derive(Debug, Clone, Copy)]
struct World<'a> {
    /// The nodes and what is bound to them.
    cache: &'a SchedulerCache,
    /// The claims of the Pod that exist.
    claims: &'a [PersistentVolumeClaim],
    /// The storage classes whose volumes wait for a Pod to be placed.
    delayed: &'a [String],
}

/// Whether a pod is this scheduler's to bind.
fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref() else { return false };
    pod::node(pod).is_none()
        && pod::is_active(pod)
        && spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler")
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// The node for a Pod, or the message that says why there is none.
///
/// Of the nodes that fit, the one with the fewest Pods of the same controller, then with the fewest Pods, then the first
/// by name. Nodes are tried in that order, so that most decisions look at one node.
fn choose(pod: &Pod, world: World<'_>) -> Result<String, String> {
    let cache = world.cache;
    let spec = pod.spec.clone().unwrap_or_default();
    if let Some(problem) = claims_problem(&spec, world) {
        return Err(format!("0/{} nodes are available: {problem}.", cache.nodes()));
    }
    let wanted = requests::of(&spec);
    let ports = ports(&spec);
    let controller = objects::controller_of(&pod.metadata);
    let siblings = controller.and_then(|owner| cache.siblings(&owner.uid));
    let siblings_on = |node: &str| siblings.and_then(|nodes| nodes.get(node)).copied().unwrap_or(0);
    let levels: BTreeSet<usize> = siblings.into_iter().flat_map(BTreeMap::values).copied().collect();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for level in [0].into_iter().chain(levels) {
        for (name, info) in cache.by_load().filter(|(name, _)| siblings_on(name) == level) {
            let refusals = refusals(&spec, &wanted, &ports, info);
            if refusals.is_empty() {
                return Ok(name.to_owned());
            }
            for refusal in refusals {
                *reasons.entry(refusal).or_default() += 1;
            }
        }
    }
    Err(explain(cache.nodes(), &reasons))
}

/// Why a Pod cannot go to a node; the first kind of reason hides the others, as upstream's filters stop at the first.
fn refusals(
    spec: &PodSpec,
    wanted: &requests::Amounts,
    ports: &[(i32, String)],
    info: &NodeInfo,
) -> Vec<String> {
    let Some(node) = info.node.as_deref() else { return Vec::new() };
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let cordon = || k8s_openapi::api::core::v1::Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    if cordoned && !tolerations.iter().any(|toleration| placement::tolerates(toleration, &cordon())) {
        return vec!["node(s) were unschedulable".into()];
    }
    if placement::untolerated(placement::taints(node), tolerations, &["NoSchedule", "NoExecute"]).is_some() {
        return vec!["node(s) had untolerated taint(s)".into()];
    }
    if !placement::is_selected(spec, node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".into()];
    }
    if ports.iter().any(|port| info.is_taken(port)) {
        return vec!["node(s) didn't have free ports for the requested pod ports".into()];
    }
    let short = requests::lacking(wanted, &info.allocatable, &info.requested);
    let words = |name: String| {
        if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") }
    };
    short.into_iter().map(words).collect()
}

/// The host ports that a pod takes, with their protocols.
fn ports(spec: &PodSpec) -> Vec<(i32, String)> {
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let number = port.host_port.filter(|number| *number > 0)?;
        Some((number, port.protocol.clone().unwrap_or_else(|| "TCP".into())))
    });
    taken.collect()
}

fn claim_names(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let claims = spec.volumes.iter().flatten().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.as_str())
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// Whether the volume of a claim is only made when it is known where.
fn is_delayed(claim: &PersistentVolumeClaim, delayed: &[String]) -> bool {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    class.is_some_and(|class| delayed.contains(class))
}

/// The claims of a pod that wait to be told where it goes.
fn unbound<'a>(pod: &Pod, world: World<'a>) -> Vec<&'a PersistentVolumeClaim> {
    let spec = pod.spec.clone().unwrap_or_default();
    let wanted: Vec<&str> = claim_names(&spec).collect();
    let named = |claim: &&PersistentVolumeClaim| {
        claim.metadata.name.as_deref().is_some_and(|name| wanted.contains(&name))
    };
    world.claims.iter().filter(named).filter(|claim| !is_bound(claim)).collect()
}

/// Why the claims of a pod keep it from being placed.
fn claims_problem(spec: &PodSpec, world: World<'_>) -> Option<String> {
    for name in claim_names(spec) {
        let Some(claim) = world.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name))
        else {
            return Some(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Some(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        if !is_bound(claim) && !is_delayed(claim, world.delayed) {
            return Some("pod has unbound immediate PersistentVolumeClaims".into());
        }
    }
    None
}

/// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`
fn explain(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".into();
    }
    let mut counted: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort();
    format!("0/{nodes} nodes are available: {}.", counted.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;
    use crate::workloads::testing::{bound, controlled, meta, pod};

    fn node(name: &str, cpu: &str, taints: &serde_json::Value) -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": name, "labels": {"name": name}}, "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": cpu, "pods": "3"}}}),
        )
        .unwrap()
    }

    fn asking(cpu: &str) -> Pod {
        let mut pod = pod("p");
        let container = &mut pod.spec.as_mut().unwrap().containers[0];
        container.resources = Some(serde_json::from_value(json!({"requests": {"cpu": cpu}})).unwrap());
        pod
    }

    fn cache(nodes: &[Node], pods: &[Pod]) -> SchedulerCache {
        let mut cache = SchedulerCache::default();
        for node in nodes {
            cache.set_node(Arc::new(node.clone()));
        }
        for (number, pod) in pods.iter().enumerate() {
            let mut pod = pod.clone();
            pod.metadata.uid = Some(number.to_string());
            cache.set_pod(&pod);
        }
        cache
    }

    fn world(cache: &SchedulerCache) -> World<'_> {
        World { cache, claims: &[], delayed: &[] }
    }

    #[test]
    fn siblings_are_spread_and_ties_go_by_name() {
        let nodes = [node("a", "4", &json!([])), node("b", "4", &json!([]))];
        let owner = meta("owner");
        let one = controlled(pod("one"), &owner);
        assert_eq!(choose(&one, world(&cache(&nodes, &[]))).as_deref(), Ok("a"));
        let there = [bound(one.clone(), "a")];
        assert_eq!(
            choose(&controlled(pod("two"), &owner), world(&cache(&nodes, &there))).as_deref(),
            Ok("b")
        );
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_told_why() {
        let nodes = [
            node("a", "1", &json!([])),
            node("b", "1", &json!([{"key": "x", "effect": "NoSchedule"}])),
            node("c", "1", &json!([{"key": "x", "effect": "NoExecute"}])),
        ];
        let why = choose(&asking("2"), world(&cache(&nodes, &[]))).unwrap_err();
        assert_eq!(why, "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).");
        let none = choose(&asking("2"), world(&cache(&[], &[]))).unwrap_err();
        assert_eq!(none, "no nodes available to schedule pods");
        let mut picky = pod("p");
        picky.spec.as_mut().unwrap().node_selector = Some([("name".to_owned(), "z".to_owned())].into());
        let why = choose(&picky, world(&cache(&nodes[..1], &[]))).unwrap_err();
        assert_eq!(why, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
    }

    #[test]
    fn requests_of_bound_pods_are_taken_off_capacity() {
        let nodes = [node("a", "1", &json!([]))];
        let there = [bound(asking("600m"), "a")];
        let held = cache(&nodes, &there);
        assert!(choose(&asking("400m"), world(&held)).is_ok());
        assert!(choose(&asking("500m"), world(&held)).unwrap_err().contains("Insufficient cpu"));
        let full: Vec<Pod> = (0..3).map(|number| bound(pod(&format!("p{number}")), "a")).collect();
        assert!(choose(&pod("p"), world(&cache(&nodes, &full))).unwrap_err().contains("Too many pods"));
    }

    #[test]
    fn host_ports_are_taken_once() {
        let nodes = [node("a", "1", &json!([]))];
        let mut server = pod("p");
        server.spec.as_mut().unwrap().containers[0].ports =
            Some(serde_json::from_value(json!([{"containerPort": 80, "hostPort": 80}])).unwrap());
        let there = [bound(server.clone(), "a")];
        assert!(choose(&server, world(&cache(&nodes, &there))).unwrap_err().contains("free ports"));
    }

    #[test]
    fn a_pod_waits_for_its_claims() {
        let nodes = [node("a", "1", &json!([]))];
        let mut stateful = pod("p");
        stateful.spec.as_mut().unwrap().volumes = Some(
            serde_json::from_value(json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
                .unwrap(),
        );
        let claim = |phase: &str| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"name": "data"}, "status": {"phase": phase}})).unwrap()
        };
        let with = |claims: &[PersistentVolumeClaim]| {
            let cache = cache(&nodes, &[]);
            choose(&stateful, World { cache: &cache, claims, delayed: &["local".to_owned()] })
        };
        assert!(with(&[]).unwrap_err().contains("persistentvolumeclaim \"data\" not found"));
        assert!(with(&[claim("Pending")]).unwrap_err().contains("unbound immediate"));
        assert!(with(&[claim("Bound")]).is_ok());
        let mut local = claim("Pending");
        local.spec.get_or_insert_default().storage_class_name = Some("local".into());
        assert!(with(&[local]).is_ok(), "its volume is made where the pod goes");
    }

    #[test]
    fn a_pod_counts_from_the_decision_until_it_terminates() {
        let nodes = [node("a", "1", &json!([]))];
        let mut cache = cache(&nodes, &[]);
        let mut first = asking("1");
        first.metadata.uid = Some("first".into());
        cache.assume(&first, "a");
        assert!(choose(&asking("1"), world(&cache)).unwrap_err().contains("Insufficient cpu"));
        cache.set_pod(&first);
        assert!(cache.is_bound("first"), "an older version without a node changes nothing");
        let mut shown = bound(first, "a");
        assert!(!cache.set_pod(&shown));
        cache.forget("first");
        assert!(cache.is_bound("first"), "an event has confirmed it");
        shown.status.get_or_insert_default().phase = Some("Succeeded".into());
        assert!(cache.set_pod(&shown), "there is room again");
        assert!(choose(&asking("1"), world(&cache)).is_ok());
        cache.remove_node("a");
        assert_eq!(choose(&asking("1"), world(&cache)).unwrap_err(), "no nodes available to schedule pods");
    }

    #[test]
    fn a_cordoned_node_takes_no_pods() {
        let mut nodes = [node("a", "1", &json!([]))];
        nodes[0].spec.as_mut().unwrap().unschedulable = Some(true);
        let held = cache(&nodes, &[]);
        assert!(choose(&pod("p"), world(&held)).unwrap_err().contains("were unschedulable"));
        let mut daemon = pod("p");
        daemon.spec.as_mut().unwrap().tolerations = Some(
            serde_json::from_value(
                json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            )
            .unwrap(),
        );
        assert!(choose(&daemon, world(&held)).is_ok());
    }
}
