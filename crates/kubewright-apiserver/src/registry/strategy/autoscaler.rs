//! Validation of horizontal pod autoscalers.

use serde_json::Value;

use super::templates::spec;
use crate::registry::{
    json::Json,
    quantity,
    validation::{Errors, at::ObjectAt},
};

const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn validate_autoscaler(scaler: &Json, errors: &mut Errors) {
    let spec = spec(scaler);
    let spec = ObjectAt::new(&spec, "spec");
    spec.not_negative(&["minReplicas"], errors);
    let (least, most) = (spec.number("minReplicas"), spec.number("maxReplicas").unwrap_or(0));
    if most < 0 {
        errors.invalid("spec.maxReplicas", most, "must be greater than or equal to 1");
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    if let Some(target) = spec.child("scaleTargetRef") {
        target.required("kind", errors);
        target.required("name", errors);
        // Only the core group has versions without a group.
        let version = target.text("apiVersion");
        if version.is_empty() && target.text("kind") != "ReplicationController" {
            errors.invalid(target.path("apiVersion"), version, "apiVersion must specify API group");
        }
    }
    for metric in spec.each("metrics") {
        validate_metric(&metric, errors);
    }
    let elsewhere = |metric: ObjectAt<'_>| matches!(metric.text("type"), "Object" | "External");
    if least == Some(0) && !spec.each("metrics").any(elsewhere) {
        errors.forbidden(
            "spec.metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        );
    }
    if most == 0 {
        errors.required("spec.maxReplicas", "");
    }
    if let Some(behavior) = spec.child("behavior") {
        for key in ["scaleUp", "scaleDown"] {
            if let Some(rules) = behavior.child(key) {
                validate_rules(&rules, errors);
            }
        }
    }
}

fn validate_metric(metric: &ObjectAt<'_>, errors: &mut Errors) {
    let kind = metric.text("type");
    if kind.is_empty() {
        errors.required(metric.path("type"), "must specify a metric source type");
    }
    if !TYPES.contains(&kind) {
        errors.not_supported(metric.path("type"), kind, &TYPES);
    }
    let present: Vec<&str> = SOURCES.iter().map(|(_, key)| *key).filter(|key| metric.has(key)).collect();
    if let Some(source) = present.first().and_then(|key| metric.child(key)) {
        validate_source(present[0], &source, errors);
    }
    let expected = SOURCES.iter().find(|(known, _)| *known == kind).map(|(_, key)| *key);
    if let Some(expected) = expected.filter(|expected| !metric.has(expected)) {
        errors.required(metric.path(expected), "must populate information for the given metric source");
    }
    if present.len() > 1 {
        for other in present.iter().filter(|key| Some(**key) != expected) {
            errors.forbidden(metric.path(other), "must populate the given metric source only");
        }
    }
}

fn validate_source(key: &str, source: &ObjectAt<'_>, errors: &mut Errors) {
    let Some(target) = source.child("target") else { return };
    match key {
        "resource" | "containerResource" => {
            if source.text("name").is_empty() {
                errors.required(source.path("name"), "must specify a resource name");
            }
            if key == "containerResource" && source.text("container").is_empty() {
                errors.required(source.path("container"), "must specify a container");
            }
            validate_target(&target, errors);
            match (target.has("averageUtilization"), target.has("averageValue")) {
                (false, false) => errors.required(
                    target.path("averageUtilization"),
                    "must set either a target raw value or a target utilization",
                ),
                (true, true) => errors.forbidden(
                    target.path("averageValue"),
                    "may not set both a target raw value and a target utilization",
                ),
                _ => {}
            }
        }
        _ => {
            if let Some(metric) = source.child("metric")
                && metric.text("name").is_empty()
            {
                errors.required(metric.path("name"), "must specify a metric name");
            }
            validate_target(&target, errors);
            if key == "pods" {
                let positive =
                    target.object.get("averageValue").and_then(quantity::parse).is_some_and(|v| v > 0);
                if !positive {
                    errors
                        .required(target.path("averageValue"), "must specify a positive target averageValue");
                }
            } else if !target.has("value") && !target.has("averageValue") {
                let why = "must set either a target value for metric or a per-pod target";
                errors.required(target.path("averageValue"), why);
            }
        }
    }
}

fn validate_target(target: &ObjectAt<'_>, errors: &mut Errors) {
    let kind = target.text("type");
    if kind.is_empty() {
        errors.required(target.path("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        errors.invalid(target.path("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for key in ["value", "averageValue"] {
        let value: Option<&Value> = target.object.get(key);
        if value.and_then(quantity::parse).is_some_and(|amount| amount <= 0) {
            errors.invalid(target.path(key), value.cloned().unwrap_or_default(), "must be positive");
        }
    }
    if let Some(share) = target.number("averageUtilization").filter(|share| *share < 1) {
        errors.invalid(target.path("averageUtilization"), share, "must be greater than 0");
    }
}

fn validate_rules(rules: &ObjectAt<'_>, errors: &mut Errors) {
    const MAX_WINDOW: i64 = 3600;
    const MAX_PERIOD: i64 = 1800;
    let field = rules.path("stabilizationWindowSeconds");
    match rules.number("stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            errors.invalid(field, window, "must be greater than or equal to zero");
        }
        Some(window) if window > MAX_WINDOW => {
            errors.invalid(field, window, &format!("must be less than or equal to {MAX_WINDOW}"));
        }
        _ => {}
    }
    rules.choice("selectPolicy", &["Disabled", "Max", "Min"], errors);
    if rules.list("policies").is_empty() {
        errors.required(rules.path("policies"), "must specify at least one Policy");
    }
    for policy in rules.each("policies") {
        let kind = policy.text("type");
        if !matches!(kind, "Pods" | "Percent") {
            errors.not_supported(policy.path("type"), kind, &["Percent", "Pods"]);
        }
        for key in ["value", "periodSeconds"] {
            let number = policy.number(key).unwrap_or(0);
            if number <= 0 {
                errors.invalid(policy.path(key), number, "must be greater than zero");
            }
        }
        if let Some(period) = policy.number("periodSeconds").filter(|period| *period > MAX_PERIOD) {
            let why = format!("must be less than or equal to {MAX_PERIOD}");
            errors.invalid(policy.path("periodSeconds"), period, &why);
        }
    }
}
