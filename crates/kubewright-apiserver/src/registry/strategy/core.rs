//! Strategies of small types of the core group.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{PLAIN, Strategy};
use crate::registry::{
    json::{
        Json, default, default_text, list, meta, meta_mut, name, object, object_mut, objects_mut, text,
        text_at,
    },
    validation::{
        Errors,
        at::{ADDRESS, CIDR, ObjectAt, PORT, parse_cidr},
        names::{self, NameRule},
    },
};

const MAX_BYTES: usize = 1024 * 1024;

pub(super) static CONFIG_MAP: Strategy = Strategy {
    validate: |object, errors| validate_data(object, &["data", "binaryData"], errors),
    validate_update: |new, old, errors| {
        validate_immutable(new, old, &["data", "binaryData"], errors);
        validate_data(new, &["data", "binaryData"], errors);
    },
    ..PLAIN
};

pub(super) static SECRET: Strategy = Strategy {
    default: |object| {
        default_text(object, "type", "Opaque");
        if let Some(Value::Object(plain)) = object.remove("stringData") {
            let data = object_mut(object, "data");
            for (key, value) in plain {
                let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
                data.insert(key, encoded.into());
            }
        }
    },
    validate: validate_secret,
    validate_update: |new, old, errors| {
        if text(new, "type") != text(old, "type") {
            errors.invalid("type", text(new, "type"), "field is immutable");
        }
        validate_immutable(new, old, &["data"], errors);
        validate_secret(new, errors);
    },
    ..PLAIN
};

/// Validates that an immutable object keeps its data and its `immutable` field.
fn validate_immutable(new: &Json, old: &Json, fields: &[&str], errors: &mut Errors) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old.get("immutable").and_then(Value::as_bool) != Some(true) {
        return;
    }
    if new.get("immutable").and_then(Value::as_bool) != Some(true) {
        errors.forbidden("immutable", WHY);
    }
    for field in fields {
        if new.get(*field) != old.get(*field) {
            errors.forbidden(*field, WHY);
        }
    }
}

fn validate_data(object_: &Json, fields: &[&str], errors: &mut Errors) {
    let mut total = 0;
    for field in fields {
        for (key, value) in object(object_, field).into_iter().flatten() {
            for why in names::config_key(key) {
                errors.invalid(format!("{field}[{key}]"), key.as_str(), &why);
            }
            let other = fields.iter().find(|f| *f != field).and_then(|f| object(object_, f));
            if *field == fields[0] && other.is_some_and(|o| o.contains_key(key)) {
                errors.invalid(
                    format!("{field}[{key}]"),
                    key.as_str(),
                    &format!("duplicate of key present in {}", fields[1]),
                );
            }
            total += value.as_str().map_or(0, str::len);
        }
    }
    if total > MAX_BYTES {
        errors.too_long("", MAX_BYTES);
    }
}

fn validate_secret(object_: &Json, errors: &mut Errors) {
    let data = object(object_, "data");
    let mut total = 0;
    for (key, value) in data.into_iter().flatten() {
        for why in names::config_key(key) {
            errors.invalid(format!("data[{key}]"), key.as_str(), &why);
        }
        total += value.as_str().map_or(0, |v| v.len() / 4 * 3);
    }
    if total > MAX_BYTES {
        errors.too_long("data", MAX_BYTES);
    }
    let has = |key: &str| data.is_some_and(|d| d.contains_key(key));
    let bytes = |key: &str| data.and_then(|d| STANDARD.decode(text(d, key)).ok()).unwrap_or_default();
    let require = |key: &str, errors: &mut Errors| {
        if !has(key) {
            errors.required(format!("data[{key}]"), "");
        }
    };
    match text(object_, "type") {
        "kubernetes.io/service-account-token" => {
            let annotations = object(meta(object_), "annotations");
            let account =
                annotations.map(|a| text(a, "kubernetes.io/service-account.name")).unwrap_or_default();
            if account.is_empty() {
                errors.required("metadata.annotations[kubernetes.io/service-account.name]", "");
            }
        }
        "kubernetes.io/dockercfg" => {
            require(".dockercfg", errors);
            if has(".dockercfg") {
                validate_json(".dockercfg", &bytes(".dockercfg"), errors);
            }
        }
        "kubernetes.io/dockerconfigjson" => {
            require(".dockerconfigjson", errors);
            if has(".dockerconfigjson") {
                validate_json(".dockerconfigjson", &bytes(".dockerconfigjson"), errors);
            }
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.required("data[username]", "");
            errors.required("data[password]", "");
        }
        "kubernetes.io/ssh-auth" if bytes("ssh-privatekey").is_empty() => {
            errors.required("data[ssh-privatekey]", "");
        }
        "kubernetes.io/tls" => {
            require("tls.crt", errors);
            require("tls.key", errors);
        }
        _ => {}
    }
}

/// Validates that a value is JSON; the error shows the byte at which Go's decoder fails.
fn validate_json(key: &str, bytes: &[u8], errors: &mut Errors) {
    let Err(error) = serde_json::from_slice::<Value>(bytes) else { return };
    let why = match bytes
        .get(error.column().saturating_sub(1))
        .filter(|_| error.is_syntax() && error.line() == 1)
    {
        Some(byte) if byte.is_ascii_graphic() => {
            format!("invalid character '{}' looking for beginning of value", char::from(*byte))
        }
        Some(byte) => format!("invalid character '\\x{byte:02x}' looking for beginning of value"),
        None => "unexpected end of JSON input".to_owned(),
    };
    errors.invalid(format!("data[{key}]"), "<secret contents redacted>", &why);
}

pub(super) static NAMESPACE: Strategy = Strategy {
    names: NameRule::Label,
    default: |object| {
        let own = name(object).to_owned();
        if !own.is_empty() {
            object_mut(meta_mut(object), "labels").insert("kubernetes.io/metadata.name".into(), own.into());
        }
    },
    prepare_create: |object, _| {
        object.insert("status".into(), json!({"phase": "Active"}));
        // Adds the `kubernetes` finalizer once, beside those of the client.
        let spec = object_mut(object, "spec");
        let mut finalizers = list(spec, "finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        spec.insert("finalizers".into(), finalizers.into());
        let own = name(object).to_owned();
        object_mut(meta_mut(object), "labels").insert("kubernetes.io/metadata.name".into(), own.into());
    },
    prepare_update: |new, old| {
        match object(old, "spec").and_then(|s| s.get("finalizers")) {
            Some(finalizers) => object_mut(new, "spec").insert("finalizers".into(), finalizers.clone()),
            None => object_mut(new, "spec").remove("finalizers"),
        };
    },
    validate: |namespace, errors| {
        let Some(spec) = object(namespace, "spec") else { return };
        for finalizer in list(spec, "finalizers").iter().filter_map(Value::as_str) {
            for why in names::qualified(finalizer) {
                errors.invalid("spec.finalizers", finalizer, &why);
            }
            let standard = matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion");
            if !standard && !finalizer.contains('/') {
                let why = "name is neither a standard finalizer name nor is it fully qualified";
                errors.invalid("spec.finalizers", finalizer, why);
            }
        }
    },
    validate_status: |new, _, errors| {
        let phase = text_at(new, &["status", "phase"]);
        let deleting = meta(new).contains_key("deletionTimestamp");
        if deleting && phase != "Terminating" {
            errors.invalid(
                "status.Phase",
                phase,
                "may only be 'Terminating' if `deletionTimestamp` is not empty",
            );
        }
        if !deleting && phase != "Active" {
            errors.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
        }
    },
    ..PLAIN
};

pub(super) static NODE: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        let range = text(spec, "podCIDR").to_owned();
        if !range.is_empty() && list(spec, "podCIDRs").is_empty() {
            spec.insert("podCIDRs".into(), json!([range]));
        }
        let status = object_mut(object, "status");
        if let Some(capacity) = status.get("capacity").cloned() {
            default(status, "allocatable", capacity);
        }
    },
    keeps_status: true,
    validate: validate_node,
    validate_update: |new, old, errors| {
        validate_node(new, errors);
        let provider = |node: &Json| text_at(node, &["spec", "providerID"]).to_owned();
        if !provider(old).is_empty() && provider(new) != provider(old) {
            errors.invalid("spec.providerID", Value::Null, "field cannot be modified once set");
        }
        let range = |node: &Json| text_at(node, &["spec", "podCIDR"]).to_owned();
        if !range(old).is_empty() && range(new) != range(old) {
            errors
                .forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
        }
    },
    ..PLAIN
};

fn validate_node(node: &Json, errors: &mut Errors) {
    let Some(spec) = object(node, "spec") else { return };
    for (n, range) in list(spec, "podCIDRs").iter().filter_map(Value::as_str).enumerate() {
        if parse_cidr(range).is_none() {
            errors.invalid(format!("spec.podCIDRs[{n}]"), range, CIDR);
        }
    }
    for (n, taint) in crate::registry::json::objects(spec, "taints").enumerate() {
        let key = text(taint, "key");
        for why in names::qualified(key) {
            errors.invalid(format!("metadata.taints[{n}].key"), key, &why);
        }
        let effect = text(taint, "effect");
        if effect.is_empty() {
            errors.required(format!("metadata.taints[{n}].effect"), "");
        } else if !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            errors.not_supported(
                format!("metadata.taints[{n}].effect"),
                effect,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            );
        }
    }
}

pub(super) static CLAIM: Strategy = Strategy {
    default: |object| {
        default_text(object_mut(object, "spec"), "volumeMode", "Filesystem");
        default_text(object_mut(object, "status"), "phase", "Pending");
    },
    prepare_create: |object, _| {
        object.insert("status".into(), json!({"phase": "Pending"}));
        mirror_data_source(object);
    },
    validate: super::volumes::validate_claim,
    validate_update: super::volumes::validate_claim_update,
    ..PLAIN
};

/// Copies `dataSource` to `dataSourceRef` or back if one of them is set.
fn mirror_data_source(object: &mut Json) {
    let spec = object_mut(object, "spec");
    // A core group source other than a claim is invalid: older servers accepted it, and it is dropped.
    let unusable = spec.get("dataSource").and_then(Value::as_object).is_some_and(|source| {
        text(source, "apiGroup").is_empty() && text(source, "kind") != "PersistentVolumeClaim"
    });
    if unusable {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(Value::Object(mut reference))) if text(&reference, "namespace").is_empty() => {
            reference.remove("namespace");
            spec.insert("dataSource".into(), Value::Object(reference));
        }
        _ => {}
    }
}

pub(super) static VOLUME: Strategy = Strategy {
    default: |object| {
        let spec = object_mut(object, "spec");
        default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_text(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
            default(path, "type", "");
        }
        default_text(object_mut(object, "status"), "phase", "Pending");
    },
    prepare_create: |object, preparing| {
        object.insert("status".into(), json!({"phase": "Pending", "lastPhaseTransitionTime": preparing.now}));
    },
    validate: super::volumes::validate_volume,
    validate_update: super::volumes::validate_volume_update,
    ..PLAIN
};

pub(super) static EVENT: Strategy = Strategy {
    validate: |object, errors| {
        let regarding = if object.contains_key("regarding") { "regarding" } else { "involvedObject" };
        let new_form = text(object, "apiVersion") == "events.k8s.io/v1";
        let namespace = text_at(object, &[regarding, "namespace"]);
        let own = text(meta(object), "namespace");
        if !new_form && namespace != own && !(namespace.is_empty() && own == "default") {
            errors.invalid("involvedObject.namespace", namespace, "does not match event.namespace");
        }
        if new_form {
            validate_new_event(object, errors);
        }
    },
    validate_update: |new, old, errors| {
        if text(new, "apiVersion") != "events.k8s.io/v1" {
            return;
        }
        for key in [
            "regarding",
            "reason",
            "action",
            "note",
            "type",
            "reportingController",
            "reportingInstance",
            "eventTime",
            "related",
        ] {
            if new.get(key) != old.get(key) {
                let value = new.get(key).cloned().unwrap_or_default();
                errors.invalid(key, value, "field is immutable");
            }
        }
    },
    ..PLAIN
};

fn validate_new_event(object: &Json, errors: &mut Errors) {
    if text(object, "eventTime").is_empty() {
        errors.required("eventTime", "");
    } else {
        let controller = text(object, "reportingController");
        if controller.is_empty() {
            errors.required("reportingController", "");
        }
        for why in names::qualified(controller) {
            errors.invalid("reportingController", controller, &why);
        }
        for key in ["reportingInstance", "action", "reason"] {
            if text(object, key).is_empty() {
                errors.required(key, "");
            }
        }
    }
    let kind = text(object, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid("type", kind, &format!("has invalid value: {kind}"));
    }
}

pub(super) static ENDPOINTS: Strategy = Strategy {
    default: |object| {
        for subset in objects_mut(object, "subsets") {
            for port in objects_mut(subset, "ports") {
                default_text(port, "protocol", "TCP");
            }
        }
    },
    validate: validate_endpoints,
    validate_update: |new, _, errors| validate_endpoints(new, errors),
    ..PLAIN
};

fn validate_endpoints(endpoints: &Json, errors: &mut Errors) {
    for subset in ObjectAt::new(endpoints, "").each("subsets") {
        if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
            errors.required(&subset.field, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in ["addresses", "notReadyAddresses"] {
            for address in subset.each(key) {
                validate_endpoint_address(&address, errors);
            }
        }
        let several = subset.list("ports").len() > 1;
        for port in subset.each("ports") {
            if several && port.text("name").is_empty() {
                errors.required(port.path("name"), "");
            }
            port.named("name", names::label, errors);
            let number = port.number("port").unwrap_or(0);
            if !(1..=65_535).contains(&number) {
                errors.invalid(port.path("port"), number, PORT);
            }
            port.choice("protocol", &["SCTP", "TCP", "UDP"], errors);
        }
    }
}

fn validate_endpoint_address(address: &ObjectAt<'_>, errors: &mut Errors) {
    let ip = address.text("ip");
    let field = address.path("ip");
    let refuse = |why: &str, errors: &mut Errors| errors.invalid(&field, ip, why);
    match ip.parse::<std::net::IpAddr>() {
        Err(_) => {
            refuse(ADDRESS, errors);
            refuse("must be a valid IP address", errors);
        }
        Ok(ip) if ip.is_unspecified() => {
            refuse(&format!("may not be unspecified ({ip})"), errors);
        }
        Ok(ip) if ip.is_loopback() => {
            refuse("may not be in the loopback range (127.0.0.0/8, ::1/128)", errors);
        }
        Ok(std::net::IpAddr::V4(ip)) if ip.is_link_local() => {
            refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)", errors);
        }
        Ok(_) => {}
    }
    address.named("hostname", names::label, errors);
    address.named("nodeName", names::subdomain, errors);
}

pub(super) static REPLICATION_CONTROLLER: Strategy = Strategy {
    default: |object| {
        let labels = object_mut(object, "spec")
            .get("template")
            .and_then(|t| t.get("metadata"))
            .and_then(|m| m.get("labels"))
            .cloned();
        if let Some(labels) = labels {
            let spec = object_mut(object, "spec");
            if list(spec, "selector").is_empty()
                && spec.get("selector").and_then(Value::as_object).is_none_or(Json::is_empty)
            {
                spec.insert("selector".into(), labels.clone());
            }
            if super::super::json::object(meta(object), "labels").is_none_or(Json::is_empty) {
                meta_mut(object).insert("labels".into(), labels);
            }
        }
        let spec = object_mut(object, "spec");
        default(spec, "replicas", 1);
        super::podspec::default_template(spec);
    },
    ..PLAIN
};

pub(super) static POD_TEMPLATE: Strategy =
    Strategy { default: |object| super::podspec::default_template(object), ..PLAIN };
