//! The `EndpointSlice`s of a Service: at most a hundred endpoints each, changed as little as possible.
//!
//! Endpoints stay in the slice that has them, because every change of a slice goes to every node. New ones go first
//! into slices that change anyway, then into the one that they fill best, and only then into new slices. A slice that
//! would be deleted while another is created is changed into it instead.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Node, Pod, Service},
        discovery::v1::{Endpoint, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::endpoint;

/// The most endpoints in a slice.
pub const MAX_ENDPOINTS: usize = 100;
/// The label with the Service's name.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that says who looks after a slice.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Who looks after the slices planned here.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The label of what belongs to a Service without an address of its own.
pub const HEADLESS: &str = "service.kubernetes.io/headless";
/// The annotation with the time of the change that a slice reflects.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// What is to be done with the slices of a Service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Slices to create; they have a `generateName`.
    pub create: Vec<EndpointSlice>,
    /// Slices to write in place of the present ones.
    pub update: Vec<EndpointSlice>,
    /// Names of slices to delete.
    pub delete: Vec<String>,
    /// Pods that cannot be placed, as sentences. The Service has to be looked at again.
    pub skipped: Vec<String>,
}

/// Plans the slices of a Service with a selector.
///
/// `existing` are the slices that carry the Service's name and are managed by [`MANAGER`].
pub fn plan<'a>(
    service: &Service,
    pods: &[&Pod],
    node: impl Fn(&str) -> Option<&'a Node>,
    existing: &[EndpointSlice],
) -> Plan {
    let types = endpoint::address_types(service);
    let mut plan = Plan::default();
    for slice in existing.iter().filter(|slice| !types.contains(&slice.address_type.as_str())) {
        plan.delete.extend(slice.metadata.name.clone());
    }
    for address_type in types {
        let of_type = existing.iter().filter(|slice| slice.address_type == address_type);
        let groups = desired(service, pods, &node, address_type, &mut plan.skipped);
        Arrangement { service, address_type }.arrange(of_type.cloned().collect(), groups, &mut plan);
    }
    plan.skipped.dedup();
    if service.metadata.deletion_timestamp.is_some() {
        // The collector deletes slices now; nothing may take their place.
        plan.create.clear();
    }
    let trigger = endpoint::last_change(service, pods);
    for slice in plan.create.iter_mut().chain(&mut plan.update) {
        stamp(slice, trigger);
    }
    plan
}

type Endpoints = IndexMap<Identity, Endpoint>;

/// What makes an endpoint the same one after its conditions have changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    addresses: Vec<String>,
    hostname: Option<String>,
    node: Option<String>,
    target: Option<(Option<String>, Option<String>)>,
}

impl Identity {
    fn of(endpoint: &Endpoint) -> Self {
        Self {
            addresses: endpoint.addresses.clone(),
            hostname: endpoint.hostname.clone(),
            node: endpoint.node_name.clone(),
            target: endpoint.target_ref.as_ref().map(|target| (target.name.clone(), target.uid.clone())),
        }
    }
}

/// The ports of a slice as a key: order does not matter.
fn port_key(ports: Option<&Vec<EndpointPort>>) -> Vec<(String, String, Option<i32>, Option<String>)> {
    let mut key: Vec<_> = ports
        .into_iter()
        .flatten()
        .map(|port| {
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            (port.name.clone().unwrap_or_default(), protocol, port.port, port.app_protocol.clone())
        })
        .collect();
    key.sort();
    key
}

type Group = (Vec<EndpointPort>, Endpoints);
type Groups = BTreeMap<Vec<(String, String, Option<i32>, Option<String>)>, Group>;

/// The endpoints that there should be, by the ports that they serve.
fn desired<'a>(
    service: &Service,
    pods: &[&Pod],
    node: impl Fn(&str) -> Option<&'a Node>,
    address_type: &str,
    skipped: &mut Vec<String>,
) -> Groups {
    let mut groups = Groups::new();
    for pod in pods.iter().filter(|pod| endpoint::takes_part(pod, true)) {
        let ports = endpoint::ports(pod, service);
        let (_, group) = groups.entry(port_key(Some(&ports))).or_insert_with(|| (ports, Endpoints::new()));
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let node = node(name);
        if node.is_none() && !endpoint::publishes_not_ready(service) {
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            skipped.push(format!(
                "skipping Pod {} for Service {}/{}: Node {name} Not Found",
                text(&pod.metadata.name),
                text(&service.metadata.namespace),
                text(&service.metadata.name),
            ));
            continue;
        }
        let found = endpoint::of(pod, node, service, address_type);
        if !found.addresses.is_empty() {
            group.insert(Identity::of(&found), found);
        }
    }
    hint(service, &mut groups);
    groups
}

/// Says near whom each endpoint should be used, when the Service wants that and every ready endpoint has a place.
fn hint(service: &Service, groups: &mut Groups) {
    let wanted = service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref());
    let by_node = match wanted {
        Some("PreferClose" | "PreferSameZone") => false,
        Some("PreferSameNode") => true,
        _ => return,
    };
    let ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().is_some_and(|c| c.ready != Some(false));
    let placed = |endpoint: &Endpoint| {
        endpoint.zone.is_some() && (!by_node || endpoint.node_name.is_some()) || !ready(endpoint)
    };
    if !groups.values().flat_map(|(_, group)| group.values()).all(placed) {
        return;
    }
    for endpoint in groups.values_mut().flat_map(|(_, group)| group.values_mut()).filter(|e| ready(e)) {
        let zone = endpoint.zone.iter().map(|name| ForZone { name: name.clone() }).collect();
        let node = endpoint.node_name.iter().map(|name| ForNode { name: name.clone() }).collect();
        endpoint.hints = Some(EndpointHints { for_zones: Some(zone), for_nodes: by_node.then_some(node) });
    }
}

/// The slices of one address family.
struct Arrangement<'a> {
    service: &'a Service,
    address_type: &'a str,
}

impl Arrangement<'_> {
    fn arrange(&self, existing: Vec<EndpointSlice>, groups: Groups, plan: &mut Plan) {
        let (mut update, mut create, mut vacant) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = 0;
        let mut by_ports: BTreeMap<_, Vec<EndpointSlice>> = BTreeMap::new();
        for slice in existing {
            if self.owns(&slice) {
                by_ports.entry(port_key(slice.ports.as_ref())).or_default().push(slice);
            } else {
                plan.delete.extend(slice.metadata.name);
            }
        }
        for (key, (ports, endpoints)) in groups {
            let mut slices = by_ports.remove(&key).unwrap_or_default();
            slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
            let filled = self.fill(slices, endpoints, &ports);
            kept += filled.unchanged;
            update.extend(filled.update);
            create.extend(filled.create);
            vacant.extend(filled.vacant);
        }
        vacant.extend(by_ports.into_values().flatten());
        if kept == 0 && update.is_empty() && create.is_empty() {
            let empty = self.slice(&[], Vec::new());
            if let [only] = vacant.as_slice()
                && only.endpoints.as_ref().is_none_or(Vec::is_empty)
                && only.ports.as_ref().is_none_or(Vec::is_empty)
                && only.metadata.labels == empty.metadata.labels
            {
                return;
            }
            create.push(empty);
        }
        while !vacant.is_empty() {
            let Some(mut new) = create.pop() else { break };
            let old = vacant.remove(0);
            new.metadata = ObjectMeta {
                labels: new.metadata.labels,
                owner_references: new.metadata.owner_references,
                ..old.metadata
            };
            update.push(new);
        }
        plan.create.extend(create);
        plan.update.extend(update);
        plan.delete.extend(vacant.into_iter().filter_map(|slice| slice.metadata.name));
    }

    fn fill(&self, slices: Vec<EndpointSlice>, mut wanted: Endpoints, ports: &[EndpointPort]) -> Filled {
        let mut filled = Filled::default();
        let mut unchanged = Vec::new();
        let labels = self.labels();
        for mut slice in slices {
            let present = slice.endpoints.take().unwrap_or_default();
            let stay: Vec<Endpoint> =
                present.iter().filter_map(|e| wanted.shift_remove(&Identity::of(e))).collect();
            let relabelled = slice.metadata.labels.as_ref() != Some(&labels);
            if stay == present && !relabelled {
                slice.endpoints = Some(present);
                unchanged.push(slice);
            } else if stay.is_empty() && !present.is_empty() {
                filled.vacant.push(slice);
            } else {
                slice.endpoints = Some(stay);
                slice.metadata.labels = Some(labels.clone());
                filled.update.push(slice);
            }
        }
        let mut left = wanted.into_values();
        filled.update.sort_by_key(|slice| std::cmp::Reverse(size(slice)));
        for slice in &mut filled.update {
            let room = MAX_ENDPOINTS.saturating_sub(size(slice));
            slice.endpoints.get_or_insert_default().extend(left.by_ref().take(room));
        }
        while left.len() > 0 {
            let best = unchanged
                .iter()
                .enumerate()
                .filter(|(_, slice)| size(slice) + left.len() <= MAX_ENDPOINTS)
                .max_by_key(|(at, slice)| (size(slice), std::cmp::Reverse(*at)))
                .map(|(at, _)| at);
            if let Some(at) = best {
                let mut slice = unchanged.remove(at);
                slice.endpoints.get_or_insert_default().extend(left.by_ref());
                filled.update.push(slice);
            } else {
                filled.create.push(self.slice(ports, left.by_ref().take(MAX_ENDPOINTS).collect()));
            }
        }
        filled.unchanged = unchanged.len();
        filled
    }

    fn owns(&self, slice: &EndpointSlice) -> bool {
        let owners = slice.metadata.owner_references.iter().flatten();
        owners
            .into_iter()
            .any(|owner| Some(&owner.uid) == self.service.metadata.uid.as_ref() && owner.kind == "Service")
    }

    /// The Service's labels, and the three that say what a slice is.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.service.metadata.labels.clone().unwrap_or_default();
        labels.remove(HEADLESS);
        if endpoint::is_headless(self.service) {
            labels.insert(HEADLESS.to_owned(), String::new());
        }
        labels.insert(SERVICE_NAME.to_owned(), self.service.metadata.name.clone().unwrap_or_default());
        labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
        labels
    }

    fn slice(&self, ports: &[EndpointPort], endpoints: Vec<Endpoint>) -> EndpointSlice {
        let meta = &self.service.metadata;
        EndpointSlice {
            address_type: self.address_type.to_owned(),
            endpoints: Some(endpoints).filter(|endpoints| !endpoints.is_empty()),
            metadata: ObjectMeta {
                generate_name: meta.name.as_deref().map(prefix),
                namespace: meta.namespace.clone(),
                labels: Some(self.labels()),
                owner_references: Some(vec![controller("Service", meta)]),
                ..ObjectMeta::default()
            },
            ports: Some(ports.to_vec()).filter(|ports| !ports.is_empty()),
        }
    }
}

#[derive(Default)]
struct Filled {
    unchanged: usize,
    update: Vec<EndpointSlice>,
    create: Vec<EndpointSlice>,
    vacant: Vec<EndpointSlice>,
}

fn size(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

/// The beginning of the names of slices: the Service's name and a dash, when that leaves room for the random end.
pub(super) fn prefix(name: &str) -> String {
    if name.len() < 253 { format!("{name}-") } else { name.to_owned() }
}

/// A controller reference to a core object.
pub(super) fn controller(kind: &str, meta: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Notes the time of the change that led to this slice.
fn stamp(slice: &mut EndpointSlice, trigger: Option<Timestamp>) {
    let annotations = slice.metadata.annotations.get_or_insert_default();
    match trigger {
        Some(time) => annotations.insert(TRIGGER_TIME.to_owned(), time.to_string()),
        None => annotations.remove(TRIGGER_TIME),
    };
}

#[cfg(test)]
#[path = "slices_tests.rs"]
mod tests;
