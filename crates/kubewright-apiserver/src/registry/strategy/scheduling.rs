//! Validation of scheduling constraints: affinity, topology spread, tolerations, gates.

use serde_json::Value;

use super::templates::validate_selector;
use crate::registry::{
    objectmeta,
    validation::{Errors, at::ObjectAt, names},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate_affinity(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let Some(affinity) = spec.child("affinity") else { return };
    if let Some(node) = affinity.child("nodeAffinity") {
        if let Some(required) = node.child(REQUIRED) {
            validate_node_selector(&required, errors);
        }
        for preferred in node.each(PREFERRED) {
            let weight = preferred.number("weight").unwrap_or(0);
            validate_weight(&preferred, weight, errors);
            if let Some(term) = preferred.child("preference") {
                validate_node_term(&term, errors);
            }
        }
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.child(key) else { continue };
        for term in pods.each(REQUIRED) {
            validate_pod_term(&term, errors);
        }
        for preferred in pods.each(PREFERRED) {
            let weight = preferred.number("weight").unwrap_or(0);
            validate_weight(&preferred, weight, errors);
            if let Some(term) = preferred.child("podAffinityTerm") {
                validate_pod_term(&term, errors);
            }
        }
    }
}

fn validate_weight(at: &ObjectAt<'_>, weight: i64, errors: &mut Errors) {
    if !(1..=100).contains(&weight) {
        errors.invalid(at.path("weight"), weight, "must be in the range 1-100");
    }
}

/// Validates a node selector, whose terms are alternatives.
pub(super) fn validate_node_selector(selector: &ObjectAt<'_>, errors: &mut Errors) {
    if selector.list("nodeSelectorTerms").is_empty() {
        let why = "must have at least one node selector term";
        errors.required(selector.path("nodeSelectorTerms"), why);
    }
    for term in selector.each("nodeSelectorTerms") {
        validate_node_term(&term, errors);
    }
}

fn validate_node_term(term: &ObjectAt<'_>, errors: &mut Errors) {
    for expression in term.each("matchExpressions") {
        let values = expression.list("values");
        let field = expression.path("values");
        match expression.text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(field, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.forbidden(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if values.len() != 1 => {
                errors.required(field, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                errors.invalid(expression.path("operator"), other, "not a valid selector operator");
            }
        }
        let key = expression.text("key");
        for why in names::qualified(key) {
            errors.invalid(expression.path("key"), key, &why);
        }
    }
    for field in term.each("matchFields") {
        let (operator, values) = (field.text("operator"), field.list("values"));
        if !matches!(operator, "In" | "NotIn") {
            errors.invalid(field.path("operator"), operator, "not a valid selector operator");
        } else if values.len() != 1 {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(field.path("values"), why);
        }
        let key = field.text("key");
        if key != "metadata.name" {
            errors.invalid(field.path("key"), key, "not a valid field selector key");
        }
    }
}

fn validate_pod_term(term: &ObjectAt<'_>, errors: &mut Errors) {
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.child(key) {
            validate_selector(selector.object, &selector.field.to_string(), errors);
        }
    }
    for name in term.list("namespaces").iter().filter_map(Value::as_str) {
        for why in names::label(name) {
            errors.invalid(term.path("namespace"), name, &why);
        }
    }
    let key = term.text("topologyKey");
    if key.is_empty() {
        errors.required(term.path("topologyKey"), "can not be empty");
    }
    for why in names::qualified(key) {
        errors.invalid(term.path("topologyKey"), key, &why);
    }
}

pub(super) fn validate_spread(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let constraints: Vec<ObjectAt<'_>> = spec.each("topologySpreadConstraints").collect();
    let kind =
        |at: &ObjectAt<'_>| (at.text("topologyKey").to_owned(), at.text("whenUnsatisfiable").to_owned());
    for (n, constraint) in constraints.iter().enumerate() {
        let skew = constraint.number("maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.invalid(constraint.path("maxSkew"), skew, "must be greater than zero");
        }
        let key = constraint.text("topologyKey");
        if key.is_empty() {
            errors.required(constraint.path("topologyKey"), "can not be empty");
        } else {
            for why in names::qualified(key) {
                errors.invalid(constraint.path("topologyKey"), key, &why);
            }
        }
        let when = constraint.text("whenUnsatisfiable");
        if !matches!(when, "DoNotSchedule" | "ScheduleAnyway") {
            let allowed = ["DoNotSchedule", "ScheduleAnyway"];
            errors.not_supported(constraint.path("whenUnsatisfiable"), when, &allowed);
        }
        if constraints[n + 1..].iter().any(|later| kind(later) == kind(constraint)) {
            let shown = format!("{{{key}, {when}}}");
            errors.duplicate(constraint.path("{topologyKey, whenUnsatisfiable}"), shown);
        }
        if let Some(domains) = constraint.number("minDomains") {
            if domains <= 0 {
                errors.invalid(constraint.path("minDomains"), domains, "must be greater than zero");
            }
            if when != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
                errors.invalid(constraint.path("minDomains"), domains, &why);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.choice(key, &["Honor", "Ignore"], errors);
        }
        if let Some(selector) = constraint.child("labelSelector") {
            validate_selector(selector.object, &selector.field.to_string(), errors);
        }
    }
}

pub(super) fn validate_tolerations(spec: &ObjectAt<'_>, errors: &mut Errors) {
    for toleration in spec.each("tolerations") {
        let (operator, value, effect) =
            (toleration.text("operator"), toleration.text("value"), toleration.text("effect"));
        toleration.named("key", names::qualified, errors);
        if toleration.text("key").is_empty() && operator != "Exists" {
            errors.invalid(
                toleration.path("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(toleration.path("effect"), effect, why);
        }
        match operator {
            "Equal" | "" => {
                for why in names::label_value(value) {
                    errors.invalid(toleration.path("operator"), value, &why);
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.invalid(toleration.path("operator"), value, why);
            }
            "Exists" => {}
            other => errors.not_supported(toleration.path("operator"), other, &["Equal", "Exists"]),
        }
        toleration.choice("effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}

/// Validates readiness and scheduling gates, which are qualified names.
pub(super) fn validate_gates(spec: &ObjectAt<'_>, errors: &mut Errors) {
    for gate in spec.each("readinessGates") {
        let kind = gate.text("conditionType");
        for why in names::qualified(kind) {
            errors.invalid(gate.path("conditionType"), kind, &why);
        }
    }
    let mut seen = Vec::new();
    for gate in spec.each("schedulingGates") {
        let name = gate.text("name");
        for why in names::qualified(name) {
            errors.invalid(&gate.field, name, &why);
        }
        if seen.contains(&name) {
            errors.duplicate(&gate.field, name);
        }
        seen.push(name);
    }
}

pub(super) fn validate_node_labels(spec: &ObjectAt<'_>, errors: &mut Errors) {
    if let Some(labels) = spec.child("nodeSelector") {
        objectmeta::validate_labels(Some(labels.object), &labels.field.to_string(), errors);
    }
}
