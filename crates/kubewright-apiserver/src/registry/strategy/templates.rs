//! Checks of workloads: a selector, a template, and a few numbers.

use serde_json::{Value, json};

use super::podchecks;
use crate::registry::{
    json::{Json, at, list, meta, object, objects, text, text_at},
    objectmeta,
    selector::LabelSelector,
    validation::{Errors, names},
};

/// Warnings about a pod or a template.
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

fn spec(object_: &Json) -> Json {
    object(object_, "spec").cloned().unwrap_or_default()
}

fn not_negative(spec: &Json, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        if let Some(number) = spec.get(*key).and_then(Value::as_i64).filter(|n| *n < 0) {
            errors.invalid(format!("spec.{key}"), number, "must be greater than or equal to 0");
        }
    }
}

/// Checks a label selector object; whether it can be used.
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

/// A selector must be there, be usable, and select the template's own pods.
fn validate_selected(spec: &Json, kind: &str, errors: &mut Errors) {
    let labels = at(spec, &["template", "metadata", "labels"]).and_then(Value::as_object);
    let selector = spec.get("selector").filter(|s| !s.is_null());
    let parsed = match selector.and_then(Value::as_object) {
        None => {
            errors.required("spec.selector", "");
            None
        }
        Some(object_) => {
            if !validate_selector(object_, "spec.selector", errors) {
                errors.invalid(
                    "spec.selector",
                    selector.cloned().unwrap_or_default(),
                    "invalid label selector",
                );
                // Without a selector there is nothing to compare the template with.
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
    let pod = at(spec, &["template", "spec"]).and_then(Value::as_object);
    podchecks::validate_spec(pod.unwrap_or(&Json::new()), "spec.template.spec", errors);
}

fn always_restarts(spec: &Json, errors: &mut Errors) {
    let policy = at(spec, &["template", "spec", "restartPolicy"]).and_then(Value::as_str).unwrap_or_default();
    if !policy.is_empty() && policy != "Always" {
        errors.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

pub(super) fn validate_deployment(deployment: &Json, errors: &mut Errors) {
    let spec = spec(deployment);
    not_negative(&spec, &["replicas"], errors);
    validate_selected(&spec, "deployment", errors);
    always_restarts(&spec, errors);
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
            if let Some(percent) = rolling.get("maxUnavailable").and_then(Value::as_str)
                && percent.strip_suffix('%').and_then(|p| p.parse::<u32>().ok()).is_some_and(|p| p > 100)
            {
                errors.invalid(format!("{at}.maxUnavailable"), percent, "must not be greater than 100%");
            }
        }
        other => errors.not_supported(
            "spec.strategy",
            json!({"Type": other, "RollingUpdate": null}),
            &["Recreate", "RollingUpdate"],
        ),
    }
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

fn immutable(new: &Json, old: &Json, key: &str, errors: &mut Errors) {
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
    validate_selected(&spec, "deployment", errors);
    always_restarts(&spec, errors);
}

pub(super) fn validate_selected_update(new: &Json, old: &Json, errors: &mut Errors) {
    let after = spec(new);
    not_negative(&after, &["replicas", "minReadySeconds", "revisionHistoryLimit"], errors);
    validate_selected(&after, "deployment", errors);
    always_restarts(&after, errors);
    immutable(&after, &spec(old), "selector", errors);
}

pub(super) fn validate_stateful_set(set: &Json, errors: &mut Errors) {
    let spec = spec(set);
    let policy = text(&spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let why = format!("must be '{}' or '{}'", "OrderedReady", "Parallel");
        errors.invalid("spec.podManagementPolicy", policy, &why);
    }
    not_negative(&spec, &["replicas", "minReadySeconds", "revisionHistoryLimit"], errors);
    validate_selected(&spec, "statefulset", errors);
    always_restarts(&spec, errors);
}

pub(super) fn validate_stateful_set_update(new: &Json, old: &Json, errors: &mut Errors) {
    validate_stateful_set(new, errors);
    let frozen = |set: &Json| {
        let mut spec = spec(set);
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
    if frozen(new) != frozen(old) {
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
    validate_selected(&spec, "daemonset", errors);
    always_restarts(&spec, errors);
    not_negative(&spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
}

fn validate_job_spec(spec: &Json, field: &str, errors: &mut Errors) {
    for key in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        if let Some(number) = spec.get(key).and_then(Value::as_i64).filter(|n| *n < 0) {
            errors.invalid(format!("{field}.{key}"), number, "must be greater than or equal to 0");
        }
    }
    if text(spec, "completionMode") == "Indexed" && !spec.contains_key("completions") {
        errors.required(format!("{field}.completions"), "when completion mode is Indexed");
    }
    let pod = at(spec, &["template", "spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    podchecks::validate_spec(&pod, &format!("{field}.template.spec"), errors);
    match text(&pod, "restartPolicy") {
        "OnFailure" | "Never" => {}
        // What defaulting wrote counts as nothing said.
        "Always" | "" => errors.required(
            format!("{field}.template.spec.restartPolicy"),
            "valid values: \"OnFailure\", \"Never\"",
        ),
        other => errors.not_supported(
            format!("{field}.template.spec.restartPolicy"),
            other,
            &["OnFailure", "Never"],
        ),
    }
}

pub(super) fn validate_job(job: &Json, errors: &mut Errors) {
    let spec = spec(job);
    validate_generated_selector(job, &spec, errors);
    validate_job_spec(&spec, "spec", errors);
}

/// A job that lets the server select must not have said otherwise.
fn validate_generated_selector(job: &Json, spec: &Json, errors: &mut Errors) {
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let selector = spec.get("selector").cloned().unwrap_or_default();
    let uid = text(meta(job), "uid");
    let expected = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    let old = json!({"matchLabels": {"controller-uid": uid}});
    if selector != expected && selector != old {
        errors.invalid("spec.selector", selector.clone(), "`selector` not auto-generated");
        let labels = at(spec, &["template", "metadata", "labels"]).and_then(Value::as_object);
        let fits = LabelSelector::from_object(&selector)
            .is_some_and(|s| s.matches(|key| labels?.get(key)?.as_str()));
        if !fits {
            let shown = labels.map_or(Value::Null, |l| Value::Object(l.clone()));
            errors.invalid(
                "spec.template.metadata.labels",
                shown,
                "`selector` does not match template `labels`",
            );
        }
    }
}

pub(super) fn validate_job_update(new: &Json, old: &Json, errors: &mut Errors) {
    let (after, before) = (spec(new), spec(old));
    validate_job_spec(&after, "spec", errors);
    let elastic =
        text(&before, "completionMode") == "Indexed" && after.get("completions") == after.get("parallelism");
    for key in
        ["completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    {
        if key == "completions" && elastic {
            continue;
        }
        let suspended = before.get("suspend") == Some(&Value::Bool(true));
        if key == "template" && suspended {
            continue;
        }
        immutable(&after, &before, key, errors);
    }
}

pub(super) fn validate_cron_job(cron: &Json, errors: &mut Errors) {
    let spec = spec(cron);
    let name = text(meta(cron), "name");
    let job = at(&spec, &["jobTemplate", "spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    validate_job_spec(&job, "spec.jobTemplate.spec", errors);
    let schedule = text(&spec, "schedule");
    if schedule.is_empty() {
        errors.required("spec.schedule", "");
    } else if let Some(why) = schedule_error(schedule) {
        errors.invalid("spec.schedule", schedule, &why);
    }
    let zone = text(&spec, "timeZone");
    if !zone.is_empty() && !zone_exists(zone) {
        errors.invalid("spec.timeZone", zone, &format!("unknown time zone {zone}"));
    }
    not_negative(&spec, &["startingDeadlineSeconds"], errors);
    let policy = text(&spec, "concurrencyPolicy");
    if !matches!(policy, "Allow" | "Forbid" | "Replace") {
        errors.not_supported("spec.concurrencyPolicy", policy, &["Allow", "Forbid", "Replace"]);
    }
    not_negative(&spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
    if name.len() > 52 {
        errors.invalid("metadata.name", name, "must be no more than 52 characters");
    }
}

fn schedule_error(schedule: &str) -> Option<String> {
    if schedule.starts_with('@') {
        return None;
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let bad = fields
        .iter()
        .find(|f| !f.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '*' | '/' | ',' | '-' | '?')));
    bad.map(|field| format!("failed to parse int from {field}"))
}

/// Names of zones are `Area/Place`; whether the machine's database knows them is not asked.
fn zone_exists(zone: &str) -> bool {
    const AREAS: [&str; 11] = [
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
        "Etc",
    ];
    match zone.split_once('/') {
        Some((area, place)) => AREAS.contains(&area) && !place.is_empty(),
        None => matches!(zone, "UTC" | "GMT" | "CET" | "EET" | "MET" | "WET" | "EST" | "MST" | "HST"),
    }
}

pub(super) fn validate_autoscaler(scaler: &Json, errors: &mut Errors) {
    let spec = spec(scaler);
    let number = |key: &str| spec.get(key).and_then(Value::as_i64);
    if let Some(least) = number("minReplicas").filter(|n| *n < 1) {
        errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    let most = number("maxReplicas").unwrap_or(0);
    if most < 1 {
        errors.invalid("spec.maxReplicas", most, "must be greater than 0");
    }
    if number("minReplicas").is_some_and(|least| most < least) {
        errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    for key in ["kind", "name"] {
        if text_at(&spec, &["scaleTargetRef", key]).is_empty() {
            errors.required(format!("spec.scaleTargetRef.{key}"), "");
        }
    }
}
