//! Defaults and validation of services. [`super::service`] allocates addresses and ports.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{PLAIN, Strategy};
use crate::registry::{
    json::{Json, default, default_text, list, object, object_mut, objects, objects_mut, text, text_at},
    objectmeta,
    validation::{
        Errors,
        at::{CIDR, ObjectAt, parse_cidr},
        names::{self, NameRule},
    },
};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(super) static SERVICE: Strategy = Strategy {
    names: NameRule::Label,
    default: default_service,
    prepare_update: |new, old| {
        let kind = text_at(new, &["spec", "type"]).to_owned();
        let before = object(old, "spec").cloned().unwrap_or_default();
        let was = text(&before, "type").to_owned();
        let spec = object_mut(new, "spec");
        if kind == "ExternalName" {
            if was != "ExternalName" && spec.get("clusterIP") == before.get("clusterIP") {
                release(spec);
            }
            return;
        }
        // Old clients set `clusterIP` only, so its change is copied to `clusterIPs`.
        if text(spec, "clusterIP") != text(&before, "clusterIP")
            && spec.get("clusterIPs") == before.get("clusterIPs")
            && !text(spec, "clusterIP").is_empty()
        {
            let address = text(spec, "clusterIP").to_owned();
            spec.insert("clusterIPs".into(), json!([address]));
        }
        if was != "ExternalName" && text(spec, "clusterIP").is_empty() {
            for key in ["clusterIP", "clusterIPs"] {
                if let Some(value) = before.get(key) {
                    spec.insert(key.into(), value.clone());
                }
            }
        }
        let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
        let was_external = matches!(was.as_str(), "NodePort" | "LoadBalancer");
        if !external && was_external {
            drop_external(spec, &before);
        }
        // Only load balancers have a load balancer status.
        if kind != "LoadBalancer" && was == "LoadBalancer" {
            new.insert("status".into(), json!({"loadBalancer": {}}));
            return;
        }
        if external && was_external {
            keep_node_ports(spec, &before);
        }
    },
    validate: |service, errors| validate_service(service, errors),
    validate_update: |new, old, errors| {
        let addresses =
            |s: &Json| object(s, "spec").map(|s| list(s, "clusterIPs").to_vec()).unwrap_or_default();
        let (after, before) = (addresses(new), addresses(old));
        let changed = !before.is_empty() && after.first() != before.first();
        if changed && text_at(new, &["spec", "type"]) != "ExternalName" {
            errors.invalid("spec.clusterIPs[0]", Value::Array(after), "may not change once set");
        }
        validate_service(new, errors);
    },
    warnings,
    ..PLAIN
};

/// Removes the fields that an `ExternalName` service does not have.
fn release(spec: &mut Json) {
    for key in [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "internalTrafficPolicy",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
    ] {
        spec.remove(key);
    }
    for port in objects_mut(spec, "ports") {
        port.remove("nodePort");
    }
}

fn drop_external(spec: &mut Json, before: &Json) {
    for key in ["externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"] {
        if spec.get(key) == before.get(key) {
            spec.remove(key);
        }
    }
    let old: Vec<Option<Value>> = objects(before, "ports").map(|p| p.get("nodePort").cloned()).collect();
    for port in objects_mut(spec, "ports") {
        if old.contains(&port.get("nodePort").cloned()) {
            port.remove("nodePort");
        }
    }
}

/// Keeps the node ports of ports that do not specify one.
fn keep_node_ports(spec: &mut Json, before: &Json) {
    let old: Vec<Json> = objects(before, "ports").cloned().collect();
    for port in objects_mut(spec, "ports") {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0 {
            continue;
        }
        let twin = old
            .iter()
            .find(|o| o.get("port") == port.get("port") && text(o, "protocol") == text(port, "protocol"));
        if let Some(number) = twin.and_then(|t| t.get("nodePort")) {
            port.insert("nodePort".into(), number.clone());
        }
    }
}

fn default_service(service: &mut Json) {
    let spec = object_mut(service, "spec");
    default_text(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        let client = object_mut(object_mut(spec, "sessionAffinityConfig"), "clientIP");
        default(client, "timeoutSeconds", 10_800);
    } else if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    }
    default_text(spec, "type", "ClusterIP");
    if text(spec, "type") == "LoadBalancer" {
        let modes = object_mut(object_mut(service, "status"), "loadBalancer");
        for ingress in objects_mut(modes, "ingress") {
            if !text(ingress, "ip").is_empty() {
                default_text(ingress, "ipMode", "VIP");
            }
        }
    }
    let spec = object_mut(service, "spec");
    for port in objects_mut(spec, "ports") {
        default_text(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        if port.get("targetPort").is_none_or(|t| t == 0 || t == "") {
            port.insert("targetPort".into(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        default_text(spec, "internalTrafficPolicy", "Cluster");
    }
}

/// Sets IP families and addresses from the cluster, after the client's own fields were tracked.
pub(super) fn complete(spec: &mut Json) {
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() && list(spec, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".into(), json!([address]));
    }
    if matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
        if list(spec, "ipFamilies").is_empty() {
            spec.insert("ipFamilies".into(), json!(["IPv4"]));
        }
        default_text(spec, "ipFamilyPolicy", "SingleStack");
    }
}

fn validate_service(service: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(service, "spec").unwrap_or(&empty);
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    match kind {
        "ExternalName" => {
            if !list(spec, "clusterIPs").is_empty() {
                errors.forbidden("spec.clusterIPs", "may not be set for ExternalName services");
            }
            let name = text(spec, "externalName");
            if name.is_empty() {
                errors.required("spec.externalName", "");
            } else {
                for why in names::subdomain(name.trim_end_matches('.')) {
                    errors.invalid("spec.externalName", name, &why);
                }
            }
        }
        "NodePort" | "LoadBalancer" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.invalid("spec.clusterIPs[0]", "None", &why);
        }
        _ => {}
    }
    validate_ports(spec, errors);
    objectmeta::validate_labels(object(spec, "selector"), "spec.selector", errors);
    let affinity = text(spec, "sessionAffinity");
    if !matches!(affinity, "ClientIP" | "None") {
        errors.not_supported("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    }
    let timeout = ObjectAt::new(spec, "spec")
        .child("sessionAffinityConfig")
        .and_then(|config| config.child("clientIP"));
    if let Some(seconds) = timeout.and_then(|client| client.number("timeoutSeconds"))
        && affinity == "ClientIP"
        && !(1..=86_400).contains(&seconds)
    {
        let why = "must be greater than 0 and less than 86400";
        errors.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, why);
    }
    for (n, ip) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let field = format!("spec.externalIPs[{n}]");
        match ip.parse::<std::net::IpAddr>() {
            Err(_) => {
                errors.invalid(field, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
            }
            Ok(ip_) if ip_.is_loopback() => {
                errors.invalid(field, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
            }
            Ok(_) => {}
        }
    }
    if kind.is_empty() {
        errors.required("spec.type", "");
    } else if !TYPES.contains(&kind) {
        errors.not_supported("spec.type", kind, TYPES);
    }
    for (n, ip) in list(spec, "clusterIPs").iter().filter_map(Value::as_str).enumerate() {
        if ip != "None" && ip.parse::<std::net::IpAddr>().is_err() {
            errors.invalid(
                format!("spec.clusterIPs[{n}]"),
                ip,
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            );
        }
    }
    validate_kind(&ObjectAt::new(spec, "spec"), kind, errors);
    let policy = text(spec, "externalTrafficPolicy");
    if !policy.is_empty()
        && !matches!(kind, "NodePort" | "LoadBalancer")
        && list(spec, "externalIPs").is_empty()
    {
        errors.invalid(
            "spec.externalTrafficPolicy",
            policy,
            "may only be set for externally-accessible services",
        );
    }
}

/// Validates the fields that depend on the service type.
fn validate_kind(spec: &ObjectAt<'_>, kind: &str, errors: &mut Errors) {
    for (n, range) in spec.list("loadBalancerSourceRanges").iter().filter_map(Value::as_str).enumerate() {
        if parse_cidr(range.trim()).is_none() {
            // Upstream writes this field with a capital.
            errors.invalid(format!("spec.LoadBalancerSourceRanges[{n}]"), range, CIDR);
        }
    }
    if spec.has("loadBalancerClass") && kind != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.forbidden(spec.path("loadBalancerClass"), why);
    }
    if kind == "ClusterIP" {
        for port in spec.each("ports") {
            if port.number("nodePort").unwrap_or(0) != 0 {
                errors.forbidden(port.path("nodePort"), "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    if spec.text("ipFamilyPolicy") == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.invalid(spec.path("ipFamilyPolicy"), "RequireDualStack", why);
    }
    for (n, family) in spec.list("ipFamilies").iter().filter_map(Value::as_str).enumerate() {
        if family == "IPv6" {
            let field = format!("{}[{n}]", spec.path("ipFamilies"));
            errors.invalid(field, family, "not configured on this cluster");
        }
    }
    spec.choice("internalTrafficPolicy", &["Cluster", "Local"], errors);
    if matches!(kind, "NodePort" | "LoadBalancer") {
        spec.choice("externalTrafficPolicy", &["Cluster", "Local"], errors);
    }
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.choice("trafficDistribution", &distributions, errors);
}

/// Returns warnings about an accepted service.
pub(super) fn warnings(service: &Json, _: Option<&Json>, warnings: &mut Vec<String>) {
    let Some(spec) = object(service, "spec") else { return };
    if text(spec, "trafficDistribution") == "PreferClose" {
        warnings
            .push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
    }
    if !text(spec, "externalName").is_empty() && text(spec, "type") != "ExternalName" {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
}

fn validate_ports(spec: &Json, errors: &mut Errors) {
    let several = list(spec, "ports").len() > 1;
    let mut names_seen = BTreeSet::new();
    for (n, port) in objects(spec, "ports").enumerate() {
        let at = format!("spec.ports[{n}]");
        let name = text(port, "name");
        if name.is_empty() {
            if several {
                errors.required(format!("{at}.name"), "");
            }
        } else {
            for why in names::label(name) {
                errors.invalid(format!("{at}.name"), name, &why);
            }
            if !names_seen.insert(name) {
                errors.duplicate(format!("{at}.name"), name);
            }
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65_535).contains(&number) {
            errors.invalid(format!("{at}.port"), number, "must be between 1 and 65535, inclusive");
        }
        let protocol = text(port, "protocol");
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            errors.not_supported(format!("{at}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        }
        ObjectAt::new(port, at.as_str()).port("targetPort", errors);
    }
    let mut seen = BTreeSet::new();
    for (n, port) in objects(spec, "ports").enumerate() {
        let key = (port.get("port").and_then(Value::as_i64), text(port, "protocol"));
        if !seen.insert(key) {
            let shown = json!({
                "Name": "", "Protocol": text(port, "protocol"), "AppProtocol": null,
                "Port": port.get("port"), "TargetPort": 0, "NodePort": 0,
            });
            errors.duplicate(format!("spec.ports[{n}]"), shown);
        }
    }
}
