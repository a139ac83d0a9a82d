//! Reading and writing the insides of unstructured objects.
//!
//! The helpers of client-go's `unstructured` package: a path of field names, an answer that tells "not there"
//! from "there and of another type". Lists are not walked into; take the list and go on from there.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::{Map, Value};

/// Why a field cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field is there and is of another type.
    #[error("field {path} is {found}, not {wanted}")]
    Type {
        /// The field, with dots.
        path: String,
        /// What it is.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The field belongs to the typed part of the object.
    #[error("field {path} is typed: use the object's `metadata` or `types` instead")]
    Typed {
        /// The field, with dots.
        path: String,
    },
    /// No field was named.
    #[error("the path to the field is empty")]
    NoPath,
}

/// Access to nested fields by path, for [`DynamicObject`] and [`Value`].
///
/// ```
/// use kubewright::client::NestedFields;
/// use kubewright::kube::core::{ApiResource, DynamicObject, GroupVersionKind};
///
/// let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
/// let mut deployment = DynamicObject::new("web", &kind);
/// deployment.set_nested_field(&["spec", "replicas"], 3)?;
/// deployment.set_nested_field(&["spec", "template", "spec", "hostname"], "web")?;
///
/// assert_eq!(deployment.nested_i64(&["spec", "replicas"])?, Some(3));
/// assert_eq!(deployment.nested_str(&["spec", "paused"])?, None);
/// let error = deployment.nested_str(&["spec", "replicas"]).unwrap_err();
/// assert_eq!(error.to_string(), "field spec.replicas is a number, not a string");
/// # Ok::<(), kubewright::client::FieldError>(())
/// ```
pub trait NestedFields {
    /// The value at a path, whatever its type; `None` if it, or something on the way to it, is missing or
    /// null.
    fn nested_field(&self, path: &[&str]) -> Result<Option<&Value>, FieldError>;

    /// Writes a value, and makes the objects on the way to it.
    fn set_nested_field(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), FieldError>;

    /// Removes a value and returns it; empty parents stay.
    fn remove_nested_field(&mut self, path: &[&str]) -> Result<Option<Value>, FieldError>;

    /// A string.
    fn nested_str(&self, path: &[&str]) -> Result<Option<&str>, FieldError> {
        self.nested_field(path)?
            .map(|value| value.as_str().ok_or_else(|| mismatch(path, value, "a string")))
            .transpose()
    }

    /// An integer.
    fn nested_i64(&self, path: &[&str]) -> Result<Option<i64>, FieldError> {
        let integer = |value: &Value| value.as_i64().ok_or_else(|| mismatch(path, value, "an integer"));
        self.nested_field(path)?.map(integer).transpose()
    }

    /// A number.
    fn nested_f64(&self, path: &[&str]) -> Result<Option<f64>, FieldError> {
        self.nested_field(path)?
            .map(|value| value.as_f64().ok_or_else(|| mismatch(path, value, "a number")))
            .transpose()
    }

    /// A boolean.
    fn nested_bool(&self, path: &[&str]) -> Result<Option<bool>, FieldError> {
        self.nested_field(path)?
            .map(|value| value.as_bool().ok_or_else(|| mismatch(path, value, "a boolean")))
            .transpose()
    }

    /// A list.
    fn nested_slice(&self, path: &[&str]) -> Result<Option<&[Value]>, FieldError> {
        match self.nested_field(path)? {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(mismatch(path, other, "a list")),
        }
    }

    /// An object.
    fn nested_map(&self, path: &[&str]) -> Result<Option<&Map<String, Value>>, FieldError> {
        self.nested_field(path)?
            .map(|value| value.as_object().ok_or_else(|| mismatch(path, value, "an object")))
            .transpose()
    }

    /// A list of strings.
    fn nested_string_slice(&self, path: &[&str]) -> Result<Option<Vec<&str>>, FieldError> {
        let Some(items) = self.nested_slice(path)? else { return Ok(None) };
        let mut strings = Vec::with_capacity(items.len());
        for value in items {
            strings.push(value.as_str().ok_or_else(|| mismatch(path, value, "a list of strings"))?);
        }
        Ok(Some(strings))
    }

    /// An object whose values are strings, such as labels.
    fn nested_string_map(&self, path: &[&str]) -> Result<Option<BTreeMap<&str, &str>>, FieldError> {
        let Some(map) = self.nested_map(path)? else { return Ok(None) };
        let mut strings = BTreeMap::new();
        for (name, value) in map {
            let text = value.as_str().ok_or_else(|| mismatch(path, value, "an object of strings"))?;
            strings.insert(name.as_str(), text);
        }
        Ok(Some(strings))
    }
}

impl NestedFields for Value {
    fn nested_field(&self, path: &[&str]) -> Result<Option<&Value>, FieldError> {
        let mut value = self;
        for (depth, name) in path.iter().enumerate() {
            value = match value {
                Value::Object(object) => match object.get(*name) {
                    Some(next) => next,
                    None => return Ok(None),
                },
                Value::Null => return Ok(None),
                other => return Err(mismatch(&path[..depth], other, "an object")),
            };
        }
        Ok((!value.is_null()).then_some(value))
    }

    fn set_nested_field(&mut self, path: &[&str], new: impl Into<Value>) -> Result<(), FieldError> {
        let (last, parents) = path.split_last().ok_or(FieldError::NoPath)?;
        let mut value = self;
        for (depth, name) in parents.iter().enumerate() {
            value = object(value, &path[..depth])?.entry(*name).or_insert(Value::Null);
        }
        object(value, parents)?.insert((*last).to_owned(), new.into());
        Ok(())
    }

    fn remove_nested_field(&mut self, path: &[&str]) -> Result<Option<Value>, FieldError> {
        let (last, parents) = path.split_last().ok_or(FieldError::NoPath)?;
        let mut value = self;
        for (depth, name) in parents.iter().enumerate() {
            value = match value {
                Value::Object(object) => match object.get_mut(*name) {
                    Some(next) => next,
                    None => return Ok(None),
                },
                Value::Null => return Ok(None),
                other => return Err(mismatch(&path[..depth], other, "an object")),
            };
        }
        match value {
            Value::Object(object) => Ok(object.remove(*last)),
            Value::Null => Ok(None),
            other => Err(mismatch(parents, other, "an object")),
        }
    }
}

impl NestedFields for DynamicObject {
    fn nested_field(&self, path: &[&str]) -> Result<Option<&Value>, FieldError> {
        untyped(path)?;
        self.data.nested_field(path)
    }

    fn set_nested_field(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), FieldError> {
        untyped(path)?;
        self.data.set_nested_field(path, value)
    }

    fn remove_nested_field(&mut self, path: &[&str]) -> Result<Option<Value>, FieldError> {
        untyped(path)?;
        self.data.remove_nested_field(path)
    }
}

/// The object to write into; null counts as one that is not there yet.
fn object<'a>(value: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, FieldError> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(object) => Ok(object),
        other => Err(mismatch(path, other, "an object")),
    }
}

/// `metadata`, `kind` and `apiVersion` are fields of [`DynamicObject`] itself; a second copy in its data
/// would be sent twice.
fn untyped(path: &[&str]) -> Result<(), FieldError> {
    match path.first() {
        Some(&("metadata" | "kind" | "apiVersion")) => Err(FieldError::Typed { path: path.join(".") }),
        _ => Ok(()),
    }
}

fn mismatch(path: &[&str], value: &Value, wanted: &'static str) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let path = if path.is_empty() { "(the whole object)".to_owned() } else { path.join(".") };
    FieldError::Type { path, found, wanted }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" },
            "spec": { "size": 3, "ratio": 0.5, "on": true, "colour": "blue", "tags": ["a", "b"], "none": null,
                      "labels": { "x": "1" }, "mixed": [1, "a"] },
        }))
        .unwrap()
    }

    #[test]
    fn fields_are_read_by_type() {
        let object = object();
        assert_eq!(object.nested_i64(&["spec", "size"]), Ok(Some(3)));
        assert_eq!(object.nested_f64(&["spec", "ratio"]), Ok(Some(0.5)));
        assert_eq!(object.nested_f64(&["spec", "size"]), Ok(Some(3.0)));
        assert_eq!(object.nested_bool(&["spec", "on"]), Ok(Some(true)));
        assert_eq!(object.nested_str(&["spec", "colour"]), Ok(Some("blue")));
        assert_eq!(object.nested_slice(&["spec", "tags"]).unwrap().unwrap().len(), 2);
        assert_eq!(object.nested_string_slice(&["spec", "tags"]), Ok(Some(vec!["a", "b"])));
        assert_eq!(object.nested_string_map(&["spec", "labels"]), Ok(Some([("x", "1")].into())));
        assert!(object.nested_map(&["spec"]).unwrap().unwrap().contains_key("size"));
    }

    #[test]
    fn what_is_missing_or_null_is_none_and_no_error() {
        let object = object();
        assert_eq!(object.nested_str(&["spec", "missing"]), Ok(None));
        assert_eq!(object.nested_str(&["status", "deep", "deeper"]), Ok(None));
        assert_eq!(object.nested_str(&["spec", "none"]), Ok(None));
        assert_eq!(object.nested_str(&["spec", "none", "below"]), Ok(None));
    }

    #[test]
    fn another_type_is_an_error_that_names_the_field() {
        let object = object();
        let wrong = |path: &str, found, wanted| FieldError::Type { path: path.to_owned(), found, wanted };
        let error = object.nested_i64(&["spec", "ratio"]).unwrap_err();
        assert_eq!(error, wrong("spec.ratio", "a number", "an integer"));
        let error = object.nested_bool(&["spec", "size"]).unwrap_err();
        assert_eq!(error, wrong("spec.size", "a number", "a boolean"));
        let error = object.nested_string_slice(&["spec", "mixed"]).unwrap_err();
        assert_eq!(error, wrong("spec.mixed", "a number", "a list of strings"));
        let error = object.nested_str(&["spec", "colour", "hue"]).unwrap_err();
        assert_eq!(error, wrong("spec.colour", "a string", "an object"));
        assert!(object.nested_string_map(&["spec"]).is_err());
    }

    #[test]
    fn writing_makes_the_way_and_replaces_null() {
        let mut object = object();
        object.set_nested_field(&["status", "phase"], "Ready").unwrap();
        object.set_nested_field(&["spec", "none", "below"], 1).unwrap();
        assert_eq!(object.nested_str(&["status", "phase"]), Ok(Some("Ready")));
        assert_eq!(object.nested_i64(&["spec", "none", "below"]), Ok(Some(1)));
        assert!(object.set_nested_field(&["spec", "colour", "hue"], 1).is_err());
        assert_eq!(object.set_nested_field(&[], 1), Err(FieldError::NoPath));
    }

    #[test]
    fn removing_returns_what_was_there() {
        let mut object = object();
        assert_eq!(object.remove_nested_field(&["spec", "size"]), Ok(Some(json!(3))));
        assert_eq!(object.remove_nested_field(&["spec", "size"]), Ok(None));
        assert_eq!(object.remove_nested_field(&["nowhere", "size"]), Ok(None));
        assert!(object.remove_nested_field(&["spec", "colour", "hue"]).is_err());
    }

    #[test]
    fn the_typed_part_is_not_shadowed() {
        let mut object = object();
        assert!(matches!(object.set_nested_field(&["metadata", "name"], "x"), Err(FieldError::Typed { .. })));
        assert!(matches!(object.nested_str(&["kind"]), Err(FieldError::Typed { .. })));
    }
}
