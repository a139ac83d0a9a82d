//! Conversion of the `openAPIV3Schema` of a CRD version into a [`Node`].
//!
//! CRD validation checks that the schema is structural; the conversion ignores unknown keywords and fails
//! only for malformed schemas.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{
    Fields, Schemas,
    node::{
        AdditionalProperties, Child, Field, Kind, List, ListType, Node, Object, PatchStrategy, Presence, RAW,
        Scalar, TypeRef, Wire,
    },
};

/// Error in a CRD schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A schema is not a JSON object.
    #[error("{path}: a schema must be an object")]
    NotAnObject {
        /// Path in the schema.
        path: String,
    },
    /// Type name unknown to `OpenAPI`.
    #[error("{path}: type {found:?} is none of object, array, string, integer, number, boolean")]
    UnknownType {
        /// Path in the schema.
        path: String,
        /// The type name.
        found: String,
    },
    /// A `pattern` that is not a regular expression.
    #[error("{path}: pattern {pattern:?} is no regular expression: {reason}")]
    BadPattern {
        /// Path in the schema.
        path: String,
        /// The pattern.
        pattern: String,
        /// The error of the regular expression parser.
        reason: String,
    },
}

static OBJECT_META: LazyLock<u16> = LazyLock::new(|| {
    Schemas::builtin().definition_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or_default()
});

impl TypeRef {
    /// Builds the schema of a custom resource: that of the CRD plus apiVersion, kind and metadata.
    ///
    /// ```
    /// use kubewright_schema::TypeRef;
    /// use serde_json::json;
    ///
    /// let widget = TypeRef::from_structural(&json!({
    ///     "type": "object",
    ///     "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}},
    /// }))?;
    /// let fields = &widget.as_object().unwrap().fields;
    /// let names: Vec<_> = fields.iter().map(|f| &*f.name).collect();
    /// assert_eq!(names, ["apiVersion", "kind", "metadata", "spec"]);
    /// # Ok::<(), kubewright_schema::SchemaError>(())
    /// ```
    pub fn from_structural(schema: &Value) -> Result<Self, SchemaError> {
        let mut root = convert(schema, false, &mut String::from("openAPIV3Schema"))?;
        if matches!(root.kind, Kind::Any) {
            root.kind = Kind::Object(Object {
                fields: Fields::default(),
                additional: AdditionalProperties::Any,
                atomic: false,
            });
        }
        make_resource(&mut root);
        Ok(root.into())
    }
}

/// Adds the three fields that every object has.
fn make_resource(node: &mut Node) {
    node.embedded_resource = true;
    let Kind::Object(object) = &mut node.kind else { return };
    let string = || Child::from(Node::from(Kind::Scalar(Scalar::String)));
    let meta = [("apiVersion", string()), ("kind", string()), ("metadata", Child::Builtin(*OBJECT_META))];
    for (name, node) in meta {
        let field = Field {
            name: name.into(),
            node,
            required: false,
            presence: Presence::Optional,
            patch: PatchStrategy::default(),
            wire: Wire::default(),
        };
        object.fields.insert(field);
    }
}

fn convert(schema: &Value, inherited: bool, path: &mut String) -> Result<Node, SchemaError> {
    let Value::Object(schema) = schema else {
        return Err(SchemaError::NotAnObject { path: path.clone() });
    };
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
    let preserve_unknown = flag("x-kubernetes-preserve-unknown-fields");
    let open = inherited || preserve_unknown;
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let kind = match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        _ if flag("x-kubernetes-int-or-string") => Kind::Scalar(Scalar::IntOrString),
        "object" => Kind::Object(object(schema, open, path)?),
        "array" => Kind::List(list(schema, open, path)?),
        "string" => Kind::Scalar(match format {
            "" => Scalar::String,
            "byte" => Scalar::Bytes,
            _ => Scalar::Formatted,
        }),
        "integer" => Kind::Scalar(if format == "int32" { Scalar::Int32 } else { Scalar::Int64 }),
        "number" => Kind::Scalar(Scalar::Number),
        "boolean" => Kind::Scalar(Scalar::Boolean),
        "" if schema.contains_key("properties") || schema.contains_key("additionalProperties") => {
            Kind::Object(object(schema, open, path)?)
        }
        "" if schema.contains_key("items") => Kind::List(list(schema, open, path)?),
        "" => Kind::Any,
        other => return Err(SchemaError::UnknownType { path: path.clone(), found: other.to_owned() }),
    };
    let mut node = Node {
        kind,
        nullable: flag("nullable"),
        preserve_unknown,
        embedded_resource: false,
        default: schema.get("default").filter(|v| !v.is_null()).cloned(),
    };
    if flag("x-kubernetes-embedded-resource") {
        make_resource(&mut node);
    }
    Ok(node)
}

fn object(schema: &Map<String, Value>, open: bool, path: &mut String) -> Result<Object, SchemaError> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields = Vec::new();
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let node = with_segment(path, name, |path| convert(child, open, path))?.into();
        let required = required.contains(&&**name);
        let (presence, patch) = (Presence::default(), PatchStrategy::default());
        fields.push(Field {
            name: name.as_str().into(),
            node,
            required,
            presence,
            patch,
            wire: Wire::default(),
        });
    }
    let additional = match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => AdditionalProperties::Closed,
        Some(Value::Bool(true)) => AdditionalProperties::Values(Node::from(Kind::Any).into()),
        Some(values @ Value::Object(_)) => AdditionalProperties::Values(
            with_segment(path, "additionalProperties", |path| convert(values, open, path))?.into(),
        ),
        _ if open || fields.is_empty() => AdditionalProperties::Any,
        _ => AdditionalProperties::Closed,
    };
    let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
    Ok(Object { fields: fields.into(), additional, atomic })
}

fn list(schema: &Map<String, Value>, open: bool, path: &mut String) -> Result<List, SchemaError> {
    let item = match schema.get("items") {
        Some(items) => with_segment(path, "items", |path| convert(items, open, path))?.into(),
        None => Child::from(RAW.clone()),
    };
    let list_type = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            ListType::Map(keys.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect())
        }
        _ => ListType::Atomic,
    };
    Ok(List { item, list_type })
}

/// Calls `f` with `path` extended by a segment, and restores the path.
pub(super) fn with_segment<T>(path: &mut String, name: &str, f: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push('.');
    path.push_str(name);
    let result = f(path);
    path.truncate(length);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn apply_inherits_preserve_unknown_fields_but_pruning_does_not() {
        let node = TypeRef::from_structural(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "in": {"type": "object", "properties": {"a": {"type": "string"}}}
            }}}
        }))
        .unwrap();
        let spec = node.as_object().unwrap().field("spec").unwrap().node.node();
        assert!(spec.preserve_unknown);
        let inner = spec.as_object().unwrap().field("in").unwrap().node.node();
        assert!(!inner.preserve_unknown);
        assert!(matches!(inner.as_object().unwrap().additional, AdditionalProperties::Any));
    }

    #[test]
    fn a_malformed_schema_is_rejected_with_its_path() {
        let bad = json!({"type": "object", "properties": {"spec": {"type": "array", "items": 1}}});
        assert_eq!(
            TypeRef::from_structural(&bad).unwrap_err().to_string(),
            "openAPIV3Schema.spec.items: a schema must be an object"
        );
        let bad = json!({"type": "object", "properties": {"a": {"type": "thing"}}});
        assert!(TypeRef::from_structural(&bad).unwrap_err().to_string().contains("\"thing\""));
    }

    #[test]
    fn an_embedded_resource_has_object_metadata() {
        let node = TypeRef::from_structural(&json!({
            "type": "object",
            "properties": {"t": {"type": "object", "x-kubernetes-embedded-resource": true,
                                 "properties": {"spec": {"type": "object"}}}}
        }))
        .unwrap();
        let template = node.as_object().unwrap().field("t").unwrap().node.node();
        let metadata = template.as_object().unwrap().field("metadata").unwrap().node.node();
        assert!(metadata.as_object().unwrap().field("ownerReferences").is_some());
    }
}
