//! Tables, as printed by `kubectl get`.
//!
//! Every type has columns and a function from an object to its cells. Types without a printer get name and
//! age, as with upstream's fallback printer.

mod age;
mod columns;
mod printers;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::{age::age, columns::Column};
use crate::{
    crd::resource::CustomResource,
    registry::{
        descriptor::{Descriptor, Json},
        json::{meta, name},
    },
    status::Status,
};

/// Object embedded in each row (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Options {
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl Options {
    /// Parses `includeObject`.
    pub fn parse(text: Option<&str>) -> Result<Self, Status> {
        match text {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("Object") => Ok(Self::Object),
            Some("None") => Ok(Self::None),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
                 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// Converts an object to `PartialObjectMetadata`.
pub fn partial(object: &Json, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": meta(object),
    })
}

/// Creates a table of objects.
pub fn of(
    ty: &Descriptor,
    objects: &[Json],
    metadata: &Map<String, Value>,
    version: &str,
    options: Options,
    now: Timestamp,
) -> Value {
    if let Some(custom) = &ty.custom {
        return of_custom(custom.resource(), objects, metadata, version, options, now);
    }
    let printer = printers::for_kind(&ty.group, &ty.kind);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": (printer.cells)(object, now)});
            if let Some(conditions) = (printer.conditions)(object) {
                row["conditions"] = conditions;
            }
            row["object"] = in_row(object, version, options);
            if options == Options::Metadata {
                hide_internal(ty, &mut row["object"]);
            }
            row
        })
        .collect();
    table(&column_values(printer.columns), &rows, metadata, version)
}

/// Returns the object embedded in a row.
fn in_row(object: &Json, version: &str, options: Options) -> Value {
    match options {
        Options::Metadata => partial(object, version),
        Options::Object => Value::Object(object.clone()),
        Options::None => Value::Null,
    }
}

/// Creates a table of custom resources, with the printer columns of their CRD.
fn of_custom(
    resource: &CustomResource,
    objects: &[Json],
    metadata: &Map<String, Value>,
    version: &str,
    options: Options,
    now: Timestamp,
) -> Value {
    let row = |object: &Json| {
        let cells = resource.cells(&Value::Object(object.clone()), |time| match time {
            "" | "null" => "<unknown>".to_owned(),
            time if time.parse::<Timestamp>().is_err() => "<invalid>".to_owned(),
            time => age::since(time, now),
        });
        json!({"cells": cells, "object": in_row(object, version, options)})
    };
    let rows: Vec<Value> = objects.iter().map(row).collect();
    table(&resource.column_definitions(), &rows, metadata, version)
}

fn column_values(columns: &[Column]) -> Vec<Value> {
    columns.iter().map(Column::to_value).collect()
}

/// Removes the annotation of a daemon set's template generation, which upstream's internal form does not
/// have.
fn hide_internal(ty: &Descriptor, partial: &mut Value) {
    if ty.kind != "DaemonSet" {
        return;
    }
    if let Some(metadata) = partial.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let empty = annotations.is_some_and(|a| {
            a.remove("deprecated.daemonset.template.generation");
            a.is_empty()
        });
        if empty {
            metadata.remove("annotations");
        }
    }
}

/// Creates a table of one Scale.
pub fn of_scale(scale: &Value, version: &str, now: Timestamp) -> Value {
    let Some(object) = scale.as_object() else { return scale.clone() };
    let desired = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
    let available = scale.pointer("/status/replicas").cloned().unwrap_or_else(|| 0.into());
    let row = json!({
        "cells": [name(object), desired, available, age(object, now)], "object": partial(object, version),
    });
    let mut metadata = Map::new();
    if let Some(revision) = meta(object).get("resourceVersion") {
        metadata.insert("resourceVersion".into(), revision.clone());
    }
    table(&column_values(columns::SCALE), &[row], &metadata, version)
}

fn table(columns: &[Value], rows: &[Value], metadata: &Map<String, Value>, version: &str) -> Value {
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}
