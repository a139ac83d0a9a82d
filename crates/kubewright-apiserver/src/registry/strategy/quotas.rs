//! Strategies of resource quotas and limit ranges.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{PLAIN, PrepareContext, Strategy, resources};
use crate::registry::{
    json::{Json, default, object, object_mut, objects_mut, text},
    quantity,
    validation::{Errors, at::ObjectAt, names},
};

pub(super) static QUOTA: Strategy = Strategy {
    prepare_create: |object, _: &PrepareContext<'_>| {
        object.remove("status");
    },
    validate: validate_quota,
    validate_update: |new, old, errors| {
        validate_quota(new, errors);
        let scopes = |quota: &Json| -> BTreeSet<String> {
            let spec = object(quota, "spec").map(|spec| ObjectAt::new(spec, "spec"));
            let scopes = spec.map(|spec| spec.list("scopes")).unwrap_or_default();
            scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if scopes(new) != scopes(old) {
            let shown = object(new, "spec").and_then(|spec| spec.get("scopes")).cloned().unwrap_or_default();
            errors.invalid("spec.scopes", shown, "field is immutable");
        }
    },
    ..PLAIN
};

/// Returns whether a resource belongs to pods and so can be limited by a scoped quota.
fn is_pod_resource(resource: &str) -> bool {
    matches!(
        resource,
        "pods"
            | "cpu"
            | "memory"
            | "requests.cpu"
            | "requests.memory"
            | "limits.cpu"
            | "limits.memory"
            | "ephemeral-storage"
            | "requests.ephemeral-storage"
            | "limits.ephemeral-storage"
    ) || resource.starts_with("requests.")
        || resource.starts_with("limits.")
}

fn scope_allows(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => is_pod_resource(resource),
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn validate_quota(quota: &Json, errors: &mut Errors) {
    let Some(spec) = ObjectAt::new(quota, "").child("spec") else { return };
    let hard = object(spec.object, "hard");
    for (name, amount) in hard.into_iter().flatten() {
        let field = format!("spec.hard[{name}]");
        resources::validate_quota_name(name, &field, errors);
        resources::validate_amount(name, amount, &field, errors);
    }
    let scopes = spec.list("scopes");
    let shown = || Value::Array(scopes.to_vec());
    let has = |scope: &str| scopes.iter().any(|known| known == scope);
    for scope in scopes.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            errors.invalid("spec.scopes", shown(), "unsupported scope");
        }
        let beyond = |(name, _): (&String, &Value)| !scope_allows(scope, name);
        if SCOPES.contains(&scope) && hard.is_some_and(|hard| hard.iter().any(beyond)) {
            errors.invalid("spec.scopes", shown(), "unsupported scope applied to resource");
        }
    }
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if has(one) && has(other) {
            errors.invalid("spec.scopes", shown(), "conflicting scopes");
        }
    }
    if let Some(selector) = spec.child("scopeSelector") {
        for expression in selector.each("matchExpressions") {
            validate_scope_expression(&selector, &expression, errors);
        }
    }
}

fn validate_scope_expression(selector: &ObjectAt<'_>, expression: &ObjectAt<'_>, errors: &mut Errors) {
    // Upstream reports the list, not the entry.
    let field = |key: &str| format!("{}.{key}", selector.path("matchExpressions"));
    let (scope, values) = (expression.text("scopeName"), expression.list("values"));
    if !SCOPES.contains(&scope) {
        errors.invalid(field("scopeName"), scope, "unsupported scope");
    }
    let exists = expression.text("operator") == "Exists";
    if !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope) && !exists {
        let why = format!(
            "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity, but got {}",
            expression.text("operator")
        );
        errors.invalid(field("operator"), expression.text("operator"), &why);
    }
    match expression.text("operator") {
        "In" | "NotIn" if values.is_empty() => errors.required(
            field("values"),
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.invalid(
            field("values"),
            Value::Array(values.to_vec()),
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid(field("operator"), other, "not a valid selector operator"),
    }
}

pub(super) static LIMIT_RANGE: Strategy = Strategy {
    default: |object| {
        for limit in objects_mut(object_mut(object, "spec"), "limits") {
            if text(limit, "type") != "Container" {
                continue;
            }
            for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
                let source = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
                for (resource, value) in source {
                    default(object_mut(limit, to), &resource, value);
                }
            }
        }
    },
    validate: validate_limits,
    validate_update: |new, _, errors| validate_limits(new, errors),
    ..PLAIN
};

fn validate_limits(range: &Json, errors: &mut Errors) {
    let Some(spec) = ObjectAt::new(range, "").child("spec") else { return };
    let mut seen = BTreeSet::new();
    for limit in spec.each("limits") {
        let kind = limit.text("type");
        let wrong = names::qualified(kind);
        for why in &wrong {
            errors.invalid(limit.path("type"), kind, why);
        }
        if wrong.is_empty()
            && !kind.contains('/')
            && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
        {
            errors.invalid(limit.path("type"), kind, "must be a standard limit type or fully qualified");
        }
        if !seen.insert(kind) {
            errors.duplicate(limit.path("type"), kind);
        }
        validate_limit(&limit, kind, errors);
    }
}

fn validate_limit(limit: &ObjectAt<'_>, kind: &str, errors: &mut Errors) {
    let amounts = |key: &str| object(limit.object, key);
    if kind == "Pod" {
        for key in ["default", "defaultRequest"] {
            if amounts(key).is_some_and(|amounts| !amounts.is_empty()) {
                errors.forbidden(limit.path(key), "may not be specified when `type` is 'Pod'");
            }
        }
    }
    let storage = |key: &str| amounts(key).is_some_and(|amounts| amounts.contains_key("storage"));
    if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(limit.path("limits"), why);
    }
    let keys = ["max", "min", "default", "defaultRequest"];
    let names: BTreeSet<&String> =
        keys.iter().filter_map(|key| amounts(key)).flat_map(|amounts| amounts.keys()).collect();
    for name in names {
        for key in keys {
            if let Some(amount) = amounts(key).and_then(|amounts| amounts.get(name)) {
                let field = format!("{}[{name}]", limit.path(key));
                resources::validate_name(name, &field, errors);
                resources::validate_amount(name, amount, &field, errors);
            }
        }
        validate_order(limit, name, errors);
    }
}

/// Validates that min is not above max, and that defaults lie between.
fn validate_order(limit: &ObjectAt<'_>, name: &str, errors: &mut Errors) {
    let amount = |key: &str| object(limit.object, key).and_then(|amounts| amounts.get(name));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = |key: &str| format!("{}[{name}]", limit.path(key));
    let mut ordered = |(low, low_is), (high, high_is), at: &str| {
        let (Some(less), Some(more)): (Option<&Value>, Option<&Value>) = (amount(low), amount(high)) else {
            return;
        };
        if quantity::parse(less) > quantity::parse(more) {
            let why = format!("{low_is} value {} is greater than {high_is} value {}", text(less), text(more));
            // The reported value is that of the field, or for a minimum the minimum itself.
            let shown = if at == "default" { less } else { amount(at).unwrap_or(less) };
            errors.invalid(field(at), shown.clone(), &why);
        }
    };
    ordered(("min", "min"), ("max", "max"), "min");
    ordered(("min", "min"), ("defaultRequest", "default request"), "defaultRequest");
    ordered(("defaultRequest", "default request"), ("max", "max"), "defaultRequest");
    ordered(("defaultRequest", "default request"), ("default", "default limit"), "defaultRequest");
    ordered(("min", "min"), ("default", "default"), "default");
    ordered(("default", "default"), ("max", "max"), "default");
}
