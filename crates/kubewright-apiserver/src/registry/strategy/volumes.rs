//! Validation of persistent volumes and claims.

use serde_json::Value;

use crate::registry::{
    json::{Json, at, object},
    quantity,
    validation::{
        Errors,
        at::{ObjectAt, no_backsteps},
        names,
    },
};

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn validate_access_modes(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let modes = spec.list("accessModes");
    let field = spec.path("accessModes");
    if modes.is_empty() {
        errors.required(&field, "at least 1 access mode is required");
    }
    for mode in modes {
        if !mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode)) {
            errors.not_supported(&field, mode.clone(), ACCESS_MODES);
        }
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        errors.forbidden(field, "may not use ReadWriteOncePod with other access modes");
    }
}

pub(super) fn validate_claim(claim: &Json, errors: &mut Errors) {
    let empty = Json::new();
    validate_claim_spec(&ObjectAt::new(object(claim, "spec").unwrap_or(&empty), "spec"), errors);
}

/// Validates the spec of a claim or of a claim template.
pub(super) fn validate_claim_spec(spec: &ObjectAt<'_>, errors: &mut Errors) {
    validate_access_modes(spec, errors);
    if let Some(selector) = spec.child("selector") {
        super::templates::validate_selector(selector.object, &selector.field.to_string(), errors);
    }
    let field = format!("{}[storage]", spec.path("resources"));
    match at(spec.object, &["resources", "requests", "storage"]) {
        None => errors.required(field, ""),
        Some(size) => {
            if quantity::parse(size).is_some_and(|size| size <= 0) {
                errors.invalid(field, size.clone(), "must be greater than zero");
            }
        }
    }
    spec.named("storageClassName", names::subdomain, errors);
    spec.choice("volumeMode", &["Block", "Filesystem"], errors);
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = spec.child(key) else { continue };
        source.required("name", errors);
        source.required("kind", errors);
        if source.text("apiGroup").is_empty() && source.text("kind") != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid(&source.field, source.text("kind"), why);
        }
    }
}

pub(super) fn validate_claim_update(new: &Json, old: &Json, errors: &mut Errors) {
    let bare = |claim: &Json| {
        let mut spec = object(claim, "spec").cloned().unwrap_or_default();
        if let Some(requests) =
            spec.get_mut("resources").and_then(|r| r.get_mut("requests")).and_then(Value::as_object_mut)
        {
            requests.remove("storage");
        }
        // The volume and the attributes class of a claim can be set once.
        for key in ["volumeName", "volumeAttributesClassName"] {
            spec.remove(key);
        }
        spec
    };
    let size = |claim: &Json| at(claim, &["spec", "resources", "requests", "storage"]).cloned();
    let unbound = at(old, &["status", "phase"]).is_none_or(|phase| phase != "Bound");
    if bare(new) != bare(old) || (unbound && size(new) != size(old)) {
        errors.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims",
        );
    }
}

const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "nfs",
    "iscsi",
    "rbd",
    "cephfs",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
    "glusterfs",
    "cinder",
    "flocker",
];

pub(super) fn validate_volume(volume: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = ObjectAt::new(object(volume, "spec").unwrap_or(&empty), "spec");
    validate_access_modes(&spec, errors);
    validate_capacity(&spec, errors);
    let mut sources = SOURCES.iter().filter(|source| spec.has(source));
    match sources.next() {
        None => errors.required("spec", "must specify a volume type"),
        Some(kind) => {
            if let Some(source) = spec.child(kind) {
                validate_source(&spec, kind, &source, errors);
            }
        }
    }
    for other in sources {
        errors.forbidden(spec.path(other), "may not specify more than 1 volume type");
    }
    spec.required("persistentVolumeReclaimPolicy", errors);
    spec.choice("persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], errors);
    if let Some(affinity) = spec.child("nodeAffinity") {
        match affinity.child("required") {
            None => errors.required(affinity.path("required"), "must specify required node constraints"),
            Some(selector) => super::scheduling::validate_node_selector(&selector, errors),
        }
    }
    let root = at(spec.object, &["hostPath", "path"]).is_some_and(|path| path == "/");
    if root && spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(spec.path("persistentVolumeReclaimPolicy"), why);
    }
    spec.named("storageClassName", names::subdomain, errors);
    spec.choice("volumeMode", &["Block", "Filesystem"], errors);
}

fn validate_capacity(spec: &ObjectAt<'_>, errors: &mut Errors) {
    let Some(capacity) = object(spec.object, "capacity").filter(|capacity| !capacity.is_empty()) else {
        errors.required("spec.capacity", "");
        return errors.not_supported("spec.capacity", Value::Null, &["storage"]);
    };
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        errors.not_supported("spec.capacity", Value::Object(capacity.clone()), &["storage"]);
    }
    for (name, amount) in capacity {
        if quantity::parse(amount).is_some_and(|amount| amount <= 0) {
            errors.invalid(format!("spec.capacity[{name}]"), amount.clone(), "must be greater than zero");
        }
    }
}

fn validate_source(spec: &ObjectAt<'_>, kind: &str, source: &ObjectAt<'_>, errors: &mut Errors) {
    match kind {
        "hostPath" => super::podvolumes::validate_host_path(source, errors),
        "nfs" => {
            source.required("server", errors);
            source.required("path", errors);
        }
        "csi" => {
            source.required("driver", errors);
            source.required("volumeHandle", errors);
        }
        "local" => {
            let path = source.text("path");
            source.required("path", errors);
            no_backsteps(path, &source.path("path"), errors);
            if !spec.has("nodeAffinity") {
                errors.required(spec.path("nodeAffinity"), "Local volume requires node affinity");
            }
        }
        _ => {}
    }
}

pub(super) fn validate_volume_update(new: &Json, old: &Json, errors: &mut Errors) {
    let source = |volume: &Json| {
        let mut spec = object(volume, "spec").cloned().unwrap_or_default();
        for key in [
            "accessModes",
            "capacity",
            "claimRef",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "mountOptions",
            "volumeMode",
            "nodeAffinity",
            "volumeAttributesClassName",
        ] {
            spec.remove(key);
        }
        spec
    };
    if source(new) != source(old) {
        errors.forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation",
        );
    }
}
