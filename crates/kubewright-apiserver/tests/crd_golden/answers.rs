//! Answers: refusals as Status objects, scales and tables.

use kubewright_apiserver::{
    crd::resource::{CustomResource, scale::ScaleError},
    schema::field::{self, FieldError},
};
use serde_json::{Value, json};

/// What a request is answered with.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

pub(super) type Refusal = (u16, Value);

impl From<Refusal> for Answer {
    fn from((status, body): Refusal) -> Self {
        Self { status, body, warnings: Vec::new() }
    }
}

/// The resource that errors name: plural and group.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) plural: String,
    pub(super) group: String,
}

impl Named {
    pub(super) fn details(&self, name: &str) -> Value {
        json!({"name": name, "group": self.group, "kind": self.plural})
    }

    pub(super) fn shown(&self, name: &str) -> String {
        format!("{}.{} {name:?}", self.plural, self.group)
    }

    pub(super) fn not_found(&self, name: &str) -> Refusal {
        refuse(404, "NotFound", &format!("{} not found", self.shown(name)), self.details(name))
    }
}

pub(super) fn refuse(code: u16, reason: &str, message: &str, details: Value) -> Refusal {
    let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                          "message": message, "reason": reason, "code": code});
    if !details.is_null() {
        body["details"] = details;
    }
    (code, body)
}

pub(super) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Refusal {
    let causes: Vec<_> = errors
        .iter()
        .map(|e| json!({"reason": e.kind.reason(), "message": e.message(), "field": e.field}))
        .collect();
    let message = format!("{kind}.{group} \"{name}\" is invalid: {}", field::join(errors));
    refuse(422, "Invalid", &message, json!({"name": name, "group": group, "kind": kind, "causes": causes}))
}

pub(super) fn view(resource: &CustomResource, object: &Value) -> Result<Value, Refusal> {
    resource.scale().unwrap().view(object).map_err(|error| {
        let ScaleError::NoReplicas(_) = &error else { panic!("{error}") };
        let details = json!({"causes": [{"message": error.to_string()}]});
        refuse(500, "InternalError", &format!("Internal error occurred: {error}"), details)
    })
}

pub(super) fn check_version(new: &Value, live: &Value, named: &Named) -> Result<(), Refusal> {
    let name = live["metadata"]["name"].as_str().unwrap();
    match new["metadata"]["resourceVersion"].as_str().unwrap_or_default() {
        "" => {
            let error = FieldError::new(
                field::ErrorKind::Invalid,
                "metadata.resourceVersion",
                0,
                "must be specified for an update",
            );
            Err(invalid(&named.group, &named.plural, name, &[error]))
        }
        version if live["metadata"]["resourceVersion"] != version => {
            let message = format!(
                "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest \
                 version and try again",
                named.shown(name)
            );
            Err(refuse(409, "Conflict", &message, named.details(name)))
        }
        _ => Ok(()),
    }
}

pub(super) fn table(resource: &CustomResource, items: &[Value], include: &str) -> Value {
    let rows: Vec<Value> = items
        .iter()
        .map(|item| {
            let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]});
            let object = match include {
                "None" => Value::Null,
                "Object" => item.clone(),
                _ => partial,
            };
            // Ages were not kept in the recordings.
            let cells = resource.cells(item, |_| "1s".to_owned());
            let cells: Vec<_> = cells.into_iter().map(|cell| if cell == "1s" { Value::Null } else { cell }).collect();
            json!({"cells": cells, "object": object})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"},
           "columnDefinitions": resource.column_definitions(), "rows": rows})
}
