//! Metadata validation specific to custom resources; the common rules are checked by the registry.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::schema::{
    field::{ErrorKind, FieldError},
    go,
};

/// Validates that metadata is an object.
pub(super) fn shape(object: &Value) -> Option<FieldError> {
    let metadata = object.get("metadata").filter(|metadata| !metadata.is_object() && !metadata.is_null())?;
    let detail = format!("expected map[string]interface{{}}, got {}", go::type_name(metadata));
    Some(FieldError::new(ErrorKind::Invalid, "metadata", metadata.clone(), detail))
}

/// Returns warnings about new finalizers without a domain.
pub(super) fn finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |object: &Value| -> BTreeSet<String> {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(of).unwrap_or_default();
    let mut out = Vec::new();
    for finalizer in of(object).difference(&before) {
        let standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&&**finalizer);
        if finalizer.contains('/') || standard {
            continue;
        }
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        out.push(format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with \
             other finalizer writers",
            go::quote(finalizer)
        ));
    }
    out
}
