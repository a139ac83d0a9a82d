//! Checks of volumes and claims.

use serde_json::Value;

use crate::registry::{
    json::{Json, at, list, object, text},
    validation::Errors,
};

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn validate_access_modes(spec: &Json, errors: &mut Errors) {
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.required("spec.accessModes", "at least 1 access mode is required");
    }
    for mode in modes {
        if !mode.as_str().is_some_and(|m| ACCESS_MODES.contains(&m)) {
            errors.not_supported("spec.accessModes", mode.clone(), ACCESS_MODES);
        }
    }
    if modes.len() > 1 && modes.iter().any(|m| m == "ReadWriteOncePod") {
        errors.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes");
    }
}

pub(super) fn validate_claim(claim: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(claim, "spec").unwrap_or(&empty);
    validate_access_modes(spec, errors);
    match at(spec, &["resources", "requests", "storage"]) {
        None => errors.required("spec.resources[storage]", ""),
        Some(size) => {
            let text = size.as_str().unwrap_or_default();
            if text == "0" || text.starts_with('-') {
                errors.invalid("spec.resources[storage]", text, "must be greater than zero");
            }
        }
    }
    let mode = text(spec, "volumeMode");
    if !matches!(mode, "Block" | "Filesystem") {
        errors.not_supported("spec.volumeMode", mode, &["Block", "Filesystem"]);
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
        // A claim may be given a volume and a class once.
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

pub(super) fn validate_volume(volume: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(volume, "spec").unwrap_or(&empty);
    validate_access_modes(spec, errors);
    if spec.get("capacity").is_none() {
        errors.required("spec.capacity", "");
        errors.not_supported("spec.capacity", Value::Null, &["storage"]);
    }
    let path = at(spec, &["hostPath", "path"]).and_then(Value::as_str).unwrap_or_default();
    if path.split('/').any(|part| part == "..") {
        errors.invalid("spec.hostPath.path", path, "must not contain '..'");
    }
    let sources = [
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
    if !sources.iter().any(|s| spec.contains_key(*s)) {
        errors.required("spec", "must specify a volume type");
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !matches!(policy, "Delete" | "Recycle" | "Retain") {
        errors.not_supported("spec.persistentVolumeReclaimPolicy", policy, &["Delete", "Recycle", "Retain"]);
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
