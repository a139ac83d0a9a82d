//! Defaulting of custom resources by their structural schema.

use serde_json::Value;

use super::{AdditionalProperties, Child, Kind, Node};

/// Sets absent fields of a custom resource to their defaults, and drops `null` where the schema forbids it.
///
/// A `null` where `nullable` is false counts as absent: it becomes the default or is dropped. Defaulting
/// descends into present and defaulted fields; an absent object without a default stays absent even if its
/// own fields have defaults. Run it after pruning, and again on objects read from storage: the schema may
/// have gained defaults since the write.
///
/// ```
/// use kubewright_schema::{TypeRef, default::apply_defaults};
/// use serde_json::json;
///
/// let schema = TypeRef::from_structural(&json!({"type": "object", "properties": {"spec": {
///     "type": "object",
///     "properties": {"n": {"type": "integer", "default": 1}, "s": {"type": "string", "nullable": true}},
/// }}}))?;
/// let mut widget = json!({"spec": {"n": null, "s": null}});
/// apply_defaults(&schema, &mut widget);
/// assert_eq!(widget, json!({"spec": {"n": 1, "s": null}}));
///
/// let mut empty = json!({});
/// apply_defaults(&schema, &mut empty);
/// assert_eq!(empty, json!({}));
/// # Ok::<(), kubewright_schema::SchemaError>(())
/// ```
pub fn apply_defaults(schema: &Node, value: &mut Value) {
    drop_nulls(schema, value);
    set_defaults(schema, value);
}

/// Returns the node of a child that is part of the CRD's own schema; metadata is not.
fn own_schema(child: &Child) -> Option<&Node> {
    match child {
        Child::Inline(node) => Some(node),
        Child::Builtin(_) => None,
    }
}

/// Removes `null` fields that are not nullable and have no default.
fn drop_nulls(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            map.retain(|key, value| {
                let child = match (object.field(key), &object.additional) {
                    (Some(field), _) => own_schema(&field.node),
                    (None, AdditionalProperties::Values(values)) => own_schema(values),
                    _ => None,
                };
                let Some(child) = child else { return true };
                if value.is_null() {
                    return child.nullable || child.default.is_some();
                }
                drop_nulls(child, value);
                true
            });
        }
        (Kind::List(list), Value::Array(items)) => {
            if let Some(item) = own_schema(&list.item) {
                for value in items {
                    drop_nulls(item, value);
                }
            }
        }
        _ => {}
    }
}

fn set_defaults(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for field in &object.fields {
                let Some(child) = own_schema(&field.node) else { continue };
                let is_absent = map.get(&*field.name).is_none_or(|value| value.is_null() && !child.nullable);
                if let (true, Some(default)) = (is_absent, &child.default) {
                    map.insert(field.name.to_string(), default.clone());
                }
                if let Some(value) = map.get_mut(&*field.name) {
                    set_defaults(child, value);
                }
            }
            if let AdditionalProperties::Values(values) = &object.additional
                && let Some(child) = own_schema(values)
            {
                for (_, value) in map.iter_mut().filter(|(key, _)| object.field(key).is_none()) {
                    default_null(child, value);
                    set_defaults(child, value);
                }
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            if let Some(item) = own_schema(&list.item) {
                for value in items {
                    default_null(item, value);
                    set_defaults(item, value);
                }
            }
        }
        _ => {}
    }
}

fn default_null(node: &Node, value: &mut Value) {
    if let (true, false, Some(default)) = (value.is_null(), node.nullable, &node.default) {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::TypeRef;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn defaulted(spec: Value, value: Value) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let node = TypeRef::from_structural(&schema).unwrap();
        let mut object = json!({"metadata": {"ownerReferences": [{"name": "x"}]}, "spec": value});
        apply_defaults(&node, &mut object);
        assert_eq!(object["metadata"], json!({"ownerReferences": [{"name": "x"}]}), "metadata is left alone");
        object["spec"].take()
    }

    #[test]
    fn defaults_reach_into_defaults_maps_and_lists() {
        let inner =
            json!({"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 2}}});
        let spec = json!({"type": "object", "properties": {
            "o": inner,
            "l": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        }});
        assert_eq!(
            defaulted(spec, json!({"l": [{}, {"c": "y"}], "m": {"k": null, "j": 1}})),
            json!({"o": {"b": 2}, "l": [{"c": "x"}, {"c": "y"}], "m": {"k": 7, "j": 1}})
        );
    }

    #[test]
    fn null_is_dropped_kept_or_defaulted() {
        let spec = json!({"type": "object", "properties": {
            "plain": {"type": "string"},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "defaulted": {"type": "string", "default": "d"},
        }});
        assert_eq!(
            defaulted(spec, json!({"plain": null, "nullable": null, "defaulted": null})),
            json!({"nullable": null, "defaulted": "d"})
        );
    }
}
