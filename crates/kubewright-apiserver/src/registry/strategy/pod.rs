//! Strategy of pods.

use serde_json::{Value, json};

use super::{PLAIN, Strategy, podchecks, podspec};
use crate::registry::{
    json::{Json, default, list, meta, meta_mut, object, object_mut, objects, objects_mut, text, text_at},
    validation::Errors,
};

pub(super) static POD: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        podspec::default_requests(spec);
        podspec::default_spec(spec);
        default(spec, "enableServiceLinks", true);
        let status = object_mut(object, "status");
        let ip = text(status, "podIP").to_owned();
        if !ip.is_empty() && list(status, "podIPs").is_empty() {
            status.insert("podIPs".into(), json!([{"ip": ip}]));
        }
    },
    prepare_create: |object, preparing| {
        let spec = object_mut(object, "spec");
        if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|s| s < 0) {
            spec.insert("terminationGracePeriodSeconds".into(), 1.into());
        }
        let qos = podspec::qos(spec);
        let gated = !list(spec, "schedulingGates").is_empty();
        let mut status = json!({"phase": "Pending", "qosClass": qos});
        if gated {
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
                "lastTransitionTime": preparing.now, "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
        object.insert("status".into(), status);
    },
    prepare_status: |new, old| {
        for key in ["ownerReferences", "deletionTimestamp"] {
            match meta(old).get(key) {
                Some(value) => meta_mut(new).insert(key.into(), value.clone()),
                None => meta_mut(new).remove(key),
            };
        }
        let status = object_mut(new, "status");
        if text(status, "qosClass").is_empty() {
            let qos = text_at(old, &["status", "qosClass"]).to_owned();
            object_mut(new, "status").insert("qosClass".into(), qos.into());
        }
    },
    validate_status: |new, _, errors| {
        let ips = object(new, "status").into_iter().flat_map(|s| objects(s, "podIPs"));
        for (n, ip) in ips.map(|i| text(i, "ip")).enumerate() {
            if ip.parse::<std::net::IpAddr>().is_err() {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                errors.invalid(format!("status.podIPs[{n}]"), ip, why);
            }
        }
    },
    validate: |object_, errors| {
        if let Some(spec) = object(object_, "spec") {
            podchecks::validate_spec(spec, "spec", errors);
            podchecks::validate_pod_only(spec, errors);
            if !list(spec, "ephemeralContainers").is_empty() {
                errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
            }
            validate_mirror(object_, spec, errors);
        }
    },
    validate_update,
    validate_subresource: |subresource, new, old, errors| {
        let empty = Json::new();
        let (spec, before) = (object(new, "spec").unwrap_or(&empty), object(old, "spec").unwrap_or(&empty));
        match subresource {
            "ephemeralcontainers" => validate_ephemeral(spec, before, errors),
            _ => podchecks::validate_spec(spec, "spec", errors),
        }
    },
    warnings: super::templates::pod_warnings,
    ..PLAIN
};

fn validate_mirror(pod: &Json, spec: &Json, errors: &mut Errors) {
    let annotations = object(meta(pod), "annotations");
    let mirror = annotations.map(|a| text(a, "kubernetes.io/config.mirror")).unwrap_or_default();
    if !mirror.is_empty() && text(spec, "nodeName").is_empty() {
        errors.invalid(
            "metadata.annotations[kubernetes.io/config.mirror]",
            mirror,
            "must set spec.nodeName if mirror pod annotation is set",
        );
    }
}

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update: hardly any field of a pod's spec is mutable.
fn validate_update(new: &Json, old: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let (spec, before) = (object(new, "spec").unwrap_or(&empty), object(old, "spec").unwrap_or(&empty));
    if spec == before {
        return;
    }
    for key in ["containers", "initContainers"] {
        if list(spec, key).len() != list(before, key).len() {
            errors.forbidden(format!("spec.{key}"), "pod updates may not add or remove containers");
            return;
        }
    }
    for (n, container) in objects(spec, "containers").enumerate() {
        if text(container, "image").is_empty() {
            errors.required(format!("spec.containers[{n}].image"), "");
        }
    }
    validate_deadline(spec, before, errors);
    validate_tolerations(spec, before, errors);
    let gates = |s: &Json| list(s, "schedulingGates").to_vec();
    for (n, gate) in gates(spec).iter().enumerate() {
        if !gates(before).contains(gate) {
            errors.forbidden(
                format!("spec.schedulingGates[{n}].name"),
                "only deletion is allowed, but found new scheduling gate",
            );
        }
    }
    let mut frozen = spec.clone();
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        match before.get(key) {
            Some(value) => frozen.insert(key.into(), value.clone()),
            None => frozen.remove(key),
        };
    }
    if !gates(before).is_empty() {
        // The node selector and affinity of a gated pod are mutable.
        for key in ["nodeSelector", "affinity"] {
            match before.get(key) {
                Some(value) => frozen.insert(key.into(), value.clone()),
                None => frozen.remove(key),
            };
        }
    }
    for key in ["containers", "initContainers"] {
        let images: Vec<Option<Value>> = objects(before, key).map(|c| c.get("image").cloned()).collect();
        let resources: Vec<Option<Value>> =
            objects(before, key).map(|c| c.get("resources").cloned()).collect();
        for ((container, image), resources) in objects_mut(&mut frozen, key).zip(images).zip(resources) {
            if let Some(image) = image {
                container.insert("image".into(), image);
            }
            if let Some(resources) = resources {
                container.insert("resources".into(), resources);
            }
        }
    }
    if frozen != *before {
        errors.forbidden("spec", FORBIDDEN);
    }
}

/// Validates that ephemeral containers are only added.
fn validate_ephemeral(spec: &Json, before: &Json, errors: &mut Errors) {
    let names = |s: &Json| -> Vec<String> {
        objects(s, "ephemeralContainers").map(|c| text(c, "name").to_owned()).collect()
    };
    let (now, then) = (names(spec), names(before));
    podchecks::validate_spec(spec, "spec", errors);
    let gone: Vec<String> = then.iter().filter(|n| !now.contains(n)).map(|n| format!("{n:?}")).collect();
    if errors.is_empty() && !gone.is_empty() {
        let why = format!("existing ephemeral containers {} may not be removed\n", gone.join(", "));
        errors.forbidden("spec.ephemeralContainers", &why);
    }
}

fn validate_deadline(spec: &Json, before: &Json, errors: &mut Errors) {
    let of = |s: &Json| s.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (of(spec), of(before)) {
        (Some(new), Some(old)) if new > old => {
            errors.invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value");
        }
        (None, Some(_)) => errors.invalid(
            "spec.activeDeadlineSeconds",
            Value::Null,
            "must not update from a positive integer to nil value",
        ),
        _ => {}
    }
}

fn validate_tolerations(spec: &Json, before: &Json, errors: &mut Errors) {
    let bare = |toleration: &Json| {
        let mut toleration = toleration.clone();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let kept: Vec<Json> = objects(spec, "tolerations").map(bare).collect();
    if objects(before, "tolerations").any(|t| !kept.contains(&bare(t))) {
        errors.forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
}
