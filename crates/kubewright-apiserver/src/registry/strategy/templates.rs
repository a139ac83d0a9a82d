//! Validation of workloads: selector, template and replica settings.

use serde_json::{Value, json};

use super::podchecks;
use crate::registry::{
    json::{Json, at, list, meta, object, objects, text},
    objectmeta,
    selector::LabelSelector,
    validation::{Errors, at::ObjectAt, names},
};

/// Returns warnings about a pod or a template.
pub(super) fn pod_warnings(pod: &Json, _: Option<&Json>, warnings: &mut Vec<String>) {
    if let Some(spec) = object(pod, "spec") {
        spec_warnings(spec, "spec", warnings);
    }
}

fn spec_warnings(spec: &Json, at: &str, warnings: &mut Vec<String>) {
    for (old, new) in [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ] {
        if object(spec, "nodeSelector").is_some_and(|s| s.contains_key(old)) {
            let since = if old.starts_with("beta.kubernetes.io/instance") || old.starts_with("failure") {
                "v1.17"
            } else {
                "v1.14"
            };
            warnings.push(format!("{at}.nodeSelector[{old}]: deprecated since {since}; use {new:?} instead"));
        }
    }
    for (n, container) in objects(spec, "containers").enumerate() {
        let here = format!("{at}.containers[{n}]");
        fractional_bytes(container, &here, warnings);
        let mut seen: Vec<&str> = Vec::new();
        for (m, env) in objects(container, "env").enumerate() {
            let name = text(env, "name");
            if seen.contains(&name) {
                warnings.push(format!(
                    "{here}.env[{m}]: hides previous definition of {name:?}, which may be dropped when using apply"
                ));
            }
            seen.push(name);
        }
        let mut ports: Vec<(Option<&Value>, &str)> = Vec::new();
        for (m, port) in objects(container, "ports").enumerate() {
            let key = (port.get("containerPort"), text(port, "protocol"));
            if let Some(first) = ports.iter().position(|p| *p == key) {
                warnings
                    .push(format!("{here}.ports[{m}]: duplicate port definition with {here}.ports[{first}]"));
            }
            ports.push(key);
        }
    }
}

/// Warns about fractional byte quantities.
fn fractional_bytes(container: &Json, here: &str, warnings: &mut Vec<String>) {
    let resources = object(container, "resources");
    for kind in ["limits", "requests"] {
        for name in ["memory", "ephemeral-storage"] {
            let amount = resources.and_then(|resources| object(resources, kind)).and_then(|of| of.get(name));
            let Some(amount) = amount else { continue };
            if crate::registry::quantity::parse(amount).is_some_and(|thousandths| thousandths % 1000 != 0) {
                let shown = amount.as_str().unwrap_or_default();
                warnings.push(format!(
                    "{here}.resources.{kind}[{name}]: fractional byte value {shown:?} is invalid, must be an integer"
                ));
            }
        }
    }
}

/// Returns the spec of an object, empty if absent.
pub(super) fn spec(object_: &Json) -> Json {
    object(object_, "spec").cloned().unwrap_or_default()
}

pub(super) fn not_negative(spec: &Json, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        if let Some(number) = spec.get(*key).and_then(Value::as_i64).filter(|n| *n < 0) {
            errors.invalid(format!("spec.{key}"), number, "must be greater than or equal to 0");
        }
    }
}

/// Validates a label selector object; returns whether it is usable.
pub(super) fn validate_selector(selector: &Json, field: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    objectmeta::validate_labels(object(selector, "matchLabels"), &format!("{field}.matchLabels"), errors);
    for (n, expression) in objects(selector, "matchExpressions").enumerate() {
        let at = format!("{field}.matchExpressions[{n}]");
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors
                    .required(format!("{at}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(format!("{at}.operator"), other, "not a valid selector operator"),
        }
        let key = text(expression, "key");
        for why in names::qualified(key) {
            errors.invalid(format!("{at}.key"), key, &why);
        }
    }
    errors.len() == before
}

/// Validates that the selector is present, usable, and matches the template's labels.
fn validate_selector_and_template(spec: &Json, kind: &str, errors: &mut Errors) {
    let labels = at(spec, &["template", "metadata", "labels"]).and_then(Value::as_object);
    let selector = spec.get("selector").filter(|s| !s.is_null());
    let parsed = match selector.and_then(Value::as_object) {
        None => {
            if kind != "daemonset" {
                errors.required("spec.selector", "");
            }
            None
        }
        Some(object_) => {
            if !validate_selector(object_, "spec.selector", errors) {
                if kind != "daemonset" {
                    let shown = selector.cloned().unwrap_or_default();
                    if kind == "statefulset" {
                        errors.invalid_without_value("spec.selector", &shown.to_string());
                    } else {
                        errors.invalid("spec.selector", shown, "invalid label selector");
                    }
                }
                // Without a selector the template's labels cannot be validated.
                validate_template_spec(spec, errors);
                return;
            }
            let parsed = LabelSelector::from_object(&Value::Object(object_.clone()));
            if parsed.as_ref().is_some_and(LabelSelector::is_empty) {
                let why = format!("empty selector is invalid for {kind}");
                errors.invalid("spec.selector", json!({}), &why);
            }
            parsed.filter(|p| !p.is_empty() || selector.is_none())
        }
    };
    let empty_selector = selector.is_some() && parsed.is_none();
    let fits = parsed.as_ref().is_some_and(|p| p.matches(|key| labels?.get(key)?.as_str()));
    if !fits && !empty_selector {
        let shown = labels.map_or(Value::Null, |l| Value::Object(l.clone()));
        errors.invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`");
    }
    validate_template_spec(spec, errors);
}

fn validate_template_spec(spec: &Json, errors: &mut Errors) {
    objectmeta::validate_labels(
        at(spec, &["template", "metadata", "labels"]).and_then(Value::as_object),
        "spec.template.labels",
        errors,
    );
    let mut pod = at(spec, &["template", "spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    replace_claim_volumes(&mut pod, spec);
    podchecks::validate_spec(&pod, "spec.template.spec", errors);
}

/// Replaces volumes by those of a stateful set's claims, and drops the names that its controller sets.
fn replace_claim_volumes(pod: &mut Json, spec: &Json) {
    let claims: Vec<&str> =
        objects(spec, "volumeClaimTemplates").map(|claim| text(meta(claim), "name")).collect();
    if claims.is_empty() {
        return;
    }
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let own = objects(pod, "volumes").filter(|volume| !claims.contains(&text(volume, "name")));
    volumes.extend(own.cloned().map(Value::Object));
    pod.insert("volumes".into(), volumes.into());
    for key in ["subdomain", "hostname"] {
        pod.remove(key);
    }
}

/// Validates that pods restart always and have no deadline.
fn validate_always_restarts(spec: &Json, kind: &str, errors: &mut Errors) {
    if at(spec, &["template", "spec", "activeDeadlineSeconds"]).is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden("spec.template.spec.activeDeadlineSeconds", &why);
    }
    let policy = at(spec, &["template", "spec", "restartPolicy"]).and_then(Value::as_str).unwrap_or_default();
    if !policy.is_empty() && policy != "Always" {
        errors.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

pub(super) fn validate_deployment(deployment: &Json, errors: &mut Errors) {
    let spec = spec(deployment);
    not_negative(&spec, &["replicas"], errors);
    validate_selector_and_template(&spec, "deployment", errors);
    validate_always_restarts(&spec, "ReplicaSet", errors);
    validate_strategy(&spec, errors);
    not_negative(&spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], errors);
    let number = |key: &str| spec.get(key).and_then(Value::as_i64).unwrap_or(0);
    if spec.contains_key("progressDeadlineSeconds")
        && number("progressDeadlineSeconds") <= number("minReadySeconds")
    {
        errors.invalid(
            "spec.progressDeadlineSeconds",
            number("progressDeadlineSeconds"),
            "must be greater than minReadySeconds",
        );
    }
}

fn validate_strategy(spec: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let strategy = object(spec, "strategy").unwrap_or(&empty);
    match text(strategy, "type") {
        "Recreate" => {
            if strategy.contains_key("rollingUpdate") {
                errors.forbidden(
                    "spec.strategy.rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                );
            }
        }
        "RollingUpdate" => {
            let rolling = object(strategy, "rollingUpdate").unwrap_or(&empty);
            let at = "spec.strategy.rollingUpdate";
            let before = errors.len();
            for key in ["maxUnavailable", "maxSurge"] {
                int_or_percent(rolling, key, at, errors);
            }
            let zero = |key: &str| rolling.get(key).is_some_and(|v| v == 0 || v == "0%");
            if errors.len() == before && zero("maxSurge") && zero("maxUnavailable") {
                errors.invalid(format!("{at}.maxUnavailable"), 0, "may not be 0 when `maxSurge` is 0");
            }
            at_most_100_percent(rolling, "maxUnavailable", at, errors);
        }
        other => errors.not_supported("spec.strategy", go_strategy(other), &["Recreate", "RollingUpdate"]),
    }
}

/// Validates that a percentage is at most 100.
pub(super) fn at_most_100_percent(parent: &Json, key: &str, at: &str, errors: &mut Errors) {
    if let Some(percent) = parent.get(key).and_then(Value::as_str)
        && percent.strip_suffix('%').and_then(|p| p.parse::<u32>().ok()).is_some_and(|p| p > 100)
    {
        errors.invalid(format!("{at}.{key}"), percent, "must not be greater than 100%");
    }
}

/// Formats a strategy of an unknown type like Go.
fn go_strategy(kind: &str) -> Value {
    json!({"Type": kind, "RollingUpdate": null})
}

pub(super) fn int_or_percent(parent: &Json, key: &str, at: &str, errors: &mut Errors) {
    match parent.get(key) {
        Some(Value::String(text)) => {
            let digits = text.strip_suffix('%').unwrap_or("x");
            if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                errors.invalid(format!("{at}.{key}"), text.as_str(), "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
            }
        }
        Some(value) if value.as_i64().is_some_and(|n| n < 0) => {
            errors.invalid(format!("{at}.{key}"), value.clone(), "must be greater than or equal to 0");
        }
        _ => {}
    }
}

pub(super) fn immutable(new: &Json, old: &Json, key: &str, errors: &mut Errors) {
    if new.get(key) != old.get(key) {
        let value = new.get(key).cloned().unwrap_or_default();
        errors.invalid(format!("spec.{key}"), value, "field is immutable");
    }
}

pub(super) fn validate_deployment_update(new: &Json, old: &Json, errors: &mut Errors) {
    validate_deployment(new, errors);
    immutable(&spec(new), &spec(old), "selector", errors);
}

pub(super) fn validate_replica_set(set: &Json, errors: &mut Errors) {
    let spec = spec(set);
    not_negative(&spec, &["replicas", "minReadySeconds"], errors);
    validate_selector_and_template(&spec, "deployment", errors);
    validate_always_restarts(&spec, "ReplicaSet", errors);
}

pub(super) fn validate_replica_set_update(new: &Json, old: &Json, errors: &mut Errors) {
    validate_replica_set(new, errors);
    immutable(&spec(new), &spec(old), "selector", errors);
}

pub(super) fn validate_stateful_set(set: &Json, errors: &mut Errors) {
    let spec = spec(set);
    let at = ObjectAt::new(&spec, "spec");
    let policy = at.text("podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        errors.invalid(at.path("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    if let Some(strategy) = at.child("updateStrategy") {
        validate_stateful_strategy(&strategy, errors);
    }
    if let Some(retention) = at.child("persistentVolumeClaimRetentionPolicy") {
        for key in ["whenDeleted", "whenScaled"] {
            retention.choice(key, &["Retain", "Delete"], errors);
        }
    }
    for claim in at.each("volumeClaimTemplates") {
        if let Some(spec) = claim.child("spec") {
            super::volumes::validate_claim_spec(&spec, errors);
        }
    }
    not_negative(&spec, &["replicas", "minReadySeconds"], errors);
    if let Some(ordinals) = at.child("ordinals") {
        ordinals.not_negative(&["start"], errors);
    }
    not_negative(&spec, &["revisionHistoryLimit"], errors);
    at.named("serviceName", names::label, errors);
    validate_selector_and_template(&spec, "statefulset", errors);
    validate_always_restarts(&spec, "StatefulSet", errors);
}

fn validate_stateful_strategy(strategy: &ObjectAt<'_>, errors: &mut Errors) {
    let rolling = strategy.child("rollingUpdate");
    match (strategy.text("type"), rolling) {
        ("RollingUpdate", Some(rolling)) => {
            rolling.not_negative(&["partition"], errors);
            int_or_percent(rolling.object, "maxUnavailable", &rolling.field.to_string(), errors);
            at_most_100_percent(rolling.object, "maxUnavailable", &rolling.field.to_string(), errors);
        }
        ("OnDelete", Some(rolling)) => {
            let part = |key: &str| rolling.object.get(key).cloned().unwrap_or_default();
            let shown = json!({"Partition": part("partition"), "MaxUnavailable": part("maxUnavailable")});
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.invalid(&rolling.field, shown, why);
        }
        ("RollingUpdate" | "OnDelete", None) => {}
        (other, _) => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.invalid(&strategy.field, go_strategy(other), why);
        }
    }
}

pub(super) fn validate_stateful_set_update(new: &Json, old: &Json, errors: &mut Errors) {
    validate_stateful_set(new, errors);
    let (after, mut before) = (spec(new), spec(old));
    for key in ["serviceName", "podManagementPolicy", "selector"] {
        immutable(&after, &before, key, errors);
        // Reported once.
        match after.get(key) {
            Some(value) => before.insert(key.into(), value.clone()),
            None => before.remove(key),
        };
    }
    let frozen = |mut spec: Json| {
        for key in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            spec.remove(key);
        }
        spec
    };
    if frozen(after) != frozen(before) {
        errors.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        );
    }
}

pub(super) fn validate_daemon_set(set: &Json, errors: &mut Errors) {
    let spec = spec(set);
    validate_selector_and_template(&spec, "daemonset", errors);
    validate_always_restarts(&spec, "DaemonSet", errors);
    not_negative(&spec, &["minReadySeconds"], errors);
    if let Some(strategy) = ObjectAt::new(&spec, "spec").child("updateStrategy") {
        validate_daemon_strategy(&strategy, errors);
    }
    not_negative(&spec, &["revisionHistoryLimit"], errors);
}

fn validate_daemon_strategy(strategy: &ObjectAt<'_>, errors: &mut Errors) {
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let Some(rolling) = strategy.child("rollingUpdate") else {
                return errors.required(strategy.path("rollingUpdate"), "");
            };
            for key in ["maxUnavailable", "maxSurge"] {
                int_or_percent(rolling.object, key, &rolling.field.to_string(), errors);
                at_most_100_percent(rolling.object, key, &rolling.field.to_string(), errors);
            }
            let some = |key: &str| rolling.object.get(key).is_some_and(|value| value != 0 && value != "0%");
            if some("maxUnavailable") && some("maxSurge") {
                let surge = rolling.object.get("maxSurge").cloned().unwrap_or_default();
                let why = "may not be set when maxUnavailable is non-zero";
                errors.invalid(rolling.path("maxSurge"), surge, why);
            } else if !some("maxUnavailable") && !some("maxSurge") {
                errors.required(rolling.path("maxUnavailable"), "cannot be 0 when maxSurge is 0");
            }
        }
        other => {
            errors.not_supported(&strategy.field, go_strategy(other), &["RollingUpdate", "OnDelete"]);
        }
    }
}

pub(super) fn validate_daemon_set_update(new: &Json, old: &Json, errors: &mut Errors) {
    immutable(&spec(new), &spec(old), "selector", errors);
    validate_daemon_set(new, errors);
}

/// Validates the counts of a status: none is negative, and no part exceeds the total.
pub(super) fn validate_counts(object_: &Json, parts: &[&str], errors: &mut Errors) {
    let Some(status) = ObjectAt::new(object_, "").child("status") else { return };
    status.not_negative(&["observedGeneration", "replicas"], errors);
    status.not_negative(parts, errors);
    status.not_negative(&["unavailableReplicas", "terminatingReplicas", "collisionCount"], errors);
    let count = |key: &str| status.number(key).unwrap_or(0);
    for part in parts {
        if count(part) > count("replicas") {
            errors.invalid(status.path(part), count(part), "cannot be greater than status.replicas");
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        errors.invalid(status.path("availableReplicas"), count("availableReplicas"), why);
    }
}
