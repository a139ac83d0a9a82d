//! Allocation of cluster IPs and node ports to services.

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

/// The range 10.96.0.0/12, kubeadm's default.
const FIRST_ADDRESS: u32 = 0x0a60_0001;
const LAST_ADDRESS: u32 = 0x0a6f_fffe;
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

/// Allocator of cluster IPs and node ports.
#[derive(Debug, Default)]
pub struct Allocator {
    allocated: Mutex<Allocated>,
}

/// Allocated addresses and ports. The sets are persistent, so a copy to roll back to costs two reference
/// counts.
#[derive(Debug, Default)]
struct Allocated {
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

impl Allocated {
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
    /// Reserves the first address, for the `kubernetes` service.
    pub fn reserve_first(&self) -> String {
        let mut allocated = self.allocated.lock();
        allocated.addresses.insert(FIRST_ADDRESS);
        allocated.next_address = allocated.next_address.max(1);
        Ipv4Addr::from(FIRST_ADDRESS).to_string()
    }

    /// Allocates the addresses and ports of stored services after a restart.
    pub fn restore(&self, registry: &Registry) {
        let mut allocated = self.allocated.lock();
        for (_, service) in registry.storage.snapshot().collection("services").range(None, None) {
            let service = service.decode();
            allocated.addresses.extend(address_of(&service));
            allocated.ports.extend(node_ports(&service));
        }
    }

    /// Allocates the requested or missing addresses and ports of a new service.
    pub fn prepare_create(&self, _: &Registry, call: &Call<'_>, service: &mut Json) -> Result<(), Status> {
        if !is_service(call) {
            return Ok(());
        }
        self.assign(call, service, None)
    }

    /// Keeps the addresses and ports of an updated service, and allocates newly needed ones.
    pub fn prepare_update(
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
        let current_address = old.and_then(address_of);
        let current_ports = old.map(node_ports).unwrap_or_default();
        let spec = object_mut(service, "spec");
        super::services::complete(spec);
        let kind = text(spec, "type").to_owned();
        let mut errors = Errors::default();
        let mut allocated = self.allocated.lock();
        let before = (allocated.addresses.clone(), allocated.ports.clone());
        let requested = text(spec, "clusterIP").to_owned();
        let needs_address = matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer");
        if needs_address {
            match requested.parse::<Ipv4Addr>().map(u32::from) {
                _ if requested.is_empty() => match allocated.free_address() {
                    Some(address) => {
                        let address = Ipv4Addr::from(address).to_string();
                        spec.insert("clusterIP".into(), address.as_str().into());
                        spec.insert("clusterIPs".into(), json!([address]));
                    }
                    None => return Err(Status::internal("no service address is free")),
                },
                // Validation rejects any change of the address.
                Ok(_) if current_address.is_some() => {}
                Ok(address) if !(FIRST_ADDRESS..=LAST_ADDRESS).contains(&address) => errors.invalid(
                    "spec.clusterIPs",
                    json!([requested]),
                    "failed to allocate IP: the provided IP is not in the valid range. The range of valid IPs is \
                     10.96.0.0/12",
                ),
                Ok(address) => {
                    if allocated.addresses.insert(address).is_some() {
                        let why = format!("failed to allocate IP {requested}: provided IP is already allocated");
                        errors.invalid("spec.clusterIPs", json!([requested]), &why);
                    }
                }
                Err(_) => {}
            }
        }
        let wants_ports = kind == "NodePort"
            || (kind == "LoadBalancer"
                && spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool) != Some(false));
        for (n, port) in objects_mut(spec, "ports").enumerate() {
            let requested = port.get("nodePort").and_then(Value::as_u64).and_then(|p| u16::try_from(p).ok());
            match requested.filter(|p| *p > 0) {
                Some(requested) if current_ports.contains(&requested) => {}
                Some(requested) if !(FIRST_PORT..=LAST_PORT).contains(&requested) => errors.invalid(
                    format!("spec.ports[{n}].nodePort"),
                    requested,
                    "provided port is not in the valid range. The range of valid ports is 30000-32767",
                ),
                Some(requested) if allocated.ports.insert(requested).is_some() => errors.invalid(
                    format!("spec.ports[{n}].nodePort"),
                    requested,
                    "provided port is already allocated",
                ),
                None if wants_ports => {
                    if let Some(free) = allocated.free_port() {
                        port.insert("nodePort".into(), free.into());
                    }
                }
                _ => {}
            }
        }
        let wants_health = kind == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
        if wants_health
            && spec.get("healthCheckNodePort").is_none()
            && let Some(free) = allocated.free_port()
        {
            spec.insert("healthCheckNodePort".into(), free.into());
        }
        if errors.is_empty() {
            return Ok(());
        }
        // A rejected service keeps no allocations.
        (allocated.addresses, allocated.ports) = before;
        Err(call.invalid(&name, &errors))
    }

    /// Releases the allocations of a service that was not stored.
    pub fn release(&self, call: &Call<'_>, service: &Json) {
        if is_service(call) {
            self.free(service, None);
        }
    }

    /// Releases the allocations that a stored change no longer uses.
    pub fn after_write(&self, call: &Call<'_>, before: Option<&Json>, after: Option<&Json>) {
        if let (true, Some(before)) = (is_service(call), before) {
            self.free(before, after);
        }
    }

    fn free(&self, service: &Json, kept: Option<&Json>) {
        let mut allocated = self.allocated.lock();
        let kept_address = kept.and_then(address_of);
        if let Some(address) = address_of(service).filter(|a| Some(*a) != kept_address) {
            allocated.addresses.remove(&address);
        }
        let kept_ports = kept.map(node_ports).unwrap_or_default();
        for port in node_ports(service).into_iter().filter(|p| !kept_ports.contains(p)) {
            allocated.ports.remove(&port);
        }
    }
}
