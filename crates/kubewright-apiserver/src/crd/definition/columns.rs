//! Validation of printer columns, subresources and selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{error, fields::valid_path, invalid, required};
use crate::{
    crd::props::Props,
    schema::field::{ErrorKind, FieldError},
};

const TYPES: &str = "boolean,date,integer,number,string";
const FORMATS: &str = "binary,byte,date,date-time,double,float,int32,int64,password";
const MAX_SELECTABLE: usize = 8;

pub(super) fn printer_columns(columns: &[Value], path: &str) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        let (path, column) = (format!("{path}[{i}]"), Props::new(column));
        if column.text("name").is_empty() {
            out.push(required(format!("{path}.name"), ""));
        }
        match column.kind() {
            "" => out.push(required(format!("{path}.type"), format!("must be one of {TYPES}"))),
            kind if !TYPES.split(',').any(|known| known == kind) => {
                out.push(invalid(format!("{path}.type"), kind, format!("must be one of {TYPES}")));
            }
            _ => {}
        }
        let format = column.text("format");
        if !format.is_empty() && !FORMATS.split(',').any(|known| known == format) {
            out.push(invalid(format!("{path}.format"), format, format!("must be one of {FORMATS}")));
        }
        match column.text("jsonPath") {
            "" => out.push(required(format!("{path}.JSONPath"), "")),
            json_path => out.extend(simple_path(json_path, &format!("{path}.JSONPath"))),
        }
    }
    out
}

fn simple_path(text: &str, path: &str) -> Option<FieldError> {
    (!text.starts_with('.')).then(|| invalid(path, text, "must be a simple json path starting with ."))
}

pub(super) fn subresources(subresources: &Value, path: &str) -> Vec<FieldError> {
    let scale = &subresources["scale"];
    if !scale.is_object() {
        return Vec::new();
    }
    let scale = Props::new(scale);
    let mut out = Vec::new();
    for (name, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (field, text) = (format!("{path}.scale.{name}"), scale.text(name));
        if text.is_empty() {
            out.push(required(field, ""));
        } else if let Some(error) = simple_path(text, &field) {
            out.push(error);
        } else if !text.starts_with(&format!("{root}.")) {
            out.push(invalid(field, text, format!("should be a json path under {root}")));
        }
    }
    let (field, text) = (format!("{path}.scale.labelSelectorPath"), scale.text("labelSelectorPath"));
    if !text.is_empty() {
        if let Some(error) = simple_path(text, &field) {
            out.push(error);
        } else if ![".spec.", ".status."].iter().any(|root| text.starts_with(root)) {
            out.push(invalid(field, text, "should be a json path under either .spec or .status"));
        }
    }
    out
}

pub(super) fn selectable_fields(
    fields: &[Value],
    schema: &Value,
    path: &str,
    allow_too_many: bool,
) -> Vec<FieldError> {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    for (i, field) in fields.iter().enumerate() {
        let path = format!("{path}[{i}].jsonPath");
        let text = Props::new(field).text("jsonPath");
        if text.is_empty() {
            out.push(required(path, ""));
            continue;
        }
        let found = match valid_path(text, schema, false) {
            Ok(found) => found,
            Err(reason) => {
                out.push(invalid(path, text, format!("is an invalid path: {reason}")));
                continue;
            }
        };
        if found.root == "metadata" {
            out.push(invalid(path.as_str(), text, "must not point to fields in metadata"));
        }
        if !matches!(
            found.schema.map_or("", |schema| Props::new(schema).kind()),
            "string" | "boolean" | "integer"
        ) {
            out.push(invalid(
                path.as_str(),
                text,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
                 are allowed.",
            ));
        }
        if !seen.insert(found.text) {
            out.push(error(ErrorKind::Duplicate, path, text, ""));
        }
    }
    if seen.len() > MAX_SELECTABLE && !allow_too_many {
        out.push(error(
            ErrorKind::TooMany,
            path,
            seen.len(),
            format!("must have at most {MAX_SELECTABLE} items"),
        ));
    }
    out
}
