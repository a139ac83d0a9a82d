//! Validation of resource names and quantities in containers, quotas and limit ranges.

use std::{collections::BTreeSet, fmt::Display};

use serde_json::Value;

use crate::registry::{
    json::object,
    quantity,
    validation::{
        Errors,
        at::{NOT_NEGATIVE, ObjectAt},
        names,
    },
};

/// Resources that are object counts.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const MEASURED: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
];

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// Returns whether a resource is native to Kubernetes.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified(&format!("requests.{name}")).is_empty()
}

/// Returns whether a resource can be overcommitted.
fn can_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Validates the name of a resource.
pub(super) fn validate_name(name: &str, field: impl Display + Copy, errors: &mut Errors) -> bool {
    let why = names::qualified(name);
    for why in &why {
        errors.invalid(field.to_string(), name, why);
    }
    if !why.is_empty() {
        return false;
    }
    let known = COUNTED.contains(&name) || MEASURED.contains(&name) || is_huge_pages(name);
    if !name.contains('/') && !known {
        errors.invalid(field.to_string(), name, "must be a standard resource type or fully qualified");
    }
    true
}

fn validate_container_name(name: &str, field: impl Display + Copy, errors: &mut Errors) {
    validate_name(name, field, errors);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !name.starts_with("hugepages-") {
            errors.invalid(field.to_string(), name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(field.to_string(), name, "doesn't follow extended resource name standard");
    }
}

/// Validates the name of a resource in a quota.
pub(super) fn validate_quota_name(name: &str, field: impl Display + Copy, errors: &mut Errors) {
    // `count/widgets.example.com` counts objects of any kind.
    let usable = validate_name(name, field, errors);
    if usable
        && !name.contains('/')
        && name != "storage"
        && !(COUNTED.contains(&name) || MEASURED.contains(&name))
    {
        errors.invalid(field.to_string(), name, "must be a standard resource for quota");
    }
}

/// Validates an amount: not negative, and an integer for counted resources.
pub(super) fn validate_amount(name: &str, amount: &Value, field: impl Display + Copy, errors: &mut Errors) {
    let Some(value) = quantity::parse(amount) else { return };
    if value < 0 {
        errors.invalid(field.to_string(), amount.clone(), NOT_NEGATIVE);
    }
    if (COUNTED.contains(&name) || is_extended(name)) && value % 1000 != 0 {
        errors.invalid(field.to_string(), amount.clone(), "must be an integer");
    }
}

/// Validates the resource requirements of a container or of a pod.
pub(super) fn validate(resources: &ObjectAt<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let limits = object(resources.object, "limits");
    let of = |kind: &str| object(resources.object, kind).into_iter().flatten();
    for kind in ["limits", "requests"] {
        for (name, amount) in of(kind) {
            let path = resources.path(kind);
            let field = format_args!("{path}[{name}]");
            validate_container_name(name, field, errors);
            validate_amount(name, amount, field, errors);
            if kind == "requests" {
                validate_request(resources, name, amount, limits.and_then(|limits| limits.get(name)), errors);
            }
        }
    }
    let any = |wanted: fn(&str) -> bool| of("limits").chain(of("requests")).any(|(name, _)| wanted(name));
    if any(|name| name.starts_with("hugepages-")) && !any(|name| matches!(name, "cpu" | "memory")) {
        errors.forbidden(&resources.field, "HugePages require cpu or memory");
    }
    let mut seen = BTreeSet::new();
    for claim in resources.each("claims") {
        let name = claim.text("name");
        claim.required("name", errors);
        if !name.is_empty() && !seen.insert((name, claim.text("request"))) {
            errors.duplicate(&claim.field, name);
        } else if !name.is_empty() && !claims.contains(name) {
            errors.not_found(claim.path("name"), name);
        }
    }
}

fn validate_request(
    at: &ObjectAt<'_>,
    name: &str,
    amount: &Value,
    limit: Option<&Value>,
    errors: &mut Errors,
) {
    let Some(limit) = limit else {
        if !can_be_overcommitted(name) {
            errors.required(at.path("limits"), "Limit must be set for non overcommitable resources");
        }
        return;
    };
    let (Some(asked), Some(most)) = (quantity::parse(amount), quantity::parse(limit)) else { return };
    let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
    let why = if asked != most && !can_be_overcommitted(name) {
        format!("must be equal to {name} limit of {shown}")
    } else if asked > most {
        format!("must be less than or equal to {name} limit of {shown}")
    } else {
        return;
    };
    errors.invalid(at.path("requests"), amount.clone(), &why);
}
