//! Resource requests of Pods and allocatable resources of nodes.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Node, PodSpec},
    apimachinery::pkg::api::resource::Quantity,
};
use kubewright_apiserver::registry::quantity;

/// Amounts by resource, in thousandths.
pub(super) type Amounts = BTreeMap<String, i128>;

fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let known = quantities.into_iter().flatten();
    known.filter_map(|(name, quantity)| Some((name.clone(), quantity::parse_text(&quantity.0)?))).collect()
}

fn of_container(container: &Container) -> Amounts {
    amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

fn raise(sum: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let known = sum.entry(name.clone()).or_default();
        *known = (*known).max(*amount);
    }
}

/// What a pod asks for: its containers together, or the largest of its init containers, and one pod's place.
///
/// An init container that goes on running (a sidecar) counts with the containers, and with every init container after it.
pub(super) fn of(pod: &PodSpec) -> Amounts {
    let mut sum = Amounts::new();
    for container in &pod.containers {
        add(&mut sum, &of_container(container));
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in pod.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &own);
            raise(&mut peak, &together);
        }
    }
    add(&mut sum, &sidecars);
    raise(&mut sum, &peak);
    if let Some(whole) = pod.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        sum.extend(amounts(Some(whole)));
    }
    add(&mut sum, &amounts(pod.overhead.as_ref()));
    sum.insert("pods".to_owned(), 1000);
    sum
}

/// What Pods may ask for on a node.
pub(super) fn allocatable(node: &Node) -> Amounts {
    amounts(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
}

/// Adds what a Pod asks for to what others ask for.
pub(super) fn charge(sum: &mut Amounts, more: &Amounts) {
    add(sum, more);
}

/// Takes what a Pod asks for off what all ask for.
pub(super) fn discharge(sum: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        *sum.entry(name.clone()).or_default() -= amount;
    }
}

/// The resources of which a node has too little, of what is allocatable and was requested by others.
pub(super) fn lacking(wanted: &Amounts, allocatable: &Amounts, requested: &Amounts) -> Vec<String> {
    let amount = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or(0);
    let short = |(name, wanted): &(&String, &i128)| {
        **wanted > 0 && amount(allocatable, name) - amount(requested, name) < **wanted
    };
    wanted.iter().filter(short).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_pod_asks_for_its_containers_or_its_largest_init_container() {
        let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod: PodSpec = serde_json::from_value(json!({
            "containers": [{"name": "a", "resources": requests("100m")}, {"name": "b", "resources": requests("200m")}],
            "initContainers": [{"name": "i", "resources": requests("1")}]}))
        .unwrap();
        assert_eq!(of(&pod), Amounts::from([("cpu".to_owned(), 1000), ("pods".to_owned(), 1000)]));
        let sidecar: PodSpec = serde_json::from_value(json!({
            "containers": [{"name": "a", "resources": requests("100m")}],
            "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": requests("50m")},
                               {"name": "i", "resources": requests("120m")}]}))
        .unwrap();
        assert_eq!(of(&sidecar)["cpu"], 170);
    }

    #[test]
    fn what_is_too_little_is_named() {
        let node: Node =
            serde_json::from_value(json!({"status": {"allocatable": {"cpu": "1", "pods": "1"}}})).unwrap();
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [{"name": "a",
            "resources": {"requests": {"cpu": "600m", "example.com/gpu": "1"}}}]}}))
        .unwrap();
        let wanted = of(pod.spec.as_ref().unwrap());
        let there = allocatable(&node);
        assert_eq!(lacking(&wanted, &there, &Amounts::new()), ["example.com/gpu"]);
        assert_eq!(lacking(&wanted, &there, &wanted), ["cpu", "example.com/gpu", "pods"]);
    }
}
