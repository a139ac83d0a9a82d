//! `OpenAPI` v2 ("Swagger"): one document for all types.

use serde_json::{Value, json};

use super::{
    info,
    paths::{self, Body, Operation},
    schema::{Definitions, Dialect, META, kind},
    v3::{answer_types, patch_types},
};
use crate::registry::Types;

/// Builds `/openapi/v2`.
pub fn document(types: &Types) -> Value {
    let mut definitions = Definitions::new(Dialect::V2, None);
    let paths = paths::render(
        types.all().iter().map(std::convert::AsRef::as_ref),
        &mut definitions,
        parameter,
        render,
    );
    json!({"swagger": "2.0", "info": info(), "paths": paths, "definitions": definitions.finish()})
}

fn parameter(name: &str, place: &str, kind: &str) -> Value {
    let mut parameter = json!({"name": name, "in": place, "type": kind, "uniqueItems": true});
    if place == "path" {
        parameter["required"] = true.into();
    }
    parameter
}

fn render(operation: &Operation, tag: &str) -> Value {
    let mut parameters: Vec<Value> =
        operation.query.iter().map(|(name, kind)| parameter(name, "query", kind)).collect();
    let mut consumes = vec!["*/*"];
    match &operation.body {
        Body::None => {}
        Body::Object { definition, required } => {
            let mut body = json!({"name": "body", "in": "body", "schema": Dialect::V2.reference(definition)});
            if *required {
                body["required"] = true.into();
            }
            parameters.push(body);
        }
        Body::Patch => {
            consumes = patch_types(operation.builtin);
            let schema = Dialect::V2.reference(&format!("{META}.Patch"));
            parameters.push(json!({"name": "body", "in": "body", "required": true, "schema": schema}));
        }
    }
    let schema = match operation.answer.as_str() {
        "" => json!({"type": "string"}),
        name => Dialect::V2.reference(name),
    };
    let mut responses =
        json!({"200": {"description": "OK", "schema": schema}, "401": {"description": "Unauthorized"}});
    if operation.creates {
        responses["201"] = json!({"description": "Created", "schema": schema});
    }
    json!({
        "operationId": operation.id, "tags": [tag], "schemes": ["https"], "consumes": consumes,
        "produces": answer_types(operation), "parameters": parameters, "responses": responses,
        "x-kubernetes-action": operation.action, "x-kubernetes-group-version-kind": kind(&operation.gvk),
    })
}
