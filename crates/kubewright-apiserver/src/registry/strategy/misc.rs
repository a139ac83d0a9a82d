//! Strategies of groups with few rules.

use serde_json::{Value, json};

use super::{PLAIN, Strategy, templates};
use crate::registry::{
    json::{Json, default, default_text, list, object, object_mut, text, text_at},
    validation::{Errors, at::ObjectAt, names},
};

pub(super) static STORAGE_CLASS: Strategy = Strategy {
    default: |object| {
        default_text(object, "reclaimPolicy", "Delete");
        default_text(object, "volumeBindingMode", "Immediate");
    },
    validate: |class, errors| {
        let at = ObjectAt::new(class, "");
        let provisioner = text(class, "provisioner").to_lowercase();
        if !provisioner.is_empty() {
            for why in names::qualified(&provisioner) {
                errors.invalid("provisioner", provisioner.as_str(), &why);
            }
        }
        if object(class, "parameters").is_some_and(|parameters| parameters.contains_key("")) {
            errors.invalid("parameters", "", "field can not be empty.");
        }
        at.choice("reclaimPolicy", &["Delete", "Retain"], errors);
        at.choice("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], errors);
        at.required("provisioner", errors);
        for topology in at.each("allowedTopologies") {
            for expression in topology.each("matchLabelExpressions") {
                if expression.list("values").is_empty() {
                    errors.required(expression.path("values"), "");
                }
                let key = expression.text("key");
                for why in names::qualified(key) {
                    errors.invalid(expression.path("key"), key, &why);
                }
            }
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
        for key in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
            "preventPodSchedulingIfMissing",
        ] {
            default(spec, key, false);
        }
        default_text(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if list(spec, "volumeLifecycleModes").is_empty() {
            spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
        }
    },
    validate: |driver, errors| {
        let Some(spec) = ObjectAt::new(driver, "").child("spec") else { return };
        spec.choice("fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"], errors);
        for mode in spec.list("volumeLifecycleModes") {
            if mode != "Persistent" && mode != "Ephemeral" {
                errors.not_supported("spec.volumeLifecycleModes", mode.clone(), &["Persistent", "Ephemeral"]);
            }
        }
    },
    ..PLAIN
};

pub(super) static RUNTIME_CLASS: Strategy = Strategy {
    validate: validate_runtime,
    validate_update: |new, old, errors| {
        validate_runtime(new, errors);
        if new.get("handler") != old.get("handler") {
            errors.invalid("handler", Value::Null, "field is immutable");
        }
    },
    ..PLAIN
};

fn validate_runtime(class: &Json, errors: &mut Errors) {
    let at = ObjectAt::new(class, "");
    at.required("handler", errors);
    at.named("handler", names::label, errors);
    if let Some(fixed) = at.child("overhead").and_then(|overhead| object(overhead.object, "podFixed")) {
        for (name, amount) in fixed {
            // Upstream validates overhead as the limits of a container.
            super::resources::validate_amount(name, amount, &format!("overhead.limits[{name}]"), errors);
        }
    }
}

pub(super) static BUDGET: Strategy = Strategy {
    validate: validate_budget,
    validate_update: |new, _, errors| validate_budget(new, errors),
    ..PLAIN
};

fn validate_budget(budget: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(budget, "spec").unwrap_or(&empty);
    if spec.contains_key("minAvailable") && spec.contains_key("maxUnavailable") {
        let part = |key: &str| spec.get(key).cloned().unwrap_or_default();
        let shown = json!({
            "MinAvailable": part("minAvailable"), "Selector": part("selector"),
            "MaxUnavailable": part("maxUnavailable"),
            "UnhealthyPodEvictionPolicy": part("unhealthyPodEvictionPolicy"),
        });
        errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        templates::int_or_percent(spec, key, "spec", errors);
        templates::at_most_100_percent(spec, key, "spec", errors);
    }
    ObjectAt::new(spec, "spec").choice(
        "unhealthyPodEvictionPolicy",
        &["AlwaysAllow", "IfHealthyBudget"],
        errors,
    );
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
        let name = text_at(class, &["metadata", "name"]);
        if name.starts_with("system-") {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
                 known system priority class"
            );
            errors.forbidden("metadata.name", &why);
        }
        ObjectAt::new(class, "").choice("preemptionPolicy", &["PreemptLowerPriority", "Never"], errors);
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
        if let Some(service) = ObjectAt::new(&spec, "spec").child("service") {
            service.required("namespace", errors);
            service.required("name", errors);
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
        let spec = ObjectAt::new(&spec, "spec");
        if spec.list("usages").is_empty() {
            errors.required("spec.usages", "");
        }
        let signer = spec.text("signerName");
        spec.required("signerName", errors);
        let qualified =
            signer.split_once('/').is_some_and(|(domain, name)| domain.contains('.') && !name.is_empty());
        if !signer.is_empty() && !qualified {
            let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.invalid("spec.signerName", signer, why);
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

/// Validates that a request is not both approved and denied.
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
