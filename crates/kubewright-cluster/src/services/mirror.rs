//! Slices for `Endpoints` objects that were written by hand.
//!
//! A Service without a selector takes its addresses from an `Endpoints` object of its name. Proxies read slices only, so
//! each subset is copied into one slice per address family.

use std::{collections::BTreeMap, net::IpAddr};

use indexmap::IndexMap;
use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, EndpointSubset, Endpoints, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::slices::{MANAGED_BY, SERVICE_NAME, TRIGGER_TIME, controller, prefix};

/// The most addresses of a subset that are copied.
pub const MAX_ADDRESSES: usize = 1000;
/// Who looks after the slices planned here.
pub const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The label that forbids the copy.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Client-side apply's copy of what was applied, which is nobody else's business.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The annotation of objects that old leader elections write.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// What is to be done with the slices that mirror an `Endpoints` object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Slices to create; they have a `generateName`.
    pub create: Vec<EndpointSlice>,
    /// Slices to write in place of the present ones.
    pub update: Vec<EndpointSlice>,
    /// Names of slices to delete.
    pub delete: Vec<String>,
    /// How many addresses are no addresses.
    pub invalid: usize,
    /// How many addresses were too many.
    pub too_many: usize,
}

/// Plans the mirror of an `Endpoints` object; without one, or where none should be, all slices go.
///
/// `existing` are the slices that carry the Service's name and are managed by [`MANAGER`].
pub fn plan(endpoints: Option<&Endpoints>, service: Option<&Service>, existing: &[EndpointSlice]) -> Plan {
    let mut plan = Plan::default();
    let source = endpoints.filter(|endpoints| mirrored(endpoints, service));
    let Some(endpoints) = source else {
        plan.delete = existing.iter().filter_map(|slice| slice.metadata.name.clone()).collect();
        return plan;
    };
    let mut left: Vec<&EndpointSlice> = existing.iter().collect();
    left.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for subset in endpoints.subsets.iter().flatten() {
        for (address_type, found) in addresses(subset, &mut plan) {
            let slice = slice(endpoints, subset, address_type, found);
            let same =
                |held: &&EndpointSlice| held.address_type == slice.address_type && held.ports == slice.ports;
            match left.iter().position(same) {
                None => plan.create.push(slice),
                Some(at) => {
                    let held = left.remove(at);
                    plan.update.extend(changed(held, slice));
                }
            }
        }
    }
    // A slice that is not needed any more becomes one that is, where the address family allows it.
    plan.create.retain(|new| {
        let Some(at) = left.iter().position(|held| held.address_type == new.address_type) else {
            return true;
        };
        plan.update.extend(changed(left.remove(at), new.clone()));
        false
    });
    plan.delete = left.into_iter().filter_map(|slice| slice.metadata.name.clone()).collect();
    if endpoints.metadata.deletion_timestamp.is_some() {
        plan.create.clear();
    }
    plan
}

/// Whether an object should be mirrored at all.
fn mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let meta = &endpoints.metadata;
    let skipped = meta.labels.as_ref().and_then(|labels| labels.get(SKIP)).is_some_and(|v| v == "true");
    let election = meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LEADER));
    let by_hand = service.is_some_and(|service| {
        service.spec.as_ref().is_none_or(|spec| spec.selector.as_ref().is_none_or(BTreeMap::is_empty))
    });
    by_hand && !skipped && !election
}

/// The addresses of a subset by family, ready ones first.
fn addresses(subset: &EndpointSubset, plan: &mut Plan) -> IndexMap<&'static str, Vec<Endpoint>> {
    let mut found: IndexMap<&str, Vec<Endpoint>> = IndexMap::new();
    let ready = subset.addresses.iter().flatten().map(|address| (address, true));
    let waiting = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
    let mut taken = 0;
    for (address, ready) in ready.chain(waiting) {
        let Ok(ip) = address.ip.parse::<IpAddr>() else {
            plan.invalid += 1;
            continue;
        };
        if taken == MAX_ADDRESSES {
            plan.too_many += 1;
            continue;
        }
        taken += 1;
        let family = if ip.is_ipv6() { "IPv6" } else { "IPv4" };
        found.entry(family).or_default().push(endpoint(address, ip, ready));
    }
    found
}

fn endpoint(address: &EndpointAddress, ip: IpAddr, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn slice(
    endpoints: &Endpoints,
    subset: &EndpointSubset,
    address_type: &str,
    found: Vec<Endpoint>,
) -> EndpointSlice {
    let meta = &endpoints.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let mut labels = meta.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != TRIGGER_TIME && key != LAST_APPLIED);
    let ports = subset.ports.iter().flatten().map(|port| EndpointPort {
        app_protocol: port.app_protocol.clone(),
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
    });
    EndpointSlice {
        address_type: address_type.to_owned(),
        endpoints: Some(found),
        metadata: ObjectMeta {
            generate_name: Some(prefix(&name)),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![controller("Endpoints", meta)]),
            ..ObjectMeta::default()
        },
        ports: Some(ports.collect::<Vec<_>>()).filter(|ports| !ports.is_empty()),
    }
}

/// The slice to write over a present one, if that makes a difference.
fn changed(held: &EndpointSlice, mut wanted: EndpointSlice) -> Option<EndpointSlice> {
    let meta = wanted.metadata;
    let same = held.endpoints == wanted.endpoints
        && held.ports == wanted.ports
        && held.metadata.labels == meta.labels
        && held.metadata.annotations.clone().unwrap_or_default()
            == meta.annotations.clone().unwrap_or_default()
        && held.metadata.owner_references == meta.owner_references;
    wanted.metadata = ObjectMeta {
        labels: meta.labels,
        annotations: meta.annotations,
        owner_references: meta.owner_references,
        ..held.metadata.clone()
    };
    (!same).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(subsets: &Value) -> Endpoints {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "ns", "uid": "e"}, "subsets": subsets,
        }))
        .unwrap()
    }

    fn service(spec: &Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec})).unwrap()
    }

    fn named(mut plan: Plan) -> Vec<EndpointSlice> {
        for (number, slice) in plan.create.iter_mut().enumerate() {
            slice.metadata.name = Some(format!("web-{number}"));
        }
        plan.create
    }

    #[test]
    fn a_subset_becomes_one_slice_for_each_family() {
        let source = endpoints(&json!([{
            "addresses": [{"ip": "10.9.0.7"}, {"ip": "fd00::7"}, {"ip": "nonsense"}],
            "notReadyAddresses": [{"ip": "10.9.0.8"}],
            "ports": [{"name": "http", "port": 8080}],
        }]));
        let planned = plan(Some(&source), Some(&service(&json!({}))), &[]);
        assert_eq!(planned.invalid, 1);
        let slices = named(planned);
        assert_eq!(slices.iter().map(|s| s.address_type.as_str()).collect::<Vec<_>>(), ["IPv4", "IPv6"]);
        let ready: Vec<_> = slices[0].endpoints.as_ref().unwrap().iter().map(|e| &e.conditions).collect();
        assert_eq!(ready.len(), 2);
        assert_eq!(slices[0].metadata.owner_references.as_ref().unwrap()[0].kind, "Endpoints");
        assert_eq!(slices[0].metadata.annotations, None);
        let again = plan(Some(&source), Some(&service(&json!({}))), &slices);
        assert_eq!((again.create.len(), again.update.len(), again.delete.len()), (0, 0, 0));
    }

    #[test]
    fn a_changed_subset_changes_its_slice() {
        let before = endpoints(&json!([{"addresses": [{"ip": "10.9.0.7"}], "ports": [{"port": 1}]}]));
        let slices = named(plan(Some(&before), Some(&service(&json!({}))), &[]));
        let after = endpoints(&json!([{"addresses": [{"ip": "10.9.0.8"}], "ports": [{"port": 2}]}]));
        let planned = plan(Some(&after), Some(&service(&json!({}))), &slices);
        assert_eq!((planned.create.len(), planned.update.len(), planned.delete.len()), (0, 1, 0));
        assert_eq!(planned.update[0].metadata.name.as_deref(), Some("web-0"));
    }

    #[test]
    fn nothing_is_mirrored_for_services_with_a_selector_or_where_it_is_forbidden() {
        let source = endpoints(&json!([{"addresses": [{"ip": "10.9.0.7"}]}]));
        let slices = named(plan(Some(&source), Some(&service(&json!({}))), &[]));
        let selecting = service(&json!({"selector": {"app": "web"}}));
        assert_eq!(plan(Some(&source), Some(&selecting), &slices).delete, ["web-0"]);
        assert_eq!(plan(Some(&source), None, &slices).delete, ["web-0"]);
        assert_eq!(plan(None, Some(&service(&json!({}))), &slices).delete, ["web-0"]);
        let mut skipped = source;
        skipped.metadata.labels = Some(BTreeMap::from([(SKIP.to_owned(), "true".to_owned())]));
        assert_eq!(plan(Some(&skipped), Some(&service(&json!({}))), &[]), Plan::default());
    }
}
