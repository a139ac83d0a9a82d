//! Validation of pod specs, in pods and in templates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    containers::{self, Pod, Role},
    podvolumes, resources, scheduling,
};
use crate::registry::{
    json::Json,
    validation::{
        Errors,
        at::{ADDRESS, ObjectAt},
        names,
    },
};

/// Validates a pod spec at the path `field`.
pub(super) fn validate_spec(spec: &Json, field: &str, errors: &mut Errors) {
    let spec = ObjectAt::new(spec, field);
    let volumes = podvolumes::validate(&spec, errors);
    let claims = validate_resource_claims(&spec, errors);
    let grace = spec.number("terminationGracePeriodSeconds");
    validate_containers(&spec, &Pod { volumes, claims, grace }, errors);
    if let Some(resources) = spec.child("resources") {
        resources::validate(&resources, &BTreeSet::new(), errors);
    }
    validate_host_network(&spec, errors);
    for (key, allowed) in [
        ("restartPolicy", &["Always", "OnFailure", "Never"][..]),
        ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ] {
        spec.required(key, errors);
        spec.choice(key, allowed, errors);
    }
    scheduling::validate_node_labels(&spec, errors);
    validate_security(&spec, errors);
    if spec.is("shareProcessNamespace") && spec.is("hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(spec.path("shareProcessNamespace"), true, why);
    }
    scheduling::validate_affinity(&spec, errors);
    validate_dns(&spec, errors);
    scheduling::validate_gates(&spec, errors);
    scheduling::validate_spread(&spec, errors);
    spec.named("serviceAccountName", names::subdomain, errors);
    spec.named("nodeName", names::subdomain, errors);
    if let Some(seconds) = spec.number("activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.invalid(spec.path("activeDeadlineSeconds"), seconds, why);
    }
    spec.named("hostname", names::label, errors);
    spec.named("subdomain", names::label, errors);
    scheduling::validate_tolerations(&spec, errors);
    validate_host_aliases(&spec, errors);
    spec.named("priorityClassName", names::subdomain, errors);
    spec.named("runtimeClassName", names::subdomain, errors);
    spec.choice("preemptionPolicy", &["PreemptLowerPriority", "Never"], errors);
    containers::validate_grace(&spec, errors);
    validate_os(&spec, errors);
}

/// Validates rules for pods that do not apply to templates.
pub(super) fn validate_pod_only(spec: &Json, errors: &mut Errors) {
    let spec = ObjectAt::new(spec, "spec");
    for role in [Role::Regular, Role::Init] {
        for container in spec.each(role.key()) {
            let image = container.text("image");
            if image != image.trim() {
                let why = "must not have leading or trailing whitespace";
                errors.invalid(container.path("image"), image, why);
            }
        }
    }
    podvolumes::validate_tokens_have_an_account(&spec, errors);
}

fn validate_containers(spec: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    if spec.list("containers").is_empty() {
        errors.required(spec.path("containers"), "");
    }
    let mut names = BTreeSet::new();
    for role in [Role::Regular, Role::Init, Role::Ephemeral] {
        let mut host_ports = BTreeSet::new();
        for container in spec.each(role.key()) {
            containers::validate(&container, role, pod, errors);
            let name = container.text("name");
            if !name.is_empty() && !names.insert(name) {
                errors.duplicate(container.path("name"), name);
            }
            if role == Role::Regular {
                containers::validate_host_ports(&container, &mut host_ports, errors);
            }
        }
    }
}

fn validate_resource_claims<'a>(spec: &ObjectAt<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for claim in spec.each("resourceClaims") {
        let name = claim.text("name");
        if name.is_empty() {
            errors.required(claim.path("name"), "");
        } else if !seen.insert(name) {
            errors.duplicate(claim.path("name"), name);
        } else {
            claim.named("name", names::label, errors);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = sources.iter().filter(|source| claim.has(source)).count();
        if given != 1 {
            let part = |key: &str| claim.object.get(key).cloned().unwrap_or_default();
            let shown = json!({
                "Name": name,
                "ResourceClaimName": part("resourceClaimName"),
                "ResourceClaimTemplateName": part("resourceClaimTemplateName"),
            });
            let why = if given == 0 {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            } else {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            };
            errors.invalid(&claim.field, shown, why);
        }
    }
    seen
}

/// Validates that host ports equal container ports on the host network.
fn validate_host_network(spec: &ObjectAt<'_>, errors: &mut Errors) {
    if !spec.is("hostNetwork") {
        return;
    }
    for role in [Role::Regular, Role::Init] {
        for port in spec.each(role.key()).flat_map(|container| container.each("ports").collect::<Vec<_>>()) {
            let (host, own) = (port.number("hostPort").unwrap_or(0), port.number("containerPort"));
            if host != 0 && Some(host) != own {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(port.path("hostPort"), host, why);
            }
        }
    }
}

fn validate_security(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let Some(context) = spec.child("securityContext") else { return };
    containers::validate_ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    for (n, group) in context.list("supplementalGroups").iter().enumerate() {
        if !group.as_i64().is_some_and(|group| (0..=i64::from(i32::MAX)).contains(&group)) {
            errors.invalid(
                format!("{}[{n}]", context.path("supplementalGroups")),
                group.clone(),
                "must be between 0 and 2147483647, inclusive",
            );
        }
    }
    validate_sysctls(&context, errors);
    context.choice("fsGroupChangePolicy", &["Always", "OnRootMismatch"], errors);
    containers::validate_profiles(&context, errors);
}

fn validate_sysctls(context: &ObjectAt<'_>, errors: &mut Errors) {
    const SHAPE: &str = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut seen = BTreeSet::new();
    for sysctl in context.each("sysctls") {
        let name = sysctl.text("name");
        let alnum = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let part = |part: &str| {
            let bytes = part.as_bytes();
            bytes.first().copied().is_some_and(alnum)
                && bytes.last().copied().is_some_and(alnum)
                && bytes.iter().all(|c| alnum(*c) || matches!(c, b'-' | b'_'))
        };
        if name.is_empty() {
            errors.required(sysctl.path("name"), "");
        } else if name.len() > 253 || !name.split(['.', '/']).all(part) {
            errors.invalid(sysctl.path("name"), name, SHAPE);
        } else if !seen.insert(name) {
            errors.duplicate(sysctl.path("name"), name);
        }
    }
}

fn validate_dns(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let none = spec.text("dnsPolicy") == "None";
    let Some(config) = spec.child("dnsConfig") else {
        if none {
            errors.required(spec.path("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        return;
    };
    let servers = config.list("nameservers");
    if none && servers.is_empty() {
        return errors.required(
            config.path("nameservers"),
            "must provide at least one DNS nameserver when `dnsPolicy` is None",
        );
    }
    if servers.len() > 3 {
        let why = "must not have more than 3 nameservers";
        errors.invalid(config.path("nameservers"), Value::Array(servers.to_vec()), why);
    }
    for (n, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        if server.parse::<std::net::IpAddr>().is_err() {
            errors.invalid(format!("{}[{n}]", config.path("nameservers")), server, ADDRESS);
        }
    }
    let searches = config.list("searches");
    if searches.len() > 32 {
        let why = "must not have more than 32 search paths";
        errors.invalid(config.path("searches"), Value::Array(searches.to_vec()), why);
    }
    for (n, search) in searches.iter().filter_map(Value::as_str).enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            for why in names::subdomain_with_underscores(search) {
                errors.invalid(format!("{}[{n}]", config.path("searches")), search, &why);
            }
        }
    }
    for option in config.each("options") {
        if option.text("name").is_empty() {
            errors.required(&option.field, "must not be empty");
        }
    }
}

fn validate_host_aliases(spec: &ObjectAt<'_>, errors: &mut Errors) {
    for alias in spec.each("hostAliases") {
        let ip = alias.text("ip");
        if ip.parse::<std::net::IpAddr>().is_err() {
            errors.invalid(alias.path("ip"), ip, ADDRESS);
        }
        for (n, name) in alias.list("hostnames").iter().filter_map(Value::as_str).enumerate() {
            for why in names::subdomain(name) {
                errors.invalid(format!("{}[{n}]", alias.path("hostnames")), name, &why);
            }
        }
    }
}

/// Validates that a Windows pod has no Linux-only fields.
fn validate_os(spec: &ObjectAt<'_>, errors: &mut Errors) {
    const WHY: &str = "cannot be set for a windows pod";
    const LINUX_ONLY_FIELDS: [&str; 11] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    let Some(system) = spec.child("os") else { return };
    match system.text("name") {
        "" => errors.required(system.path("name"), ""),
        "windows" => {
            if let Some(context) = spec.child("securityContext") {
                for key in LINUX_ONLY_FIELDS.iter().filter(|key| context.has(key)) {
                    errors.forbidden(context.path(key), WHY);
                }
            }
            if spec.has("hostUsers") {
                errors.forbidden(spec.path("hostUsers"), WHY);
            }
            for key in ["hostPID", "hostIPC"].iter().filter(|key| spec.is(key)) {
                errors.forbidden(spec.path(key), WHY);
            }
            if spec.has("shareProcessNamespace") {
                errors.forbidden(spec.path("shareProcessNamespace"), WHY);
            }
        }
        "linux" => {
            let context = spec.child("securityContext").filter(|context| context.has("windowsOptions"));
            if let Some(context) = context {
                errors.forbidden(
                    context.path("windowsOptions"),
                    "windows options cannot be set for a linux pod",
                );
            }
        }
        other => errors.not_supported(&system.field, other, &["linux", "windows"]),
    }
}
