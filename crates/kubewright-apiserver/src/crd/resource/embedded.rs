//! Validation of objects embedded in a custom resource (`x-kubernetes-embedded-resource`): they need
//! apiVersion and kind, and valid object metadata.

use serde_json::{Map, Value};

use crate::{
    crd::names,
    registry::validation::names as metadata_names,
    schema::{
        AdditionalProperties, Child, Kind, Node, body,
        field::{ErrorKind, FieldError},
    },
};

/// Validates the embedded objects of a custom resource, not the resource itself.
pub(super) fn validate(schema: &Node, object: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    children(schema, object, "", &mut out);
    out
}

fn visit(node: &Node, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    if let (true, Value::Object(map)) = (node.embedded_resource, value) {
        resource(node, map, path, out);
    }
    children(node, value, path, out);
}

fn children(node: &Node, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (key, value) in map {
                match (object.field(key), &object.additional) {
                    // Metadata is validated with its object.
                    (Some(field), _) if matches!(field.node, Child::Builtin(_)) => {}
                    (Some(field), _) => visit(field.node.node(), value, &child(path, key), out),
                    (None, AdditionalProperties::Values(values)) => {
                        visit(values.node(), value, &format!("{path}[{key}]"), out);
                    }
                    _ => {}
                }
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                visit(list.item.node(), item, &format!("{path}[{i}]"), out);
            }
        }
        _ => {}
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn resource(node: &Node, object: &Map<String, Value>, path: &str, out: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = child(path, name);
        let invalid = |value: &Value, why: &str| {
            FieldError::new(ErrorKind::Invalid, field.as_str(), value.clone(), why)
        };
        match object.get(name) {
            None => out.push(FieldError::new(ErrorKind::Required, field, Value::Null, "")),
            Some(value @ Value::String(text)) => {
                if text.is_empty() {
                    out.push(invalid(value, "must not be empty"));
                } else if name == "apiVersion" && text.matches('/').count() > 1 {
                    out.push(invalid(value, &format!("unexpected GroupVersion string: {text}")));
                } else if name == "kind" {
                    let reasons = names::label_1035(&text.to_lowercase());
                    if !reasons.is_empty() {
                        let reasons = reasons.join(",");
                        out.push(invalid(
                            value,
                            &format!("may have mixed case, but should otherwise match: {reasons}"),
                        ));
                    }
                }
            }
            Some(other) => out.push(invalid(other, "must be a string")),
        }
    }
    if let Some(value) = object.get("metadata") {
        let type_of = node.as_object().and_then(|object| object.field("metadata"));
        metadata(type_of.map(|field| field.node.node()), value, &child(path, "metadata"), out);
    }
}

fn metadata(node: Option<&Node>, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    if let Some(node) = node
        && let Err(error) = body::check(value, Some((node, "ObjectMeta")), &body::Limits::default())
    {
        out.push(FieldError::new(ErrorKind::Invalid, path, value.clone(), error.to_string()));
        return;
    }
    let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
    let mut add = |name: &str, value: &str, reasons: Vec<String>| {
        let field = format!("{path}.{name}");
        out.extend(
            reasons.into_iter().map(|why| FieldError::new(ErrorKind::Invalid, field.as_str(), value, why)),
        );
    };
    let segment = metadata_names::NameRule::PathSegment;
    if let Some(prefix) = text("generateName") {
        add("generateName", prefix, segment.check_prefix(prefix));
    }
    if let Some(name) = text("name") {
        add("name", name, segment.check(name));
    }
    if let Some(namespace) = text("namespace") {
        add("namespace", namespace, metadata_names::label(namespace));
    }
    for (key, value) in value["labels"].as_object().into_iter().flatten() {
        add("labels", key, metadata_names::qualified(key));
        let value = value.as_str().unwrap_or_default();
        add("labels", value, metadata_names::label_value(value));
    }
    for key in value["annotations"].as_object().into_iter().flatten().map(|(key, _)| key) {
        add("annotations", key, metadata_names::qualified(&key.to_lowercase()));
    }
    for finalizer in value["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        add("finalizers", finalizer, metadata_names::qualified(finalizer));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::TypeRef;

    #[test]
    fn an_embedded_object_needs_a_type_and_valid_metadata() {
        let template = json!({"type": "object", "x-kubernetes-embedded-resource": true,
                              "x-kubernetes-preserve-unknown-fields": true});
        let schema = TypeRef::from_structural(&json!({"type": "object", "properties": {
            "one": template, "all": {"type": "array", "items": template}}}))
        .unwrap();
        let texts = |object: Value| -> Vec<String> {
            validate(&schema, &object).iter().map(ToString::to_string).collect()
        };
        let good = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}}, "x": 1});
        assert_eq!(texts(json!({"kind": "W", "one": good, "all": [good]})), Vec::<String>::new());
        assert_eq!(
            texts(json!({"one": {}, "all": [{"apiVersion": "a/b/c", "kind": 3}]})),
            [
                "all[0].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "all[0].kind: Invalid value: 3: must be a string",
                "one.apiVersion: Required value",
                "one.kind: Required value",
            ]
        );
        let labels =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "labels": {"a": "b c"}}});
        let found = texts(json!({"one": labels}));
        assert_eq!(found[0], "one.metadata.name: Invalid value: \"a/b\": may not contain '/'");
        assert!(found[1].starts_with("one.metadata.labels: Invalid value: \"b c\": "), "{found:?}");
        let wrong = texts(json!({"one": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": 1}}}));
        assert!(wrong[0].starts_with("one.metadata: Invalid value: "), "{wrong:?}");
    }
}
