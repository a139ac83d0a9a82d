//! `CustomResourceDefinition` objects: defaulting, validation, warnings and status.
//!
//! A write goes through [`apply_defaults`], then one of the `prepare_*` functions (fields that the writer may
//! not set are reset, status and generation are updated), then the matching `validate_*` function. The
//! conditions are set after the write, by [`status`].
//!
//! ```
//! use kubewright_apiserver::crd::definition;
//! use serde_json::json;
//!
//! let mut crd = json!({"metadata": {"name": "demos.example.com"}, "spec": {
//!     "group": "example.com", "scope": "Namespaced", "names": {"plural": "demos", "kind": "Demo"},
//!     "versions": [{"name": "v1", "served": true, "storage": true,
//!                   "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
//! definition::apply_defaults(&mut crd);
//! definition::prepare_create(&mut crd);
//! assert_eq!(crd["spec"]["names"]["listKind"], "DemoList");
//! assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
//! assert!(definition::validate_create(&crd).is_empty());
//! ```

mod approval;
mod columns;
mod conversion;
mod defaults;

mod head;
mod openapi;
mod rules;
mod spec;
pub mod status;
mod structural;
mod view;
mod warnings;

use kubewright_schema::field_path as fields;
use serde_json::{Map, Value, json};

use crate::{
    crd::props::{entry, set},
    schema::field::{ErrorKind, FieldError},
};

pub use spec::{validate_create, validate_status_update, validate_update};
pub use warnings::warnings;

/// Finalizer that keeps a CRD until its objects are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn set_default(object: &mut Value, key: &str, value: impl FnOnce() -> Value) {
    let Value::Object(map) = object else { return };
    if map.get(key).is_none_or(|old| old.is_null() || *old == "") {
        map.insert(key.to_owned(), value());
    }
}

/// Sets the defaults: singular, listKind, the conversion strategy, the port of a conversion webhook, and the
/// stored versions of an empty status.
pub fn apply_defaults(crd: &mut Value) {
    let Some(spec) = entry(crd, &["spec"]) else { return };
    if let Some(names @ Value::Object(_)) = spec.get_mut("names") {
        let kind = names["kind"].as_str().unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set_default(names, "singular", || kind.to_lowercase().into());
            set_default(names, "listKind", || format!("{kind}List").into());
        }
    }
    if spec.is_object() {
        set_default(spec, "conversion", || json!({"strategy": "None"}));
        if let Some(service @ Value::Object(_)) = spec.pointer_mut("/conversion/webhook/clientConfig/service")
        {
            set_default(service, "port", || 443.into());
        }
    }
    let has_stored = crd["status"]["storedVersions"].as_array().is_some_and(|stored| !stored.is_empty());
    if crd["status"].is_object() && !has_stored {
        let storage = storage_version(&crd["spec"]).map(Value::from);
        if let Some(storage) = storage {
            set(crd, &["status", "storedVersions"], vec![storage]);
        }
    }
    if crd["status"].is_null()
        && let Value::Object(map) = crd
    {
        map.remove("status");
    }
}

/// Returns the first version marked as storage.
pub fn storage_version(spec: &Value) -> Option<&str> {
    let versions = spec["versions"].as_array()?;
    versions.iter().find(|version| version["storage"] == true)?["name"].as_str()
}

fn add_stored_version(crd: &mut Value) {
    let Some(storage) = storage_version(&crd["spec"]).map(str::to_owned) else { return };
    let Some(stored) = entry(crd, &["status", "storedVersions"]) else { return };
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.iter().any(|version| *version == *storage)
    {
        stored.push(storage.into());
    }
}

/// Prepares a create: resets the status and sets generation 1.
pub fn prepare_create(crd: &mut Value) {
    let status =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
    set(crd, &["status"], status);
    set(crd, &["metadata", "generation"], 1);
    add_stored_version(crd);
}

/// Prepares an update: keeps the status except for a new storage version, and increments the generation if
/// the spec changed.
pub fn prepare_update(new: &mut Value, old: &Value) {
    set(new, &["status"], old["status"].clone());
    set(new, &["metadata", "generation"], old["metadata"]["generation"].clone());
    if new["spec"] != old["spec"] {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        set(new, &["metadata", "generation"], generation);
    }
    add_stored_version(new);
}

/// Prepares a status update: keeps spec and generation.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    set(new, &["spec"], old["spec"].clone());
    set(new, &["metadata", "generation"], old["metadata"]["generation"].clone());
}

fn error(
    kind: ErrorKind,
    field: impl Into<String>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::new(kind, field, value, detail)
}

fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
    error(ErrorKind::Required, field, Value::Null, detail)
}

fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
    error(ErrorKind::Forbidden, field, Value::Null, detail)
}

fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    error(ErrorKind::Invalid, field, value, detail)
}

fn not_supported(field: impl Into<String>, value: &str, allowed: &[&str]) -> FieldError {
    let allowed: Vec<_> = allowed.iter().map(|value| crate::schema::go::quote(value)).collect();
    error(ErrorKind::NotSupported, field, value, format!("supported values: {}", allowed.join(", ")))
}

fn map_of(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object()
}
