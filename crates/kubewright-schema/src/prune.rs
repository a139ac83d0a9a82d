//! Pruning of custom resources: removes fields that the structural schema does not specify.

use serde_json::Value;

use super::{AdditionalProperties, Kind, Node, body, canonical::canonicalise, go};

/// Prunes a custom resource and returns the removed fields (`unknown field "spec.b"`): first those of its
/// metadata, then of its content, then of the metadata of embedded objects, each group sorted by path.
///
/// apiVersion, kind and metadata of the object and of embedded resources stay; unknown fields within metadata
/// are removed, as Go does when it decodes metadata.
///
/// ```
/// use kubewright_schema::{TypeRef, prune::prune};
/// use serde_json::json;
///
/// let schema = TypeRef::from_structural(&json!({
///     "type": "object",
///     "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
/// }))?;
/// let mut widget = json!({"kind": "Widget", "spec": {"a": "1", "b": "2"}, "extra": 1});
/// assert_eq!(prune(&schema, &mut widget), [r#"unknown field "extra""#, r#"unknown field "spec.b""#]);
/// assert_eq!(widget, json!({"kind": "Widget", "spec": {"a": "1"}}));
/// # Ok::<(), kubewright_schema::SchemaError>(())
/// ```
pub fn prune(schema: &Node, value: &mut Value) -> Vec<String> {
    let mut removed = Removed::default();
    visit(schema, value, &mut String::new(), schema.preserve_unknown, &mut removed);
    let Removed { mut content, metadata: (own, mut embedded) } = removed;
    content.sort();
    embedded.sort();
    own.iter()
        .chain(&content)
        .chain(&embedded)
        .map(|path| format!("unknown field {}", go::quote(path)))
        .collect()
}

/// Paths of the removed fields.
#[derive(Default)]
struct Removed {
    content: Vec<String>,
    /// Those of the object's own metadata, and of the metadata of embedded objects.
    metadata: (Vec<String>, Vec<String>),
}

/// Prunes a value; `keep` is whether unknown fields of the node stay.
fn visit(node: &Node, value: &mut Value, path: &mut String, keep: bool, removed: &mut Removed) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            let object = node.as_object();
            let mut drop = Vec::new();
            for (key, value) in map.iter_mut() {
                let is_meta = node.embedded_resource && matches!(&**key, "apiVersion" | "kind" | "metadata");
                let field = object.and_then(|object| object.field(key));
                if length > 0 {
                    path.push('.');
                }
                path.push_str(key);
                match (field, object.map(|object| &object.additional)) {
                    _ if is_meta => {
                        if key == "metadata" {
                            let is_own = length == 0;
                            let removed =
                                if is_own { &mut removed.metadata.0 } else { &mut removed.metadata.1 };
                            let node = field.map(|field| field.node.node());
                            prune_metadata(node, value, path, removed);
                            // The object's own metadata is canonicalised later with the whole object: until
                            // then, empty managedFields mean a reset of field ownership.
                            if let (false, Some(node)) = (is_own, node) {
                                canonicalise(node, value);
                            }
                        }
                    }
                    (Some(field), _) => {
                        let child = field.node.node();
                        visit(child, value, path, child.preserve_unknown, removed);
                    }
                    (None, Some(AdditionalProperties::Values(values))) => {
                        let child = values.node();
                        visit(child, value, path, child.preserve_unknown, removed);
                    }
                    _ if keep => {}
                    _ => {
                        removed.content.push(path.clone());
                        drop.push(key.clone());
                    }
                }
                path.truncate(length);
            }
            for key in drop {
                map.remove(&key);
            }
        }
        Value::Array(items) => {
            let item_node = match &node.kind {
                Kind::List(list) => list.item.node(),
                _ if keep => return,
                _ => &super::node::RAW,
            };
            for (i, item) in items.iter_mut().enumerate() {
                path.push_str(&format_args!("[{i}]").to_string());
                visit(item_node, item, path, keep || item_node.preserve_unknown, removed);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn prune_metadata(node: Option<&Node>, value: &mut Value, path: &str, removed: &mut Vec<String>) {
    let Some(node) = node else { return };
    if let Ok(decoded) = body::check(value, Some((node, "ObjectMeta")), &body::Limits::default()) {
        let names =
            decoded.findings.iter().filter_map(|f| f.strip_prefix("unknown field \"")?.strip_suffix('"'));
        removed.extend(names.map(|name| format!("{path}.{name}")));
        *value = decoded.value;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::TypeRef;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn pruned(schema: Value, mut value: Value) -> (Value, Vec<String>) {
        let node = TypeRef::from_structural(&json!({"type": "object", "properties": schema})).unwrap();
        let removed = prune(&node, &mut value);
        (value, removed)
    }

    #[test]
    fn preserve_unknown_fields_keeps_unknown_fields_but_prunes_below_known_ones() {
        let schema = json!({"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "in": {"type": "object", "properties": {"a": {"type": "string"}}},
        }}});
        let (value, removed) = pruned(schema, json!({"spec": {"free": {"x": 1}, "in": {"a": "1", "b": 2}}}));
        assert_eq!(value, json!({"spec": {"free": {"x": 1}, "in": {"a": "1"}}}));
        assert_eq!(removed, [r#"unknown field "spec.in.b""#]);
    }

    #[test]
    fn an_object_without_properties_is_emptied_and_lists_are_walked() {
        let schema = json!({"spec": {"type": "object"}, "l": {"type": "array", "items": {
            "type": "object", "properties": {"k": {"type": "string"}}}}});
        let (value, removed) = pruned(schema, json!({"spec": {"a": 1}, "l": [{"k": "a", "z": 1}]}));
        assert_eq!(value, json!({"spec": {}, "l": [{"k": "a"}]}));
        assert_eq!(removed, [r#"unknown field "l[0].z""#, r#"unknown field "spec.a""#]);
    }

    #[test]
    fn unknown_metadata_fields_are_pruned_in_the_object_and_in_embedded_ones() {
        let schema =
            json!({"t": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {}}});
        let object = json!({"metadata": {"name": "x", "banana": 1},
                            "t": {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}, "y": 1}, "z": 1}});
        let (value, removed) = pruned(schema, object);
        assert_eq!(
            value,
            json!({"metadata": {"name": "x"}, "t": {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}}}})
        );
        assert_eq!(
            removed,
            [
                r#"unknown field "metadata.banana""#,
                r#"unknown field "t.z""#,
                r#"unknown field "t.metadata.y""#
            ]
        );
    }
}
