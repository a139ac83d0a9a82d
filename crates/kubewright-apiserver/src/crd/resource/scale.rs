//! Scale subresource: conversion between an object and its Scale.

use serde_json::{Map, Value, json};

use crate::{
    crd::props::{self, Props},
    schema::{
        field::{ErrorKind, FieldError},
        go,
    },
};

/// Paths of the fields of a custom resource that its Scale shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// The desired replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// The observed replicas, such as `.status.replicas`.
    pub status_replicas: String,
    /// The label selector of the pods, if any.
    pub label_selector: Option<String>,
}

/// Error creating the Scale of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The object has no desired replicas.
    #[error("the spec replicas field {0:?} does not exist")]
    NoReplicas(String),
    /// A field on the path has another type.
    #[error("{0}")]
    WrongType(String),
}

fn keys(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

/// Returns the value at a path of fields; an error if one of its parents is not an object.
fn nested<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut at = object;
    let names = keys(path);
    for (i, name) in names.iter().enumerate() {
        let Value::Object(map) = at else {
            let place = format!(".{}", names[..=i].join("."));
            return Err(format!(
                "{place} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                go::plain(at),
                go::type_name(at)
            ));
        };
        match map.get(*name) {
            None => return Ok(None),
            Some(value) => at = value,
        }
    }
    Ok(Some(at))
}

fn number(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match nested(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong_type(value, path, "int64")),
    }
}

fn wrong_type(value: &Value, path: &str, wanted: &str) -> String {
    let found = go::type_name(value);
    format!(
        ".{} accessor error: {} is of the type {found}, expected {wanted}",
        keys(path).join("."),
        go::plain(value)
    )
}

impl ScalePaths {
    pub(super) fn new(scale: &Value) -> Option<Self> {
        let scale = Props(Some(scale.as_object()?));
        Some(Self {
            spec_replicas: scale.text("specReplicasPath").to_owned(),
            status_replicas: scale.text("statusReplicasPath").to_owned(),
            label_selector: Some(scale.text("labelSelectorPath").to_owned()).filter(|path| !path.is_empty()),
        })
    }

    /// Validates replicas and selector of an object.
    pub(super) fn validate(&self, object: &Value, with_spec: bool) -> Vec<FieldError> {
        let mut out = Vec::new();
        let mut check = |path: &str| {
            let error = |value: i64, detail: String| FieldError::new(ErrorKind::Invalid, path, value, detail);
            match number(object, path) {
                Err(reason) => out.push(error(0, reason)),
                Ok(Some(n)) if n < 0 => out.push(error(n, "should be a non-negative integer".to_owned())),
                Ok(Some(n)) if n > i64::from(i32::MAX) => {
                    out.push(error(n, format!("should be less than or equal to {}", i32::MAX)));
                }
                Ok(_) => {}
            }
        };
        if with_spec {
            check(&self.spec_replicas);
        }
        check(&self.status_replicas);
        if let Some(path) = &self.label_selector {
            let reason = match nested(object, path) {
                Err(reason) => Some(reason),
                Ok(Some(value)) if !value.is_string() => Some(wrong_type(value, path, "string")),
                Ok(_) => None,
            };
            out.extend(reason.map(|reason| FieldError::new(ErrorKind::Invalid, path.as_str(), "", reason)));
        }
        out
    }

    /// Returns whether an object has desired replicas.
    pub(crate) fn has_replicas(&self, object: &Map<String, Value>) -> bool {
        let mut names = keys(&self.spec_replicas).into_iter();
        let first = names.next().and_then(|name| object.get(name));
        names.fold(first, |at, name| at?.get(name)).is_some()
    }

    /// Returns the Scale of an object.
    pub fn view(&self, object: &Value) -> Result<Value, ScaleError> {
        let wanted = number(object, &self.spec_replicas).map_err(ScaleError::WrongType)?;
        let wanted = wanted.ok_or_else(|| ScaleError::NoReplicas(self.spec_replicas.clone()))?;
        let observed =
            number(object, &self.status_replicas).map_err(ScaleError::WrongType)?.unwrap_or_default();
        let mut metadata = Map::new();
        for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            metadata.extend(object["metadata"].get(name).map(|value| (name.to_owned(), value.clone())));
        }
        let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
                               "spec": {}, "status": {"replicas": observed}});
        if wanted != 0 {
            scale["spec"]["replicas"] = wanted.into();
        }
        let selector = self.label_selector.as_ref().and_then(|path| nested(object, path).ok().flatten());
        if let Some(selector) = selector.and_then(Value::as_str).filter(|selector| !selector.is_empty()) {
            scale["status"]["selector"] = selector.into();
        }
        Ok(scale)
    }

    /// Returns the object with the replicas and the resourceVersion of a Scale.
    ///
    /// ```
    /// use kubewright_apiserver::crd::resource::scale::ScalePaths;
    /// use serde_json::json;
    ///
    /// let paths = ScalePaths {
    ///     spec_replicas: ".spec.replicas".to_owned(),
    ///     status_replicas: ".status.replicas".to_owned(),
    ///     label_selector: None,
    /// };
    /// let object = paths.write(&json!({"metadata": {}}), &json!({"spec": {"replicas": 3}}));
    /// assert_eq!(object["spec"]["replicas"], 3);
    /// ```
    pub fn write(&self, object: &Value, scale: &Value) -> Value {
        let mut out = object.clone();
        let mut at = &mut out;
        for name in keys(&self.spec_replicas) {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[name];
        }
        *at = scale["spec"]["replicas"].as_i64().unwrap_or_default().into();
        if let Some(version) = scale["metadata"].get("resourceVersion").filter(|version| !version.is_null()) {
            props::set(&mut out, &["metadata", "resourceVersion"], version.clone());
        }
        out
    }
}
