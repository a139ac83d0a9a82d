//! Printers of services, endpoints, ingresses and network policies.

use serde_json::Value;

use super::{Printer, or_none, pairs, printer, selector, shown};
use crate::{
    registry::json::{Json, at, list, name, object, objects, text, text_at},
    table::{
        age::age,
        columns::{AGE, NAME, text as column, wide},
    },
};

pub(super) static SERVICE: Printer = printer(
    &[
        NAME,
        column("Type"),
        column("Cluster-IP"),
        column("External-IP"),
        column("Port(s)"),
        AGE,
        wide("Selector"),
    ],
    |service, now| {
        let empty = Json::new();
        let spec = object(service, "spec").unwrap_or(&empty);
        let ports: Vec<String> = objects(spec, "ports")
            .map(|p| match shown(p.get("nodePort")).as_str() {
                "" | "0" => format!("{}/{}", shown(p.get("port")), text(p, "protocol")),
                node => format!("{}:{node}/{}", shown(p.get("port")), text(p, "protocol")),
            })
            .collect();
        let address = list(spec, "clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
        vec![
            name(service).into(),
            text(spec, "type").into(),
            or_none(address),
            or_none(&external(service, spec)),
            or_none(&ports.join(",")),
            age(service, now),
            pairs(object(spec, "selector")),
        ]
    },
);

fn external(service: &Json, spec: &Json) -> String {
    let ips: Vec<&str> = list(spec, "externalIPs").iter().filter_map(Value::as_str).collect();
    match text(spec, "type") {
        "ExternalName" => text(spec, "externalName").to_owned(),
        "LoadBalancer" => {
            let mut all = balancers(service);
            all.extend(ips.iter().map(|ip| (*ip).to_owned()));
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ => ips.join(","),
    }
}

fn balancers(object_: &Json) -> Vec<String> {
    at(object_, &["status", "loadBalancer"])
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|b| objects(b, "ingress"))
        .map(|i| match text(i, "ip") {
            "" => text(i, "hostname").to_owned(),
            ip => ip.to_owned(),
        })
        .collect()
}

pub(super) static ENDPOINTS: Printer = printer(&[NAME, column("Endpoints"), AGE], |endpoints, now| {
    let mut all = Vec::new();
    for subset in objects(endpoints, "subsets") {
        for address in objects(subset, "addresses") {
            for port in objects(subset, "ports") {
                all.push(format!("{}:{}", text(address, "ip"), shown(port.get("port"))));
            }
        }
    }
    let more = all.len().saturating_sub(3);
    all.truncate(3);
    let mut shown = all.join(",");
    if more > 0 {
        shown = format!("{shown} + {more} more...");
    }
    vec![name(endpoints).into(), or_none(&shown), age(endpoints, now)]
});

pub(super) static INGRESS: Printer = printer(
    &[NAME, column("Class"), column("Hosts"), column("Address"), column("Ports"), AGE],
    |ingress, now| {
        let empty = Json::new();
        let spec = object(ingress, "spec").unwrap_or(&empty);
        let mut hosts: Vec<&str> =
            objects(spec, "rules").map(|r| text(r, "host")).filter(|h| !h.is_empty()).collect();
        let more = hosts.len().saturating_sub(3);
        hosts.truncate(3);
        let hosts = match (hosts.join(","), more) {
            (text, _) if text.is_empty() => "*".to_owned(),
            (text, 0) => text,
            (text, more) => format!("{text} + {more} more..."),
        };
        let ports = if list(spec, "tls").is_empty() { "80" } else { "80, 443" };
        vec![
            name(ingress).into(),
            or_none(text(spec, "ingressClassName")),
            hosts.into(),
            balancers(ingress).join(",").into(),
            ports.into(),
            age(ingress, now),
        ]
    },
);

pub(super) static INGRESS_CLASS: Printer =
    printer(&[NAME, column("Controller"), column("Parameters"), AGE], |class, now| {
        let parameters = match (
            text_at(class, &["spec", "parameters", "kind"]),
            text_at(class, &["spec", "parameters", "apiGroup"]),
            text_at(class, &["spec", "parameters", "name"]),
        ) {
            ("", ..) => String::new(),
            (kind, "", name) => format!("{kind}/{name}"),
            (kind, group, name) => format!("{kind}.{group}/{name}"),
        };
        vec![
            name(class).into(),
            text_at(class, &["spec", "controller"]).into(),
            or_none(&parameters),
            age(class, now),
        ]
    });

pub(super) static NETWORK_POLICY: Printer = printer(&[NAME, column("Pod-Selector"), AGE], |policy, now| {
    vec![name(policy).into(), selector(at(policy, &["spec", "podSelector"])), age(policy, now)]
});

pub(super) static ENDPOINT_SLICE: Printer =
    printer(&[NAME, column("AddressType"), column("Ports"), column("Endpoints"), AGE], |slice, now| {
        let ports: Vec<String> = objects(slice, "ports").map(|p| shown(p.get("port"))).collect();
        let addresses: Vec<&str> = objects(slice, "endpoints")
            .flat_map(|e| list(e, "addresses").iter().filter_map(Value::as_str))
            .collect();
        let unset = |text: String| -> Value { if text.is_empty() { "<unset>".into() } else { text.into() } };
        vec![
            name(slice).into(),
            text(slice, "addressType").into(),
            unset(ports.join(",")),
            unset(addresses.join(",")),
            age(slice, now),
        ]
    });
