//! Migration between client-side and server-side `kubectl apply`.
//!
//! The last-applied annotation tells which fields kubectl already manages; it is kept up to date so that
//! users can switch back.

use serde_json::{Value, json};

use super::{set::FieldSet, typed};
use crate::{TypeRef, go};

/// Field manager whose applies are migrated.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum total size of the annotations of an object.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Returns the fields of the last client-side configuration that the live object still has unchanged.
pub(super) fn unchanged_fields(schema: &TypeRef, api_version: &str, live: &Value) -> Option<FieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    typed::validate(schema, live, false).ok()?;
    typed::validate(schema, &last, false).ok()?;
    let changed = typed::compare(schema, &last, live);
    let set = typed::field_set(schema, &last);
    Some(set.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Updates the annotation with the configuration, if the object has the annotation.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(own) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(ANNOTATION);
        if own.is_empty()
            && let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    annotations.insert(ANNOTATION.to_owned(), json!(go::json(&config) + "\n"));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.remove(ANNOTATION);
    }
}
