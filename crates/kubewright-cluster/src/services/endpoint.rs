//! One pod behind one Service.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Node, ObjectReference, Pod, Service, ServicePort},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::pod;

/// The value of `clusterIP` that makes a Service headless.
const HEADLESS: &str = "None";

/// Whether a Service has no address of its own.
pub fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    address.is_empty() || address == HEADLESS
}

/// Whether pods that are not ready are published as if they were.
pub fn publishes_not_ready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// Whether a controller finds the Service's pods: it has a selector and is not an alias of another name.
pub fn has_pods(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
        && spec.type_.as_deref() != Some("ExternalName")
}

/// The address families of a Service, as slices name them.
pub fn address_types(service: &Service) -> Vec<&'static str> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let mut types: Vec<&str> = Vec::new();
    for family in spec.ip_families.iter().flatten() {
        match family.as_str() {
            "IPv4" => types.push("IPv4"),
            "IPv6" => types.push("IPv6"),
            _ => {}
        }
    }
    if types.is_empty() {
        let address = spec.cluster_ip.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        types = match address {
            Some(address) => vec![if address.is_ipv6() { "IPv6" } else { "IPv4" }],
            None => vec!["IPv4", "IPv6"],
        };
    }
    types.dedup();
    types
}

/// Whether a pod has or will have addresses to show. A pod that is being deleted is shown as terminating.
pub fn takes_part(pod: &Pod, terminating_too: bool) -> bool {
    !pod::is_terminal(pod)
        && pod.status.as_ref().is_some_and(|status| {
            status.pod_ip.as_ref().is_some_and(|ip| !ip.is_empty())
                || status.pod_ips.as_ref().is_some_and(|ips| !ips.is_empty())
        })
        && (terminating_too || pod.metadata.deletion_timestamp.is_none())
}

/// The pod's addresses of one family.
pub fn addresses(pod: &Pod, address_type: &str) -> Vec<String> {
    let ips = pod.status.as_ref().and_then(|status| status.pod_ips.as_ref());
    let parsed = ips.into_iter().flatten().filter_map(|ip| ip.ip.parse::<IpAddr>().ok());
    parsed.filter(|ip| ip.is_ipv6() == (address_type == "IPv6")).map(|ip| ip.to_string()).collect()
}

/// The pod's name in DNS, when it asked for one under this Service.
pub fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let name = spec.hostname.as_ref().filter(|name| !name.is_empty())?;
    (spec.subdomain == service.metadata.name && pod.metadata.namespace == service.metadata.namespace)
        .then(|| name.clone())
}

/// How an endpoint points to its pod.
pub fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The pod as an endpoint of a slice.
pub fn of(pod: &Pod, node: Option<&Node>, service: &Service, address_type: &str) -> Endpoint {
    let serving = pod::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = publishes_not_ready(service) || (serving && !terminating);
    let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get("topology.kubernetes.io/zone"));
    Endpoint {
        addresses: addresses(pod, address_type),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(pod, service),
        node_name: pod::node(pod).map(str::to_owned),
        target_ref: Some(reference(pod)),
        zone: zone.filter(|zone| !zone.is_empty()).cloned(),
        ..Endpoint::default()
    }
}

/// The ports that the pod serves for the Service. A named port that the pod does not have is left out.
pub fn ports(pod: &Pod, service: &Service) -> Vec<EndpointPort> {
    let wanted = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let found = wanted.into_iter().flatten().filter_map(|port| {
        Some(EndpointPort {
            app_protocol: port.app_protocol.clone(),
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(find_port(pod, port)?),
            protocol: Some(protocol(port).to_owned()),
        })
    });
    found.collect()
}

/// The protocol of a Service's port.
pub fn protocol(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
}

/// The number of a Service's target port in a pod.
pub fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        Some(IntOrString::Int(number)) if *number != 0 => return Some(*number),
        Some(IntOrString::Int(_)) | None => return Some(port.port),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).filter_map(|container| container.ports.as_ref());
    ports
        .flatten()
        .find(|found| {
            found.name.as_ref() == Some(name) && found.protocol.as_deref().unwrap_or("TCP") == protocol(port)
        })
        .map(|found| found.container_port)
}

/// When the present state of a Service's endpoints came about: the last time that one of its pods turned ready or not,
/// or the Service's creation.
pub fn last_change(service: &Service, pods: &[&Pod]) -> Option<Timestamp> {
    let created = service.metadata.creation_timestamp.as_ref();
    let turned = pods.iter().filter_map(|pod| pod::condition(pod, "Ready")?.last_transition_time.as_ref());
    turned.chain(created).map(|time| time.0).max()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: &Value) -> Pod {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn service(spec: &Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec})).unwrap()
    }

    #[test]
    fn named_ports_are_looked_up_in_containers_and_sidecars_by_protocol() {
        let pod = pod(&json!({"spec": {
            "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 15000}]},
                {"name": "i", "ports": [{"name": "init", "containerPort": 1}]},
            ],
        }}));
        let port = |target: Value, protocol: &str| -> ServicePort {
            serde_json::from_value(json!({"port": 80, "targetPort": target, "protocol": protocol})).unwrap()
        };
        assert_eq!(find_port(&pod, &port(json!("http"), "TCP")), Some(8080));
        assert_eq!(find_port(&pod, &port(json!("side"), "TCP")), Some(15000));
        assert_eq!(find_port(&pod, &port(json!("http"), "UDP")), None);
        assert_eq!(find_port(&pod, &port(json!("init"), "TCP")), None);
        assert_eq!(find_port(&pod, &port(json!(9), "TCP")), Some(9));
    }

    #[test]
    fn a_terminating_pod_serves_but_is_not_ready_unless_published() {
        let leaving = pod(&json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                       "conditions": [{"type": "Ready", "status": "True"}]},
        }));
        let conditions = |service: &Service| {
            let found = of(&leaving, None, service, "IPv4").conditions.unwrap();
            (found.ready, found.serving, found.terminating)
        };
        assert_eq!(conditions(&service(&json!({}))), (Some(false), Some(true), Some(true)));
        let published = service(&json!({"publishNotReadyAddresses": true}));
        assert_eq!(conditions(&published), (Some(true), Some(true), Some(true)));
        assert_eq!(addresses(&leaving, "IPv6"), ["fd00::1"]);
    }

    #[test]
    fn families_come_from_the_service_or_its_address() {
        assert_eq!(address_types(&service(&json!({"ipFamilies": ["IPv6", "IPv4"]}))), ["IPv6", "IPv4"]);
        assert_eq!(address_types(&service(&json!({"clusterIP": "fd00::1"}))), ["IPv6"]);
        assert_eq!(address_types(&service(&json!({"clusterIP": "None"}))), ["IPv4", "IPv6"]);
    }
}
