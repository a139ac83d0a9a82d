//! Strategies of the groups with few rules each.

use serde_json::{Value, json};

use super::{PLAIN, Strategy, templates};
use crate::registry::{
    json::{Json, default, default_text, list, object, object_mut, objects_mut, text, text_at},
    validation::{Errors, names::NameRule},
};

pub(super) static ROLE: Strategy = Strategy { names: NameRule::PathSegment, ..PLAIN };

pub(super) static BINDING: Strategy = Strategy {
    names: NameRule::PathSegment,
    default: |object| {
        const GROUP: &str = "rbac.authorization.k8s.io";
        default_text(object_mut(object, "roleRef"), "apiGroup", GROUP);
        for subject in objects_mut(object, "subjects") {
            if matches!(text(subject, "kind"), "User" | "Group") {
                default_text(subject, "apiGroup", GROUP);
            }
        }
    },
    validate_update: |new, old, errors| {
        if new.get("roleRef") != old.get("roleRef") {
            let shown = new.get("roleRef").cloned().unwrap_or_default();
            errors.invalid("roleRef", shown, "cannot change roleRef");
        }
    },
    ..PLAIN
};

pub(super) static STORAGE_CLASS: Strategy = Strategy {
    default: |object| {
        default_text(object, "reclaimPolicy", "Delete");
        default_text(object, "volumeBindingMode", "Immediate");
    },
    validate: |class, errors| {
        let policy = text(class, "reclaimPolicy");
        if !matches!(policy, "Delete" | "Retain") {
            errors.not_supported("reclaimPolicy", policy, &["Delete", "Retain"]);
        }
        if text(class, "provisioner").is_empty() {
            errors.required("provisioner", "");
        }
        let mode = text(class, "volumeBindingMode");
        if !matches!(mode, "Immediate" | "WaitForFirstConsumer") {
            errors.not_supported("volumeBindingMode", mode, &["Immediate", "WaitForFirstConsumer"]);
        }
    },
    validate_update: |new, old, errors| {
        for key in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
            if new.get(key) != old.get(key) {
                errors.invalid(key, Value::Null, "field is immutable");
            }
        }
    },
    ..PLAIN
};

pub(super) static CSI_DRIVER: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default(spec, "attachRequired", true);
        for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            default(spec, key, false);
        }
        default_text(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if list(spec, "volumeLifecycleModes").is_empty() {
            spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
        }
    },
    ..PLAIN
};

pub(super) static BUDGET: Strategy = Strategy {
    validate: validate_budget,
    validate_update: |new, _, errors| validate_budget(new, errors),
    ..PLAIN
};

fn validate_budget(budget: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(budget, "spec").unwrap_or(&empty);
    if spec.contains_key("minAvailable") && spec.contains_key("maxUnavailable") {
        let shown = Value::Object(spec.clone());
        errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        templates::int_or_percent(spec, key, "spec", errors);
    }
    if let Some(selector) = object(spec, "selector") {
        templates::validate_selector(selector, "spec.selector", errors);
    }
}

pub(super) static PRIORITY_CLASS: Strategy = Strategy {
    default: |object| default_text(object, "preemptionPolicy", "PreemptLowerPriority"),
    validate: |class, errors| {
        let value = class.get("value").and_then(Value::as_i64).unwrap_or(0);
        if value > 1_000_000_000 && !text_at(class, &["metadata", "name"]).starts_with("system-") {
            errors.forbidden("value", "maximum allowed value of a user defined priority is 1000000000");
        }
        if text_at(class, &["metadata", "name"]).starts_with("system-") {
            errors.forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: not a known \
                 system priority class",
            );
        }
    },
    validate_update: |new, old, errors| {
        for (key, why) in
            [("value", "may not be changed in an update."), ("preemptionPolicy", "field is immutable")]
        {
            if new.get(key) != old.get(key) {
                errors.forbidden(key, why);
            }
        }
    },
    ..PLAIN
};

pub(super) static LEASE: Strategy = Strategy {
    validate: validate_lease,
    validate_update: |new, _, errors| validate_lease(new, errors),
    ..PLAIN
};

fn validate_lease(lease: &Json, errors: &mut Errors) {
    let Some(spec) = object(lease, "spec") else { return };
    if let Some(seconds) = spec.get("leaseDurationSeconds").and_then(Value::as_i64).filter(|s| *s <= 0) {
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    if let Some(count) = spec.get("leaseTransitions").and_then(Value::as_i64).filter(|s| *s < 0) {
        errors.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0");
    }
}

pub(super) static API_SERVICE: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        if let Some(service) = spec.get_mut("service").and_then(Value::as_object_mut) {
            default(service, "port", 443);
        }
    },
    validate: |service, errors| {
        let spec = object(service, "spec").cloned().unwrap_or_default();
        let expected = format!("{}.{}", text(&spec, "version"), text(&spec, "group"));
        let name = text_at(service, &["metadata", "name"]);
        if name != expected {
            let why = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
            errors.invalid("metadata.name", name, &why);
        }
        for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
            let number = spec.get(key).and_then(Value::as_i64).unwrap_or(0);
            if number <= 0 || number > most {
                let why = format!("must be positive and less than {most}");
                errors.invalid(format!("spec.{key}"), number, &why);
            }
        }
    },
    ..PLAIN
};

pub(super) static SIGNING_REQUEST: Strategy = Strategy {
    prepare_create: |object, preparing| {
        let spec = object_mut(object, "spec");
        let user = preparing.user;
        spec.insert("username".into(), user.name.as_str().into());
        for key in ["uid", "groups", "extra"] {
            spec.remove(key);
        }
        if !user.uid.is_empty() {
            spec.insert("uid".into(), user.uid.as_str().into());
        }
        if !user.groups.is_empty() {
            spec.insert("groups".into(), json!(user.groups));
        }
        if !user.extra.is_empty() {
            spec.insert("extra".into(), json!(user.extra));
        }
        if list(spec, "usages").is_empty() {
            spec.insert("usages".into(), json!(["digital signature", "key encipherment"]));
        }
        object.insert("status".into(), json!({}));
    },
    prepare_update: |new, old| {
        if let Some(spec) = old.get("spec") {
            new.insert("spec".into(), spec.clone());
        }
    },
    validate: |request, errors| {
        let spec = object(request, "spec").cloned().unwrap_or_default();
        check_request(text(&spec, "request"), errors);
        if text(&spec, "signerName").is_empty() {
            errors.required("spec.signerName", "");
        }
    },
    validate_status: |new, _, errors| {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let certificate = text_at(new, &["status", "certificate"]);
        let pem = STANDARD.decode(certificate).unwrap_or_default();
        if !certificate.is_empty() && !pem.starts_with(b"-----BEGIN CERTIFICATE-----") {
            errors.invalid(
                "status.certificate",
                "<certificate data>",
                "must contain at least one CERTIFICATE PEM block",
            );
        }
    },
    validate_subresource: |_, new, _, errors| check_decision(new, errors),
    ..PLAIN
};

/// A request is approved or denied, not both.
fn check_decision(request: &Json, errors: &mut Errors) {
    let status = object(request, "status").cloned().unwrap_or_default();
    let has =
        |kind: &str| crate::registry::json::objects(&status, "conditions").any(|c| text(c, "type") == kind);
    if has("Approved") && has("Denied") {
        errors.invalid(
            "status.conditions",
            "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}",
            "must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, \
             `conditions[{\"type\": \"Denied\"}]`",
        );
    }
}

fn check_request(encoded: &str, errors: &mut Errors) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    if !pem.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
        errors.invalid("spec.request", encoded, "PEM block type must be CERTIFICATE REQUEST");
    }
}
