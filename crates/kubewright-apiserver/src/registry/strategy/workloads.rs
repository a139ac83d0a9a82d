//! Strategies of the apps, batch and autoscaling groups.

use serde_json::{Value, json};

use super::{PLAIN, Strategy, autoscaler, jobs, podspec::default_template, templates};
use crate::registry::{
    json::{Json, default, default_text, meta, meta_mut, object, object_mut, objects_mut, text},
    validation::{Errors, at::ObjectAt},
};

pub(super) static DEPLOYMENT: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "progressDeadlineSeconds", 600);
        let strategy = object_mut(spec, "strategy");
        default_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = object_mut(strategy, "rollingUpdate");
            default(rolling, "maxUnavailable", "25%");
            default(rolling, "maxSurge", "25%");
        }
        default_template(spec);
    },
    prepare_status: keep_labels,
    validate: templates::validate_deployment,
    validate_update: templates::validate_deployment_update,
    validate_status: |new, _, errors| {
        templates::validate_counts(new, &["updatedReplicas", "readyReplicas", "availableReplicas"], errors);
    },
    ..PLAIN
};

fn keep_labels(new: &mut Json, old: &Json) {
    match meta(old).get("labels") {
        Some(labels) => meta_mut(new).insert("labels".into(), labels.clone()),
        None => meta_mut(new).remove("labels"),
    };
}

pub(super) static REPLICA_SET: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default(spec, "replicas", 1);
        default_template(spec);
    },
    validate: templates::validate_replica_set,
    validate_update: templates::validate_replica_set_update,
    validate_status: |new, _, errors| {
        templates::validate_counts(
            new,
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            errors,
        );
    },
    ..PLAIN
};

pub(super) static STATEFUL_SET: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default_text(spec, "podManagementPolicy", "OrderedReady");
        let strategy = object_mut(spec, "updateStrategy");
        default_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = object_mut(strategy, "rollingUpdate");
            default(rolling, "partition", 0);
            default(rolling, "maxUnavailable", 1);
        }
        let retention = object_mut(spec, "persistentVolumeClaimRetentionPolicy");
        default_text(retention, "whenDeleted", "Retain");
        default_text(retention, "whenScaled", "Retain");
        for claim in objects_mut(spec, "volumeClaimTemplates") {
            default_text(claim, "apiVersion", "v1");
            default_text(claim, "kind", "PersistentVolumeClaim");
            default_text(object_mut(claim, "spec"), "volumeMode", "Filesystem");
            default_text(object_mut(claim, "status"), "phase", "Pending");
        }
        default_template(spec);
    },
    validate: templates::validate_stateful_set,
    validate_update: templates::validate_stateful_set_update,
    validate_status: |new, _, errors| {
        templates::validate_counts(
            new,
            &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
            errors,
        );
    },
    ..PLAIN
};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) static DAEMON_SET: Strategy = Strategy {
    default: |object| {
        default_text(object_mut(meta_mut(object), "annotations"), TEMPLATE_GENERATION, "1");
        let spec = object_mut(object, "spec");
        default(spec, "revisionHistoryLimit", 10);
        let strategy = object_mut(spec, "updateStrategy");
        default_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = object_mut(strategy, "rollingUpdate");
            default(rolling, "maxUnavailable", 1);
            default(rolling, "maxSurge", 0);
        }
        default_template(spec);
    },
    prepare_create: |object, _| {
        object_mut(meta_mut(object), "annotations").insert(TEMPLATE_GENERATION.into(), "1".into());
    },
    prepare_update: |new, old| {
        let count = object(meta(old), "annotations")
            .and_then(|a| text(a, TEMPLATE_GENERATION).parse::<u64>().ok())
            .unwrap_or(1);
        let template = |o: &Json| object(o, "spec").and_then(|s| s.get("template")).cloned();
        let count = if template(new) == template(old) { count } else { count + 1 };
        object_mut(meta_mut(new), "annotations").insert(TEMPLATE_GENERATION.into(), count.to_string().into());
    },
    validate: templates::validate_daemon_set,
    validate_update: templates::validate_daemon_set_update,
    ..PLAIN
};

/// Strategy of controller revisions: the number may change, the data may not.
pub(super) static CONTROLLER_REVISION: Strategy = Strategy {
    validate: validate_revision,
    validate_update: |new, old, errors| {
        if new.get("data") != old.get("data") {
            errors.invalid("data", new.get("data").cloned().unwrap_or_default(), "field is immutable");
        }
        validate_revision(new, errors);
    },
    ..PLAIN
};

fn validate_revision(revision: &Json, errors: &mut Errors) {
    let revision = ObjectAt::new(revision, "");
    revision.not_negative(&["revision"], errors);
    if !revision.has("data") {
        errors.required("data", "data is mandatory");
    }
}

pub(super) static JOB: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            spec.insert("completions".into(), 1.into());
            spec.insert("parallelism".into(), 1.into());
        }
        default(spec, "parallelism", 1);
        if spec.contains_key("backoffLimitPerIndex") {
            default(spec, "backoffLimit", i32::MAX);
        }
        default(spec, "backoffLimit", 6);
        default_text(spec, "completionMode", "NonIndexed");
        default(spec, "suspend", false);
        default(spec, "manualSelector", false);
        let replacement =
            if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        default_text(spec, "podReplacementPolicy", replacement);
        if let Some(policy) = spec.get_mut("podFailurePolicy").and_then(Value::as_object_mut) {
            for rule in objects_mut(policy, "rules") {
                for pattern in objects_mut(rule, "onPodConditions") {
                    default_text(pattern, "status", "True");
                }
            }
        }
        default_template(spec);
        copy_template_labels(object);
    },
    prepare_create: |object, _| {
        let manual = object.get("spec").and_then(|s| s.get("manualSelector")) == Some(&Value::Bool(true));
        if !manual {
            select_own_pods(object);
        }
        copy_template_labels(object);
    },
    validate: jobs::validate_job,
    validate_update: jobs::validate_job_update,
    validate_status: jobs::validate_job_status,
    ..PLAIN
};

/// Copies the labels of the pod template to a job without labels.
fn copy_template_labels(job: &mut Json) {
    let labels = job
        .get("spec")
        .and_then(|s| s.get("template"))
        .and_then(|t| t.get("metadata"))
        .and_then(|m| m.get("labels"))
        .filter(|l| l.as_object().is_some_and(|l| !l.is_empty()))
        .cloned();
    if let (Some(labels), true) = (labels, object_is_empty(meta(job), "labels")) {
        meta_mut(job).insert("labels".into(), labels);
    }
}

fn object_is_empty(parent: &Json, key: &str) -> bool {
    object(parent, key).is_none_or(Json::is_empty)
}

/// Sets the selector of a job to its uid, unless it is manual.
fn select_own_pods(job: &mut Json) {
    let (name, uid) = (text(meta(job), "name").to_owned(), text(meta(job), "uid").to_owned());
    let spec = object_mut(job, "spec");
    let labels = object_mut(object_mut(object_mut(spec, "template"), "metadata"), "labels");
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}controller-uid"), uid.as_str().into());
        labels.insert(format!("{prefix}job-name"), name.as_str().into());
    }
    let selector = object_mut(object_mut(spec, "selector"), "matchLabels");
    if !selector.contains_key("controller-uid") {
        selector.insert("batch.kubernetes.io/controller-uid".into(), uid.into());
    }
}

pub(super) static CRON_JOB: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default_text(spec, "concurrencyPolicy", "Allow");
        default(spec, "suspend", false);
        default(spec, "successfulJobsHistoryLimit", 3);
        default(spec, "failedJobsHistoryLimit", 1);
        default_template(object_mut(object_mut(spec, "jobTemplate"), "spec"));
    },
    validate: jobs::validate_cron_job,
    validate_update: |new, _, errors| jobs::validate_cron_job(new, errors),
    ..PLAIN
};

pub(super) static AUTOSCALER: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default(spec, "minReplicas", 1);
        if !spec.contains_key("metrics") && !spec.contains_key("targetCPUUtilizationPercentage") {
            spec.insert(
                "metrics".into(),
                json!([{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
                }}]),
            );
        }
        default_behavior(spec);
    },
    validate: autoscaler::validate_autoscaler,
    validate_update: |new, _, errors| autoscaler::validate_autoscaler(new, errors),
    ..PLAIN
};

/// Completes partially specified scaling behaviour with the defaults.
fn default_behavior(spec: &mut Json) {
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let up = json!({
        "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    });
    let down = json!({
        "selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    });
    for (key, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        let rules = object_mut(behavior, key);
        for (name, value) in defaults.as_object().into_iter().flatten() {
            default(rules, name, value.clone());
        }
    }
}
