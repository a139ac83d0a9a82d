//! `OpenAPI` v3: one document per group version.

use serde_json::{Map, Value, json};

use super::{
    group_versions, hash, info, of_version,
    paths::{self, Body, Operation},
    schema::{Definitions, Dialect, META, kind},
};
use crate::registry::Types;

/// Builds `/openapi/v3`: the path and hash of each document.
pub fn index(types: &Types) -> Value {
    let paths: Map<String, Value> = group_versions(types)
        .into_iter()
        .filter_map(|(group, version)| {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let hash = hash(of_version(types, group, version)?);
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")});
            Some((path, url))
        })
        .collect();
    json!({"paths": paths})
}

/// Builds the document of a group version; `None` if it has no types.
pub fn document(types: &Types, group: &str, version: &str) -> Option<Value> {
    let served = of_version(types, group, version)?;
    let mut definitions = Definitions::new(Dialect::V3, Some((group, version)));
    let paths = paths::render(served, &mut definitions, parameter, render);
    Some(json!({
        "openapi": "3.0.0", "info": info(), "paths": paths, "components": {"schemas": definitions.finish()},
    }))
}

fn parameter(name: &str, place: &str, kind: &str) -> Value {
    let mut parameter = json!({"name": name, "in": place, "schema": {"type": kind, "uniqueItems": true}});
    if place == "path" {
        parameter["required"] = true.into();
    }
    parameter
}

fn render(operation: &Operation, tag: &str) -> Value {
    let mut out = json!({
        "operationId": operation.id, "tags": [tag], "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": kind(&operation.gvk),
    });
    if !operation.query.is_empty() {
        out["parameters"] =
            operation.query.iter().map(|(name, kind)| parameter(name, "query", kind)).collect();
    }
    let content = |types: &[&str], schema: &Value| -> Value {
        Value::Object(types.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect())
    };
    match &operation.body {
        Body::None => {}
        Body::Object { definition, required } => {
            out["requestBody"] = json!({"content": content(&["*/*"], &Dialect::V3.reference(definition))});
            if *required {
                out["requestBody"]["required"] = true.into();
            }
        }
        Body::Patch => {
            let schema = Dialect::V3.reference(&format!("{META}.Patch"));
            let content = content(&patch_types(operation.builtin), &schema);
            out["requestBody"] = json!({"content": content, "required": true});
        }
    }
    let answer = if operation.answer.is_empty() {
        content(&["*/*"], &json!({"type": "string"}))
    } else {
        content(&answer_types(operation), &Dialect::V3.reference(&operation.answer))
    };
    let answer = json!({"description": "OK", "content": answer});
    let mut responses = json!({"200": answer, "401": {"description": "Unauthorized"}});
    if operation.creates {
        responses["201"] = answer;
        responses["201"]["description"] = "Created".into();
    }
    out["responses"] = responses;
    out
}

/// Returns the media types of patches.
pub(super) fn patch_types(builtin: bool) -> Vec<&'static str> {
    let mut types =
        vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    if builtin {
        types.push("application/strategic-merge-patch+json");
    }
    types
}

/// Returns the media types of responses.
pub(super) fn answer_types(operation: &Operation) -> Vec<&'static str> {
    let mut types = vec!["application/json", "application/yaml"];
    if operation.builtin {
        types.push("application/vnd.kubernetes.protobuf");
    }
    if operation.streams {
        types.push("application/json;stream=watch");
    }
    if operation.streams && operation.builtin {
        types.push("application/vnd.kubernetes.protobuf;stream=watch");
    }
    types
}
