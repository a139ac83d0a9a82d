//! The `Endpoints` object of a Service with a selector.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    endpoint,
    slices::{HEADLESS, TRIGGER_TIME},
};
use crate::pod;

/// The most addresses that an `Endpoints` object lists.
pub const MAX_ADDRESSES: usize = 1000;
/// The annotation of an object that does not list all addresses.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// The label that says who looks after the object.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// The object that a Service should have; `None` when `existing` is that already.
pub fn plan(service: &Service, pods: &[&Pod], existing: Option<&Endpoints>) -> Option<Endpoints> {
    let mut subsets = subsets(service, pods);
    let truncated = truncate(&mut subsets);
    let subsets = Some(subsets).filter(|subsets| !subsets.is_empty());
    let labels = labels(service);
    if let Some(existing) = existing {
        let old = &existing.metadata;
        let marked = old.annotations.as_ref().is_some_and(|a| a.contains_key(OVER_CAPACITY));
        let held = existing.subsets.clone().filter(|subsets| !subsets.is_empty());
        if held == subsets && old.labels.as_ref() == Some(&labels) && marked == truncated {
            return None;
        }
    }
    let mut wanted = existing.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    wanted.subsets = subsets;
    wanted.metadata.labels = Some(labels);
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    match endpoint::last_change(service, pods) {
        Some(time) => annotations.insert(TRIGGER_TIME.to_owned(), time.to_string()),
        None => annotations.remove(TRIGGER_TIME),
    };
    if truncated {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    } else {
        annotations.remove(OVER_CAPACITY);
    }
    Some(wanted)
}

/// Whether an object was written by this controller, and goes with its Service.
pub fn is_ours(endpoints: &Endpoints) -> bool {
    endpoints.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(MANAGED_BY))
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if endpoint::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), "endpoint-controller".to_owned());
    labels
}

/// A port and who serves it.
type Served = BTreeMap<String, (EndpointPort, Addresses, Addresses)>;
/// Addresses by what sorts them: the address, then the pod behind it.
type Addresses = BTreeMap<(String, String), EndpointAddress>;

/// Addresses grouped so that all of a subset serve all of its ports.
fn subsets(service: &Service, pods: &[&Pod]) -> Vec<EndpointSubset> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let published = endpoint::publishes_not_ready(service);
    let Some(family) = endpoint::address_types(service).first().copied() else { return Vec::new() };
    let mut served = Served::new();
    for pod in pods.iter().filter(|pod| endpoint::takes_part(pod, published)) {
        // The API refuses an empty node name, so a pod without a node cannot be written down here.
        let (Some(ip), Some(node)) = (endpoint::addresses(pod, family).into_iter().next(), pod::node(pod))
        else {
            continue;
        };
        let address = EndpointAddress {
            hostname: endpoint::hostname(pod, service),
            ip: ip.clone(),
            node_name: Some(node.to_owned()),
            target_ref: Some(endpoint::reference(pod)),
        };
        let key = (ip, pod.metadata.uid.clone().unwrap_or_default());
        let mut serve = |name: String, port: Option<EndpointPort>| {
            let (_, ready, waiting) = served
                .entry(name)
                .or_insert_with(|| (port.unwrap_or_default(), Addresses::new(), Addresses::new()));
            let list = if published || pod::is_ready(pod) { ready } else { waiting };
            list.insert(key.clone(), address.clone());
        };
        let ports = spec.ports.as_deref().unwrap_or_default();
        if ports.is_empty() && endpoint::is_headless(service) {
            serve(String::new(), None);
        }
        for port in ports {
            let Some(number) = endpoint::find_port(pod, port) else { continue };
            let name = port.name.clone().unwrap_or_default();
            let protocol = endpoint::protocol(port).to_owned();
            let key = format!("{name}\0{number}\0{protocol}");
            let port = EndpointPort {
                app_protocol: port.app_protocol.clone(),
                name: port.name.clone().filter(|name| !name.is_empty()),
                port: number,
                protocol: Some(protocol),
            };
            serve(key, Some(port));
        }
    }
    group(served)
}

fn group(served: Served) -> Vec<EndpointSubset> {
    type Key = (BTreeSet<(String, String)>, BTreeSet<(String, String)>);
    let mut groups: BTreeMap<Key, EndpointSubset> = BTreeMap::new();
    for (port, ready, waiting) in served.into_values() {
        let key = (ready.keys().cloned().collect(), waiting.keys().cloned().collect());
        let list = |addresses: Addresses| {
            Some(addresses.into_values().collect::<Vec<_>>()).filter(|list| !list.is_empty())
        };
        let subset = groups.entry(key).or_insert_with(|| EndpointSubset {
            addresses: list(ready),
            not_ready_addresses: list(waiting),
            ports: None,
        });
        if port.port != 0 {
            subset.ports.get_or_insert_default().push(port);
        }
    }
    groups.into_values().collect()
}

/// Leaves the first thousand addresses, ready ones before others; says whether any were dropped.
fn truncate(subsets: &mut Vec<EndpointSubset>) -> bool {
    let count = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    let total: usize = subsets.iter().map(|s| count(&s.addresses) + count(&s.not_ready_addresses)).sum();
    if total <= MAX_ADDRESSES {
        return false;
    }
    let mut room = MAX_ADDRESSES;
    let mut cut = |list: &mut Option<Vec<EndpointAddress>>| {
        if let Some(addresses) = list {
            addresses.truncate(room);
            room -= addresses.len();
        }
        list.take_if(|addresses| addresses.is_empty());
    };
    for subset in subsets.iter_mut() {
        cut(&mut subset.addresses);
    }
    for subset in subsets.iter_mut() {
        cut(&mut subset.not_ready_addresses);
    }
    subsets.retain(|subset| subset.addresses.is_some() || subset.not_ready_addresses.is_some());
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(ports: &Value) -> Service {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "ns"},
            "spec": {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": ports},
        }))
        .unwrap()
    }

    fn pod(number: usize, ready: bool) -> Pod {
        let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
        serde_json::from_value(json!({
            "metadata": {"name": format!("p{number}"), "namespace": "ns", "uid": format!("u{number:04}")},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                       "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    #[test]
    fn ports_with_the_same_addresses_share_a_subset() {
        let (a, b) = (pod(1, true), pod(2, false));
        let two = service(&json!([{"name": "http", "port": 80}, {"name": "admin", "port": 81}]));
        let planned = plan(&two, &[&b, &a], None).unwrap();
        let subsets = planned.subsets.clone().unwrap();
        assert_eq!(subsets.len(), 1);
        assert_eq!(subsets[0].ports.as_ref().unwrap().len(), 2);
        assert_eq!(subsets[0].addresses.as_ref().unwrap()[0].ip, "10.1.0.2");
        assert_eq!(subsets[0].not_ready_addresses.as_ref().unwrap()[0].ip, "10.1.0.3");
        assert_eq!(plan(&two, &[&a, &b], Some(&planned)), None, "the order of pods does not matter");
    }

    #[test]
    fn no_pods_is_an_object_without_subsets() {
        let planned = plan(&service(&json!([{"port": 80}])), &[], None).unwrap();
        assert_eq!(planned.subsets, None);
        assert_eq!(planned.metadata.labels.unwrap()[MANAGED_BY], "endpoint-controller");
    }

    #[test]
    fn a_thousand_addresses_are_listed_ready_ones_first() {
        let mut pods = vec![pod(0, false)];
        pods.extend((1..=1000).map(|number| pod(number, true)));
        let pods: Vec<&Pod> = pods.iter().collect();
        let planned = plan(&service(&json!([{"port": 80}])), &pods, None).unwrap();
        let subset = &planned.subsets.unwrap()[0];
        assert_eq!(subset.addresses.as_ref().unwrap().len(), MAX_ADDRESSES);
        assert_eq!(subset.not_ready_addresses, None);
        assert_eq!(planned.metadata.annotations.unwrap()[OVER_CAPACITY], "truncated");
    }
}
