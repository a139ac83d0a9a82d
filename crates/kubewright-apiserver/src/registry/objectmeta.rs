//! Validation of object metadata, common to all types.

use serde_json::Value;

use super::{
    descriptor::{Descriptor, Generation, Json},
    json::{meta, meta_mut, object, text},
    validation::{Errors, names},
};

/// Maximum length of a generated name.
const MAX_GENERATED_NAME: usize = 63;
const SUFFIX_LENGTH: usize = 5;

/// Returns the name for a `generateName`: the base is truncated so that the suffix fits.
pub fn generated_name(base: &str, suffix: &str) -> String {
    let most = MAX_GENERATED_NAME - SUFFIX_LENGTH;
    let mut cut = base.len().min(most);
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{}{suffix}", &base[..cut])
}

/// Validates the metadata of a new object.
pub fn validate(object_: &Json, ty: &Descriptor, errors: &mut Errors) {
    let metadata = meta(object_);
    let generate = text(metadata, "generateName");
    if !generate.is_empty() {
        for why in ty.strategy.names.check_prefix(generate) {
            errors.invalid("metadata.generateName", generate, &why);
        }
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else {
        for why in ty.strategy.names.check(name) {
            errors.invalid("metadata.name", name, &why);
        }
    }
    if ty.namespaced() {
        let namespace = text(metadata, "namespace");
        if namespace.is_empty() {
            errors.required("metadata.namespace", "");
        } else {
            for why in names::label(namespace) {
                errors.invalid("metadata.namespace", namespace, &why);
            }
        }
    }
    validate_common(metadata, ty, errors);
}

fn validate_common(metadata: &Json, ty: &Descriptor, errors: &mut Errors) {
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|g| *g < 0) {
        errors.invalid("metadata.generation", generation, "must be greater than or equal to 0");
    }
    validate_labels(object(metadata, "labels"), "metadata.labels", errors);
    validate_annotations(object(metadata, "annotations"), "metadata.annotations", errors);
    validate_owners(metadata, errors);
    let finalizers = super::json::list(metadata, "finalizers");
    for (n, finalizer) in finalizers.iter().filter_map(Value::as_str).enumerate() {
        validate_finalizer(finalizer, n, ty, errors);
    }
    if ["orphan", "foregroundDeletion"].iter().all(|policy| finalizers.iter().any(|f| f == policy)) {
        errors.invalid(
            "metadata.finalizers",
            Value::from(finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        );
    }
}

/// Validates labels.
pub fn validate_labels(labels: Option<&Json>, field: &str, errors: &mut Errors) {
    for (key, value) in labels.into_iter().flatten() {
        for why in names::qualified(key) {
            errors.invalid(field, key.as_str(), &why);
        }
        let value = value.as_str().unwrap_or_default();
        for why in names::label_value(value) {
            errors.invalid(field, value, &why);
        }
    }
}

/// Validates annotations.
pub fn validate_annotations(annotations: Option<&Json>, field: &str, errors: &mut Errors) {
    const MAX: usize = 256 * 1024;
    let mut total = 0;
    for (key, value) in annotations.into_iter().flatten() {
        for why in names::qualified(&key.to_lowercase()) {
            errors.invalid(field, key.as_str(), &why);
        }
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > MAX {
        errors.too_long(field, MAX);
    }
}

fn validate_finalizer(finalizer: &str, n: usize, ty: &Descriptor, errors: &mut Errors) {
    // Upstream reports the list here, and the entry below.
    for why in names::qualified(finalizer) {
        errors.invalid("metadata.finalizers", finalizer, &why);
    }
    // Custom resources and API extension types only get a warning.
    let lenient =
        ty.custom.is_some() || matches!(ty.group.as_ref(), "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if !lenient
        && !finalizer.contains('/')
        && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
    {
        errors.invalid(
            format!("metadata.finalizers[{n}]"),
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

fn validate_owners(metadata: &Json, errors: &mut Errors) {
    let mut controller: Option<(&str, &str)> = None;
    for (n, owner) in super::json::objects(metadata, "ownerReferences").enumerate() {
        let field = format!("metadata.ownerReferences[{n}]");
        let version = text(owner, "apiVersion");
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                errors.required(format!("{field}.{key}"), "must not be empty");
            }
        }
        if version == "v1" && text(owner, "kind") == "Event" {
            errors.invalid(
                &field,
                Value::Object(owner.clone()),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = (text(owner, "kind"), text(owner, "name"));
            if let Some((kind, name)) = controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {kind}/{name} and {}/{}",
                    this.0, this.1
                );
                errors.invalid("metadata.ownerReferences", owner_list(metadata), &why);
            } else {
                controller = Some(this);
            }
        }
    }
}

/// Removes duplicate owner references; returns the warning about them.
pub fn dedupe_owners(object: &mut Json) -> Option<String> {
    let owners = meta_mut(object).get_mut("ownerReferences")?.as_array_mut()?;
    let (mut kept, mut doubled) = (Vec::with_capacity(owners.len()), Vec::new());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            doubled.push(uid.to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    doubled.dedup();
    (!doubled.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            doubled.join(", ")
        )
    })
}

fn owner_list(metadata: &Json) -> Value {
    metadata.get("ownerReferences").cloned().unwrap_or_default()
}

/// Restores metadata that an update may omit, and validates that immutable metadata is unchanged.
pub fn validate_update(new: &mut Json, old: &Json, ty: &Descriptor, errors: &mut Errors) {
    let old_meta = meta(old);
    let new_meta = meta_mut(new);
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        // The creation time of a request is ignored, not rejected.
        if key == "creationTimestamp" || new_meta.get(key).is_none_or(|v| v.is_null() || v == "") {
            match old_meta.get(key) {
                Some(value) => new_meta.insert(key.into(), value.clone()),
                None => new_meta.remove(key),
            };
        }
    }
    if old_meta.contains_key("deletionTimestamp") {
        let kept = super::json::list(old_meta, "finalizers");
        let added: Vec<String> = super::json::list(new_meta, "finalizers")
            .iter()
            .filter(|f| !kept.contains(f))
            .map(ToString::to_string)
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.forbidden("metadata.finalizers", &why);
        }
    }
    for key in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new_value, old_value) = (new_meta.get(key), old_meta.get(key));
        if new_value != old_value && new_value.is_some() {
            let value = new_value.cloned().unwrap_or_default();
            errors.invalid(format!("metadata.{key}"), value, "field is immutable");
        }
    }
    validate_common(new_meta, ty, errors);
}

/// Returns whether a change increments the generation.
pub fn content_changed(new: &Json, old: &Json, rule: Generation) -> bool {
    let differs = |key: &str| new.get(key) != old.get(key);
    let content = new
        .keys()
        .chain(old.keys())
        .any(|key| !matches!(key.as_str(), "metadata" | "status" | "kind" | "apiVersion") && differs(key));
    let meta_differs = |key: &str| meta(new).get(key) != meta(old).get(key);
    match rule {
        Generation::None => false,
        Generation::Content => content,
        Generation::ContentAndStatus => content || differs("status"),
        Generation::ContentAndAnnotations => content || meta_differs("annotations"),
        Generation::ContentAndMetadata => content || meta_differs("annotations") || meta_differs("labels"),
    }
}

/// Returns the generation of an object.
pub fn generation(object: &Json) -> i64 {
    meta(object).get("generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Sets the generation; 0 removes it.
pub fn set_generation(object: &mut Json, generation: i64) {
    let metadata = meta_mut(object);
    if generation == 0 {
        metadata.remove("generation");
    } else {
        metadata.insert("generation".into(), generation.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_base_is_truncated_so_that_the_suffix_fits() {
        assert_eq!(generated_name("pre-", "abcde"), "pre-abcde");
        assert_eq!(generated_name(&"x".repeat(70), "abcde").len(), 63);
    }
}
