//! Validation of jobs and cron jobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    podchecks,
    templates::{immutable, not_negative, spec, validate_selector},
};
use crate::registry::{
    json::{Json, at, meta, objects, text},
    selector::LabelSelector,
    validation::{Errors, at::ObjectAt, names},
};

fn validate_job_spec(spec: &Json, field: &str, errors: &mut Errors) {
    let job = ObjectAt::new(spec, field);
    job.not_negative(
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
        errors,
    );
    if job.has("maxFailedIndexes") && !job.has("backoffLimitPerIndex") {
        errors.required(job.path("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    job.named("managedBy", names::domain_prefixed_path, errors);
    job.choice("completionMode", &["NonIndexed", "Indexed"], errors);
    validate_indexes(&job, errors);
    if let Some(policy) = job.child("podFailurePolicy") {
        validate_failure_policy(&job, &policy, errors);
    }
    validate_success_policy(&job, errors);
    let with_policy = job.has("podFailurePolicy");
    if with_policy && job.text("podReplacementPolicy") != "Failed" {
        job.choice("podReplacementPolicy", &["Failed"], errors);
    } else {
        job.choice("podReplacementPolicy", &["Failed", "TerminatingOrFailed"], errors);
    }
    let pod = at(spec, &["template", "spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    podchecks::validate_spec(&pod, &format!("{field}.template.spec"), errors);
    let restart = format!("{field}.template.spec.restartPolicy");
    match text(&pod, "restartPolicy") {
        "OnFailure" if with_policy => {
            errors.invalid(
                restart,
                "OnFailure",
                "only \"Never\" is supported when podFailurePolicy is specified",
            );
        }
        "Never" | "OnFailure" => {}
        // `Always` is the default of pod templates and counts as absent.
        "Always" | "" => errors.required(restart, "valid values: \"OnFailure\", \"Never\""),
        other => errors.not_supported(restart, other, &["OnFailure", "Never"]),
    }
}

fn validate_indexes(job: &ObjectAt<'_>, errors: &mut Errors) {
    const MAX_PARALLEL: i64 = 100_000;
    if job.text("completionMode") != "Indexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = job.number(key) {
                errors.invalid(job.path(key), number, "requires indexed completion mode");
            }
        }
        return;
    }
    if !job.has("completions") {
        errors.required(job.path("completions"), "when completion mode is Indexed");
    }
    if let Some(parallel) = job.number("parallelism").filter(|parallel| *parallel > MAX_PARALLEL) {
        let why = format!("must be less than or equal to {MAX_PARALLEL} when completion mode is Indexed");
        errors.invalid(job.path("parallelism"), parallel, &why);
    }
    if let (Some(all), Some(failed)) = (job.number("completions"), job.number("maxFailedIndexes"))
        && failed > all
    {
        errors.invalid(job.path("maxFailedIndexes"), failed, "must be less than or equal to completions");
    }
}

fn validate_failure_policy(job: &ObjectAt<'_>, policy: &ObjectAt<'_>, errors: &mut Errors) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    const MAX: usize = 20;
    let rules = policy.list("rules");
    if rules.len() > MAX {
        errors.too_many(policy.path("rules"), rules.len(), MAX);
    }
    for rule in policy.each("rules") {
        match rule.text("action") {
            "" => errors.required(
                rule.path("action"),
                "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
            ),
            "FailIndex" if !job.has("backoffLimitPerIndex") => {
                errors.invalid(
                    rule.path("action"),
                    "FailIndex",
                    "requires the backoffLimitPerIndex to be set",
                );
            }
            _ => rule.choice("action", &ACTIONS, errors),
        }
        let codes = rule.child("onExitCodes");
        if let Some(codes) = &codes {
            validate_exit_codes(job, codes, errors);
        }
        for pattern in rule.each("onPodConditions") {
            let kind = pattern.text("type");
            for why in names::qualified(kind) {
                errors.invalid(pattern.path("type"), kind, &why);
            }
            pattern.required("status", errors);
            pattern.choice("status", &["False", "True", "Unknown"], errors);
        }
        let conditions = !rule.list("onPodConditions").is_empty();
        if codes.is_some() && conditions {
            let why = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.invalid_without_value(&rule.field, why);
        }
        if codes.is_none() && !conditions {
            let why = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.invalid_without_value(&rule.field, why);
        }
    }
}

fn validate_exit_codes(job: &ObjectAt<'_>, codes: &ObjectAt<'_>, errors: &mut Errors) {
    const MAX: usize = 255;
    if codes.text("operator").is_empty() {
        errors.required(codes.path("operator"), "valid values: [\"In\" \"NotIn\"]");
    }
    codes.choice("operator", &["In", "NotIn"], errors);
    let pod = at(job.object, &["template", "spec"]).and_then(Value::as_object);
    let known = |name: &str| {
        let all =
            pod.into_iter().flat_map(|pod| objects(pod, "containers").chain(objects(pod, "initContainers")));
        all.into_iter().any(|container| text(container, "name") == name)
    };
    let name = codes.text("containerName");
    if codes.has("containerName") && !known(name) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid(codes.path("containerName"), name, why);
    }
    let values = codes.list("values");
    let field = codes.path("values");
    if values.is_empty() {
        errors.invalid(&field, Value::Array(Vec::new()), "at least one value is required");
    } else if values.len() > MAX {
        errors.too_many(&field, values.len(), MAX);
    }
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    let mut seen = BTreeSet::new();
    for (n, code) in numbers.iter().enumerate() {
        if codes.text("operator") == "In" && *code == 0 {
            errors.invalid(format!("{field}[{n}]"), 0, "must not be 0 for the In operator");
        }
        if !seen.insert(*code) {
            errors.duplicate(format!("{field}[{n}]"), *code);
        }
    }
    if !numbers.is_sorted() {
        errors.invalid(field, Value::Array(values.to_vec()), "must be ordered");
    }
}

fn validate_success_policy(job: &ObjectAt<'_>, errors: &mut Errors) {
    const MAX: usize = 20;
    let Some(policy) = job.child("successPolicy") else { return };
    let rules = policy.list("rules");
    if job.text("completionMode") != "Indexed" {
        let shown = json!({"Rules": rules});
        return errors.invalid(&policy.field, shown, "requires indexed completion mode");
    }
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.required(policy.path("rules"), why);
    }
    if rules.len() > MAX {
        errors.too_many(policy.path("rules"), rules.len(), MAX);
    }
    let all = job.number("completions").unwrap_or(0);
    for rule in policy.each("rules") {
        let (count, indexes) = (rule.number("succeededCount"), rule.has("succeededIndexes"));
        if count.is_none() && !indexes {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&rule.field, why);
        }
        rule.not_negative(&["succeededCount"], errors);
        if let Some(count) = count.filter(|count| *count > all) {
            let why = format!("must be less than or equal to {all} (the number of specified completions)");
            errors.invalid(rule.path("succeededCount"), count, &why);
        }
    }
}

pub(super) fn validate_job(job: &Json, errors: &mut Errors) {
    let spec = spec(job);
    validate_own_selector(job, &spec, errors);
    validate_job_spec(&spec, "spec", errors);
}

/// Validates the selector: generated selectors must not be set, manual ones must be.
fn validate_own_selector(job: &Json, spec: &Json, errors: &mut Errors) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null()).cloned();
    let shown = selector.clone().unwrap_or_default();
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        match selector.as_ref().and_then(Value::as_object) {
            None => errors.required("spec.selector", ""),
            Some(selector) => {
                validate_selector(selector, "spec.selector", errors);
            }
        }
    } else {
        let uid = text(meta(job), "uid");
        let expected = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        let old = json!({"matchLabels": {"controller-uid": uid}});
        if shown == expected || shown == old {
            return;
        }
        errors.invalid("spec.selector", shown.clone(), "`selector` not auto-generated");
    }
    let labels = at(spec, &["template", "metadata", "labels"]).and_then(Value::as_object);
    let fits = selector.is_some()
        && LabelSelector::from_object(&shown).is_some_and(|s| s.matches(|key| labels?.get(key)?.as_str()));
    if !fits {
        let shown = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
        errors.invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`");
    }
}

pub(super) fn validate_job_update(new: &Json, old: &Json, errors: &mut Errors) {
    let (after, before) = (spec(new), spec(old));
    validate_job_spec(&after, "spec", errors);
    let elastic =
        text(&before, "completionMode") == "Indexed" && after.get("completions") == after.get("parallelism");
    for key in [
        "completions",
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
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

/// Validates job status transitions: a job finishes once, as complete or failed, with no active pods left.
pub(super) fn validate_job_status(new: &Json, old: &Json, errors: &mut Errors) {
    let Some(status) = ObjectAt::new(new, "").child("status") else { return };
    status.not_negative(&["active", "succeeded", "failed", "ready", "terminating"], errors);
    let holds = |job: &Json, kind: &str| {
        let status = crate::registry::json::object(job, "status");
        let mut conditions = status.into_iter().flat_map(|status| objects(status, "conditions"));
        conditions.any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
    };
    let is = |kind: &str| holds(new, kind);
    let (complete, failed) = (is("Complete"), is("Failed"));
    let conditions = status.path("conditions");
    let mut refuse = |broken: bool, why: &str| {
        if broken {
            errors.invalid_without_value(&conditions, why);
        }
    };
    refuse(complete && failed, "cannot set Complete=True and Failed=true conditions");
    refuse(complete && is("FailureTarget"), "cannot set Complete=True and FailureTarget=true conditions");
    if status.has("completionTime") && !complete {
        let why = "cannot set completionTime when there is no Complete=True condition";
        errors.invalid(status.path("completionTime"), status.text("completionTime"), why);
    }
    if complete && !status.has("completionTime") {
        errors.required(status.path("completionTime"), "completionTime is required for Complete jobs");
    }
    let mut refuse = |broken: bool, why: &str| {
        if broken {
            errors.invalid_without_value(&conditions, why);
        }
    };
    refuse(
        failed && !is("FailureTarget"),
        "cannot set Failed=True condition without the FailureTarget=true condition",
    );
    refuse(
        complete && !is("SuccessCriteriaMet"),
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    );
    let finished = complete || failed;
    if let Some(active) = status.number("active").filter(|active| *active > 0 && finished) {
        errors.invalid(status.path("active"), active, "active>0 is invalid for finished job");
    }
    if finished && !status.has("startTime") {
        errors.required(status.path("startTime"), "startTime is required for finished job");
    }
    for (kind, why) in [
        ("Complete", "cannot disable the Complete=True condition"),
        ("Failed", "cannot disable the Failed=True condition"),
        ("FailureTarget", "cannot disable the FailureTarget=True condition"),
        ("SuccessCriteriaMet", "cannot disable the SuccessCriteriaMet=True condition"),
    ] {
        if holds(old, kind) && !is(kind) {
            errors.invalid_without_value(&conditions, why);
        }
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
    if schedule.contains("TZ=") {
        return Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".into());
    }
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

/// Returns whether a time zone has the form `Area/Place`; the zone database is not consulted.
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
