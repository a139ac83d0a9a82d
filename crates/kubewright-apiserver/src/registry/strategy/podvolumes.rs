//! Validation of the volumes of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::registry::{
    quantity,
    validation::{
        Errors,
        at::{ObjectAt, local_path, no_backsteps},
        field::Field,
        names,
    },
};

/// Volume sources in upstream's order: the first one present is the volume's, further ones are errors.
const SOURCES: [&str; 31] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
    "serviceAccountToken",
];

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Pod fields available to environment variables.
pub(super) const ENV_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Pod fields available to files.
const FILE_PATHS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Validates the volumes; returns the names of the valid ones, which can be mounted.
pub(super) fn validate<'a>(spec: &ObjectAt<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut sound = BTreeSet::new();
    for volume in spec.each("volumes") {
        let before = errors.len();
        validate_source(&volume, errors);
        let name = volume.text("name");
        volume.required("name", errors);
        volume.named("name", names::label, errors);
        if sound.contains(name) {
            errors.duplicate(volume.path("name"), name);
        }
        if errors.len() == before {
            sound.insert(name);
        }
    }
    sound
}

fn validate_source(volume: &ObjectAt<'_>, errors: &mut Errors) {
    let mut sources = SOURCES.iter().filter(|source| volume.has(source));
    let Some(kind) = sources.next() else {
        return errors.required(&volume.field, "must specify a volume type");
    };
    if let Some(source) = volume.child(kind) {
        validate_one(kind, &source, errors);
    }
    for other in sources {
        errors.forbidden(volume.path(other), "may not specify more than 1 volume type");
    }
}

fn validate_one(kind: &str, source: &ObjectAt<'_>, errors: &mut Errors) {
    match kind {
        "emptyDir" => {
            let limit = source.object.get("sizeLimit").and_then(quantity::parse);
            if limit.is_some_and(|limit| limit < 0) {
                let why = "SizeLimit field must be a valid resource quantity";
                errors.forbidden(source.path("sizeLimit"), why);
            }
        }
        "hostPath" => validate_host_path(source, errors),
        "secret" => {
            source.required("secretName", errors);
            validate_files(source, errors);
        }
        "configMap" => {
            source.required("name", errors);
            validate_files(source, errors);
        }
        "nfs" => {
            source.required("server", errors);
            source.required("path", errors);
            let path = source.text("path");
            if !path.is_empty() && !path.starts_with('/') {
                errors.invalid(source.path("path"), path, "must be an absolute path");
            }
        }
        "persistentVolumeClaim" => source.required("claimName", errors),
        "csi" => {
            source.required("driver", errors);
            if let Some(reference) = source.child("nodePublishSecretRef") {
                reference.required("name", errors);
            }
        }
        "downwardAPI" => {
            validate_mode(source, "defaultMode", errors);
            for item in source.each("items") {
                // Upstream reports the source, not the item.
                validate_downward(&ObjectAt { object: item.object, field: source.field.clone() }, errors);
            }
        }
        "projected" => validate_projected(source, errors),
        "ephemeral" => match source.child("volumeClaimTemplate") {
            None => errors.required(source.path("volumeClaimTemplate"), ""),
            Some(template) => {
                if let Some(spec) = template.child("spec") {
                    super::volumes::validate_claim_spec(&spec, errors);
                }
            }
        },
        "image" => source.choice("pullPolicy", &["Always", "IfNotPresent", "Never"], errors),
        "iscsi" => {
            source.required("targetPortal", errors);
            source.required("iqn", errors);
            let lun = source.number("lun").unwrap_or(0);
            if !(0..=255).contains(&lun) {
                errors.invalid(source.path("lun"), lun, "must be between 0 and 255, inclusive");
            }
        }
        _ => {}
    }
}

/// Validates a path on the node.
pub(super) fn validate_host_path(source: &ObjectAt<'_>, errors: &mut Errors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = source.text("path");
    if path.is_empty() {
        return errors.required(source.path("path"), "");
    }
    no_backsteps(path, &source.path("path"), errors);
    source.choice("type", &TYPES, errors);
}

fn validate_mode(source: &ObjectAt<'_>, key: &str, errors: &mut Errors) {
    if let Some(mode) = source.number(key).filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(source.path(key), mode, MODE);
    }
}

/// Validates the keys of a secret or config map that become files.
fn validate_files(source: &ObjectAt<'_>, errors: &mut Errors) {
    validate_mode(source, "defaultMode", errors);
    for item in source.each("items") {
        validate_item(&item, errors);
    }
}

fn validate_item(item: &ObjectAt<'_>, errors: &mut Errors) {
    item.required("key", errors);
    item.required("path", errors);
    validate_file_path(item.text("path"), &item.path("path"), errors);
    validate_mode(item, "mode", errors);
}

/// Validates a path within the volume that does not collide with the volume's own files.
fn validate_file_path(path: &str, field: &Field<'_>, errors: &mut Errors) {
    local_path(path, field, errors);
    let back = path.split('/').any(|part| part == "..");
    if path.starts_with("..") && !back {
        errors.invalid(field, path, "must not start with '..'");
    }
}

fn validate_downward(item: &ObjectAt<'_>, errors: &mut Errors) {
    item.required("path", errors);
    validate_file_path(item.text("path"), &item.path("path"), errors);
    match (item.child("fieldRef"), item.child("resourceFieldRef")) {
        (Some(field), other) => {
            validate_field_ref(&field, FILE_PATHS, errors);
            if other.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(&item.field, "resource", why);
            }
        }
        (None, Some(resource)) => validate_resource_ref(&resource, true, errors),
        (None, None) => {
            errors.required(&item.field, "one of fieldRef and resourceFieldRef is required");
        }
    }
    validate_mode(item, "mode", errors);
}

/// Validates a reference to a field of the pod.
pub(super) fn validate_field_ref(field: &ObjectAt<'_>, allowed: &[&str], errors: &mut Errors) {
    let is_known =
        |path: &str| ENV_PATHS.contains(&path) || matches!(path, "metadata.annotations" | "metadata.labels");
    field.required("apiVersion", errors);
    let path = field.text("fieldPath");
    if path.is_empty() {
        return errors.required(field.path("fieldPath"), "");
    }
    let unknown = |errors: &mut Errors| {
        let why = format!("error converting fieldPath: field label not supported: {path}");
        errors.invalid(field.path("fieldPath"), path, &why);
    };
    let subscript = path.strip_suffix("']").and_then(|head| head.split_once("['"));
    match subscript {
        Some((head, key)) if matches!(head, "metadata.annotations" | "metadata.labels") => {
            let lower = key.to_lowercase();
            let key = if head == "metadata.annotations" { lower.as_str() } else { key };
            for why in names::qualified(key) {
                errors.invalid(&field.field, key, &why);
            }
        }
        Some((head, _)) if is_known(head) => {
            errors.invalid(&field.field, head, "does not support subscript");
        }
        Some(_) => unknown(errors),
        None if !is_known(path) && path != "spec.host" => unknown(errors),
        None if !allowed.contains(&path) => {
            errors.not_supported(field.path("fieldPath"), path, allowed);
        }
        None => {}
    }
}

/// Validates a reference to the resources of a container.
pub(super) fn validate_resource_ref(resource: &ObjectAt<'_>, in_volume: bool, errors: &mut Errors) {
    const KNOWN: &[&str] = &[
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let name = resource.text("resource");
    if in_volume && resource.text("containerName").is_empty() {
        errors.required(resource.path("containerName"), "");
    } else if name.is_empty() {
        errors.required(resource.path("resource"), "");
    } else if !KNOWN.contains(&name)
        && !["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| name.starts_with(prefix))
    {
        errors.not_supported(resource.path("resource"), name, KNOWN);
    }
}

fn validate_projected(projected: &ObjectAt<'_>, errors: &mut Errors) {
    validate_mode(projected, "defaultMode", errors);
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for source in projected.each("sources") {
        let mut kinds = 0;
        for key in ["secret", "configMap"] {
            let Some(part) = source.child(key) else { continue };
            kinds += 1;
            part.required("name", errors);
            for item in part.each("items") {
                validate_item(&item, errors);
                if !item.text("path").is_empty() && !paths.insert(item.text("path")) {
                    let why = "conflicting duplicate paths";
                    errors.invalid(&projected.field, part.text("name"), why);
                }
            }
        }
        if let Some(part) = source.child("downwardAPI") {
            kinds += 1;
            for item in part.each("items") {
                validate_downward(&ObjectAt { object: item.object, field: part.field.clone() }, errors);
                if !item.text("path").is_empty() && !paths.insert(item.text("path")) {
                    let why = "conflicting duplicate paths";
                    errors.invalid(&projected.field, item.text("path"), why);
                }
            }
        }
        if let Some(token) = source.child("serviceAccountToken") {
            kinds += 1;
            validate_token(projected, &token, errors);
        }
        kinds += ["clusterTrustBundle", "podCertificate"].iter().filter(|key| source.has(key)).count();
        if kinds > 1 {
            errors.forbidden(&source.field, "may not specify more than 1 volume type");
        }
    }
}

fn validate_token(projected: &ObjectAt<'_>, token: &ObjectAt<'_>, errors: &mut Errors) {
    match token.number("expirationSeconds") {
        None => errors.required(token.path("expirationSeconds"), ""),
        Some(seconds) if seconds < 600 => {
            let why = "may not specify a duration less than 10 minutes";
            errors.invalid(token.path("expirationSeconds"), seconds, why);
        }
        Some(seconds) if seconds > 1 << 32 => {
            let why = "may not specify a duration larger than 2^32 seconds";
            errors.invalid(token.path("expirationSeconds"), seconds, why);
        }
        Some(_) => {}
    }
    let path = token.text("path");
    if path.is_empty() {
        errors.required(projected.path("path"), "");
    } else {
        validate_file_path(path, &projected.path("path"), errors);
    }
}

/// Validates that a pod with a projected token has a service account.
pub(super) fn validate_tokens_have_an_account(spec: &ObjectAt<'_>, errors: &mut Errors) {
    if !spec.text("serviceAccountName").is_empty() {
        return;
    }
    let projected = spec.each("volumes").filter_map(|volume| volume.child("projected"));
    for source in projected.flat_map(|projected| projected.each("sources").collect::<Vec<_>>()) {
        if source.object.get("serviceAccountToken").is_some_and(Value::is_object) {
            errors.forbidden(
                source.path("serviceAccountToken"),
                "must not be specified when serviceAccountName is not set",
            );
        }
    }
}
