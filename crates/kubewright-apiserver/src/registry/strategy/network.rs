//! Strategies of the networking and discovery groups.

use serde_json::{Value, json};

use super::{PLAIN, Strategy, templates::validate_selector};
use crate::registry::{
    json::{Json, default, default_text, list, object, object_mut, objects, objects_mut, text},
    validation::{
        Errors,
        at::{ADDRESS, CIDR, ObjectAt, parse_cidr},
        names,
    },
};

pub(super) static INGRESS: Strategy = Strategy {
    validate: validate_ingress,
    validate_update: |new, _, errors| validate_ingress(new, errors),
    ..PLAIN
};

fn validate_ingress(ingress: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(ingress, "spec").unwrap_or(&empty);
    ObjectAt::new(spec, "spec").named("ingressClassName", names::subdomain, errors);
    if list(spec, "rules").is_empty() && !spec.contains_key("defaultBackend") {
        errors.invalid("spec", Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(backend) = object(spec, "defaultBackend") {
        validate_backend(backend, "spec.defaultBackend", errors);
    }
    for (n, tls) in objects(spec, "tls").enumerate() {
        for (m, host) in list(tls, "hosts").iter().filter_map(Value::as_str).enumerate() {
            validate_host(host, &format!("spec.tls[{n}].hosts[{m}]"), errors);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            for why in names::subdomain(secret) {
                errors.invalid(format!("spec.tls[{n}].secretName"), secret, &why);
            }
        }
    }
    for (n, rule) in objects(spec, "rules").enumerate() {
        let host = text(rule, "host");
        if !host.is_empty() {
            validate_host(host, &format!("spec.rules[{n}].host"), errors);
        }
        let Some(http) = object(rule, "http") else { continue };
        if list(http, "paths").is_empty() {
            errors.required(format!("spec.rules[{n}].http.paths"), "");
        }
        for (m, path) in objects(http, "paths").enumerate() {
            validate_path(path, &format!("spec.rules[{n}].http.paths[{m}]"), errors);
        }
    }
}

fn validate_host(host: &str, field: &str, errors: &mut Errors) {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return errors.invalid(field, host, "must be a DNS name, not an IP address");
    }
    let wildcard = host.contains('*').then(|| host.strip_prefix("*.").unwrap_or_default());
    let why = match wildcard {
        Some(rest) if !names::subdomain(rest).is_empty() => vec![
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
             consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character \
             (e.g. '*.example.com', regex used for validation is \
             '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        ],
        Some(_) => Vec::new(),
        None => names::subdomain(host),
    };
    for why in why {
        errors.invalid(field, host, &why);
    }
}

fn validate_path(path: &Json, at: &str, errors: &mut Errors) {
    let route = text(path, "path");
    match text(path, "pathType") {
        "" => {
            // Without a type the path cannot be validated further.
            errors.required(format!("{at}.pathType"), "pathType must be specified");
            return;
        }
        "Exact" | "Prefix" => {
            if !route.starts_with('/') {
                errors.invalid(format!("{at}.path"), route, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if route.contains(bad) {
                    errors.invalid(format!("{at}.path"), route, &format!("must not contain '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !route.is_empty() && !route.starts_with('/') {
                errors.invalid(format!("{at}.path"), route, "must be an absolute path");
            }
        }
        other => errors.not_supported(
            format!("{at}.pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
        ),
    }
    let empty = Json::new();
    validate_backend(object(path, "backend").unwrap_or(&empty), &format!("{at}.backend"), errors);
}

fn validate_backend(backend: &Json, at: &str, errors: &mut Errors) {
    match (object(backend, "service"), backend.contains_key("resource")) {
        (None, false) => errors.invalid(at, "", "resource or service backend is required"),
        (Some(_), true) => errors.invalid(at, "", "cannot set both resource and service backends"),
        (Some(service), false) => {
            let name = text(service, "name");
            if name.is_empty() {
                errors.required(format!("{at}.service.name"), "");
            } else {
                for why in names::label1035(name) {
                    errors.invalid(format!("{at}.service.name"), name, &why);
                }
            }
            let port = object(service, "port");
            let (number, name) = (
                port.and_then(|p| p.get("number")).and_then(Value::as_i64).unwrap_or(0),
                port.map(|p| text(p, "name")).unwrap_or_default(),
            );
            match (number, name.is_empty()) {
                (0, true) => errors.required(at, "port name or number is required"),
                (n, false) if n != 0 => errors.invalid(at, "", "cannot set both port name & port number"),
                (n, true) if !(1..=65_535).contains(&n) => {
                    errors.invalid(
                        format!("{at}.service.port.number"),
                        n,
                        "must be between 1 and 65535, inclusive",
                    );
                }
                _ => {}
            }
        }
        (None, true) => {}
    }
}

pub(super) static INGRESS_CLASS: Strategy = Strategy {
    default: |object| {
        if let Some(parameters) =
            object_mut(object, "spec").get_mut("parameters").and_then(Value::as_object_mut)
        {
            default_text(parameters, "scope", "Cluster");
        }
    },
    validate: |class, errors| {
        let class = ObjectAt::new(class, "");
        let Some(spec) = class.child("spec") else {
            return errors.required("spec.controller", "");
        };
        spec.required("controller", errors);
        spec.named("controller", names::domain_prefixed_path, errors);
        if let Some(parameters) = spec.child("parameters") {
            parameters.required("kind", errors);
            parameters.required("name", errors);
            parameters.choice("scope", &["Cluster", "Namespace"], errors);
        }
    },
    ..PLAIN
};

pub(super) static NETWORK_POLICY: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        for (list, _) in [("ingress", "from"), ("egress", "to")] {
            for rule in objects_mut(spec, list) {
                for port in objects_mut(rule, "ports") {
                    default_text(port, "protocol", "TCP");
                }
            }
        }
        if list(spec, "policyTypes").is_empty() {
            let types = if list(spec, "egress").is_empty() {
                json!(["Ingress"])
            } else {
                json!(["Ingress", "Egress"])
            };
            spec.insert("policyTypes".into(), types);
        }
    },
    validate: validate_policy,
    validate_update: |new, _, errors| validate_policy(new, errors),
    ..PLAIN
};

fn validate_policy(policy: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(policy, "spec").unwrap_or(&empty);
    if let Some(selector) = object(spec, "podSelector") {
        validate_selector(selector, "spec.podSelector", errors);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (n, rule) in objects(spec, direction).enumerate() {
            let at = format!("spec.{direction}[{n}]");
            for (m, port) in objects(rule, "ports").enumerate() {
                validate_policy_port(port, &format!("{at}.ports[{m}]"), errors);
            }
            for (m, peer) in objects(rule, peers).enumerate() {
                validate_peer(peer, &format!("{at}.{peers}[{m}]"), errors);
            }
        }
    }
    for (n, kind) in list(spec, "policyTypes").iter().enumerate() {
        if kind != "Ingress" && kind != "Egress" {
            errors.not_supported(format!("spec.policyTypes[{n}]"), kind.clone(), &["Ingress", "Egress"]);
        }
    }
}

fn validate_policy_port(port: &Json, at: &str, errors: &mut Errors) {
    let protocol = text(port, "protocol");
    if !matches!(protocol, "" | "TCP" | "UDP" | "SCTP") {
        errors.not_supported(format!("{at}.protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    match port.get("port") {
        Some(Value::Number(n)) => {
            if !n.as_i64().is_some_and(|n| (1..=65_535).contains(&n)) {
                errors.invalid(format!("{at}.port"), n.clone(), "must be between 1 and 65535, inclusive");
            }
            if let (Some(first), Some(last)) = (n.as_i64(), port.get("endPort").and_then(Value::as_i64)) {
                if last < first {
                    let why = "must be greater than or equal to `port`";
                    errors.invalid(format!("{at}.endPort"), last, why);
                }
                if !(1..=65_535).contains(&last) {
                    errors.invalid(format!("{at}.endPort"), last, "must be between 1 and 65535, inclusive");
                }
            }
        }
        Some(Value::String(name)) => {
            if let Some(end) = port.get("endPort") {
                let why = "may not be specified when `port` is non-numeric";
                errors.invalid(format!("{at}.endPort"), end.clone(), why);
            }
            for why in names::port_name(name) {
                errors.invalid(format!("{at}.port"), name.as_str(), &why);
            }
        }
        _ => {
            if let Some(end) = port.get("endPort") {
                let why = "may not be specified when `port` is not specified";
                errors.invalid(format!("{at}.endPort"), end.clone(), why);
            }
        }
    }
}

fn validate_peer(peer: &Json, at: &str, errors: &mut Errors) {
    let kinds = ["podSelector", "namespaceSelector", "ipBlock"];
    if !kinds.iter().any(|k| peer.contains_key(*k)) {
        errors.required(at, "must specify a peer");
    }
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = object(peer, key) {
            validate_selector(selector, &format!("{at}.{key}"), errors);
        }
    }
    if peer.contains_key("ipBlock") && peer.len() > 1 {
        return errors.forbidden(at, "may not specify both ipBlock and another peer");
    }
    let Some(block) = object(peer, "ipBlock") else { return };
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        errors.required(format!("{at}.ipBlock.cidr"), "");
        return;
    }
    let Some(outer) = parse_cidr(cidr) else {
        errors.invalid(format!("{at}.ipBlock.cidr"), cidr, CIDR);
        return;
    };
    let beyond = u128::MAX.checked_shr(outer.1).unwrap_or(0);
    if outer.0 & beyond != 0 {
        let why = "must not have bits set beyond the prefix length";
        errors.invalid(format!("{at}.ipBlock.cidr"), cidr, why);
    }
    for (n, except) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
        let field = format!("{at}.ipBlock.except[{n}]");
        match parse_cidr(except) {
            None => errors.invalid(field, except, CIDR),
            Some(inner) => {
                let inside = inner.1 > outer.1 && mask(inner.0, outer.1) == mask(outer.0, outer.1);
                if !inside {
                    errors.invalid(field, except, "must be a strict subset of `cidr`");
                }
            }
        }
    }
}

fn mask(address: u128, length: u32) -> u128 {
    if length == 0 { 0 } else { address >> (128 - length) }
}

pub(super) static ENDPOINT_SLICE: Strategy = Strategy {
    default: |object| {
        for port in objects_mut(object, "ports") {
            default(port, "name", "");
            default_text(port, "protocol", "TCP");
        }
    },
    validate: |slice, errors| {
        let kind = text(slice, "addressType");
        if kind.is_empty() {
            errors.required("addressType", "");
        } else if !matches!(kind, "FQDN" | "IPv4" | "IPv6") {
            errors.not_supported("addressType", kind, &["FQDN", "IPv4", "IPv6"]);
        }
        validate_slice(&ObjectAt::new(slice, ""), kind, errors);
    },
    validate_update: |new, old, errors| {
        // Validates by the old type: a changed type is one error, not one per address.
        validate_slice(&ObjectAt::new(new, ""), text(old, "addressType"), errors);
        if new.get("addressType") != old.get("addressType") {
            errors.invalid("addressType", Value::Null, "field is immutable");
        }
    },
    ..PLAIN
};

fn validate_slice(slice: &ObjectAt<'_>, kind: &str, errors: &mut Errors) {
    const MAX_ENDPOINTS: usize = 1000;
    const MAX_ADDRESSES: usize = 100;
    let mut seen: Vec<&str> = Vec::new();
    for port in slice.each("ports") {
        port.choice("protocol", &["SCTP", "TCP", "UDP"], errors);
        port.named("name", names::label, errors);
        let name = port.text("name");
        if seen.contains(&name) {
            errors.duplicate(port.path("name"), name);
        }
        seen.push(name);
        let number = port.number("port").unwrap_or(1);
        if !(1..=65_535).contains(&number) {
            errors.invalid(port.path("port"), number, "must be between 1 and 65535, inclusive");
        }
    }
    let endpoints = slice.list("endpoints").len();
    if endpoints > MAX_ENDPOINTS {
        return errors.too_many("endpoints", endpoints, MAX_ENDPOINTS);
    }
    for endpoint in slice.each("endpoints") {
        let addresses = endpoint.list("addresses");
        if addresses.is_empty() {
            errors.required(endpoint.path("addresses"), "");
        } else if addresses.len() > MAX_ADDRESSES {
            errors.too_many(endpoint.path("addresses"), addresses.len(), MAX_ADDRESSES);
        }
        for (n, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            let field = format!("{}[{n}]", endpoint.path("addresses"));
            validate_slice_address(address, kind, &field, errors);
        }
        endpoint.named("hostname", names::label, errors);
        endpoint.named("nodeName", names::subdomain, errors);
    }
}

fn validate_slice_address(address: &str, kind: &str, field: &str, errors: &mut Errors) {
    match (kind, address.parse::<std::net::IpAddr>()) {
        ("FQDN", _) => {
            for why in names::subdomain(address) {
                errors.invalid(field, address, &why);
            }
        }
        (_, Err(_)) => errors.invalid(field, address, ADDRESS),
        ("IPv4", Ok(ip)) if ip.is_ipv6() => errors.invalid(field, address, "must be an IPv4 address"),
        ("IPv6", Ok(ip)) if ip.is_ipv4() => errors.invalid(field, address, "must be an IPv6 address"),
        (_, Ok(ip)) if ip.is_loopback() => {
            errors.invalid(field, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
        }
        _ => {}
    }
}
