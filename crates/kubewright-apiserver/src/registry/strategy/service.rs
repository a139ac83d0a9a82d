//! Services: addresses and node ports are the cluster's to give.

use std::net::Ipv4Addr;

use imbl::OrdSet;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    registry::{
        Registry,
        call::Call,
        json::{Json, object, object_mut, objects, objects_mut, text},
        validation::Errors,
    },
    status::Status,
};

/// 10.96.0.0/12, as kubeadm has it.
const FIRST_ADDRESS: u32 = 0x0a60_0001;
const LAST_ADDRESS: u32 = 0x0a6f_fffe;
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

/// Which addresses and node ports are taken.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    taken: Mutex<Taken>,
}

/// Persistent sets: the state before a refused service is kept for the price of two reference counts.
#[derive(Debug, Default)]
struct Taken {
    addresses: OrdSet<u32>,
    ports: OrdSet<u16>,
    next_address: u32,
}

fn is_service(call: &Call<'_>) -> bool {
    call.ty.group.is_empty() && call.ty.plural == "services"
}

fn address_of(service: &Json) -> Option<u32> {
    let spec = object(service, "spec")?;
    text(spec, "clusterIP").parse::<Ipv4Addr>().ok().map(u32::from)
}

fn node_ports(service: &Json) -> Vec<u16> {
    let spec = object(service, "spec");
    let ports = spec.into_iter().flat_map(|s| objects(s, "ports"));
    let health = spec.and_then(|s| s.get("healthCheckNodePort"));
    ports
        .filter_map(|p| p.get("nodePort"))
        .chain(health)
        .filter_map(Value::as_u64)
        .filter_map(|p| u16::try_from(p).ok())
        .filter(|p| *p > 0)
        .collect()
}

impl Taken {
    fn free_address(&mut self) -> Option<u32> {
        let size = LAST_ADDRESS - FIRST_ADDRESS + 1;
        for _ in 0..size {
            let candidate = FIRST_ADDRESS + self.next_address % size;
            self.next_address = self.next_address.wrapping_add(1);
            if self.addresses.insert(candidate).is_none() {
                return Some(candidate);
            }
        }
        None
    }

    fn free_port(&mut self) -> Option<u16> {
        (FIRST_PORT..=LAST_PORT).find(|p| self.ports.insert(*p).is_none())
    }
}

impl Allocator {
    /// The first address: that of the `kubernetes` service.
    pub(crate) fn reserve_first(&self) -> String {
        let mut taken = self.taken.lock();
        taken.addresses.insert(FIRST_ADDRESS);
        taken.next_address = taken.next_address.max(1);
        Ipv4Addr::from(FIRST_ADDRESS).to_string()
    }

    /// Takes what the services of an earlier run have.
    pub(crate) fn restore(&self, registry: &Registry) {
        let mut taken = self.taken.lock();
        for (_, service) in registry.storage.snapshot().collection("services").range(None, None) {
            let service = service.decode();
            taken.addresses.extend(address_of(&service));
            taken.ports.extend(node_ports(&service));
        }
    }

    /// Gives a new service what it needs and takes what it asks for.
    pub(crate) fn prepare_create(
        &self,
        _: &Registry,
        call: &Call<'_>,
        service: &mut Json,
    ) -> Result<(), Status> {
        if !is_service(call) {
            return Ok(());
        }
        self.assign(call, service, None)
    }

    /// Keeps what a changed service has, and gives what it newly needs.
    pub(crate) fn prepare_update(
        &self,
        _: &Registry,
        call: &Call<'_>,
        service: &mut Json,
        old: &Json,
    ) -> Result<(), Status> {
        if !is_service(call) {
            return Ok(());
        }
        self.assign(call, service, Some(old))
    }

    fn assign(&self, call: &Call<'_>, service: &mut Json, old: Option<&Json>) -> Result<(), Status> {
        let name = crate::registry::json::name(service).to_owned();
        let held_address = old.and_then(address_of);
        let held_ports = old.map(node_ports).unwrap_or_default();
        let spec = object_mut(service, "spec");
        super::services::complete(spec);
        let kind = text(spec, "type").to_owned();
        let mut errors = Errors::default();
        let mut taken = self.taken.lock();
        let before = (taken.addresses.clone(), taken.ports.clone());
        let asked = text(spec, "clusterIP").to_owned();
        let needs_address = matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer");
        if needs_address {
            match asked.parse::<Ipv4Addr>().map(u32::from) {
                _ if asked.is_empty() => match taken.free_address() {
                    Some(address) => {
                        let address = Ipv4Addr::from(address).to_string();
                        spec.insert("clusterIP".into(), address.as_str().into());
                        spec.insert("clusterIPs".into(), json!([address]));
                    }
                    None => return Err(Status::internal("no service address is free")),
                },
                // A change of address is refused by validation, whatever the new one is.
                Ok(_) if held_address.is_some() => {}
                Ok(address) if !(FIRST_ADDRESS..=LAST_ADDRESS).contains(&address) => errors.invalid(
                    "spec.clusterIPs",
                    json!([asked]),
                    "failed to allocate IP: the provided IP is not in the valid range. The range of valid IPs is \
                     10.96.0.0/12",
                ),
                Ok(address) => {
                    if taken.addresses.insert(address).is_some() {
                        let why = format!("failed to allocate IP {asked}: provided IP is already allocated");
                        errors.invalid("spec.clusterIPs", json!([asked]), &why);
                    }
                }
                Err(_) => {}
            }
        }
        let wants_ports = kind == "NodePort"
            || (kind == "LoadBalancer"
                && spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool) != Some(false));
        for (n, port) in objects_mut(spec, "ports").enumerate() {
            let asked = port.get("nodePort").and_then(Value::as_u64).and_then(|p| u16::try_from(p).ok());
            match asked.filter(|p| *p > 0) {
                Some(asked) if held_ports.contains(&asked) => {}
                Some(asked) if !(FIRST_PORT..=LAST_PORT).contains(&asked) => errors.invalid(
                    format!("spec.ports[{n}].nodePort"),
                    asked,
                    "provided port is not in the valid range. The range of valid ports is 30000-32767",
                ),
                Some(asked) if taken.ports.insert(asked).is_some() => errors.invalid(
                    format!("spec.ports[{n}].nodePort"),
                    asked,
                    "provided port is already allocated",
                ),
                None if wants_ports => {
                    if let Some(free) = taken.free_port() {
                        port.insert("nodePort".into(), free.into());
                    }
                }
                _ => {}
            }
        }
        let wants_health = kind == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
        if wants_health
            && spec.get("healthCheckNodePort").is_none()
            && let Some(free) = taken.free_port()
        {
            spec.insert("healthCheckNodePort".into(), free.into());
        }
        if errors.is_empty() {
            return Ok(());
        }
        // Nothing of a refused service stays taken.
        (taken.addresses, taken.ports) = before;
        Err(call.invalid(&name, &errors))
    }

    /// Takes back what a service was given that is not stored after all.
    pub(crate) fn release(&self, call: &Call<'_>, service: &Json) {
        if is_service(call) {
            self.free(service, None);
        }
    }

    /// Takes back what a stored change no longer uses.
    pub(crate) fn after_write(&self, call: &Call<'_>, before: Option<&Json>, after: Option<&Json>) {
        if let (true, Some(before)) = (is_service(call), before) {
            self.free(before, after);
        }
    }

    fn free(&self, service: &Json, kept: Option<&Json>) {
        let mut taken = self.taken.lock();
        let kept_address = kept.and_then(address_of);
        if let Some(address) = address_of(service).filter(|a| Some(*a) != kept_address) {
            taken.addresses.remove(&address);
        }
        let kept_ports = kept.map(node_ports).unwrap_or_default();
        for port in node_ports(service).into_iter().filter(|p| !kept_ports.contains(p)) {
            taken.ports.remove(&port);
        }
    }
}
