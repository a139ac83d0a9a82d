//! Removes what a structural schema does not name.

use serde_json::Value;

use super::{Kind, Node, Rest, body, canonical::canonicalise, go};

/// Prunes a custom resource and returns what went: `unknown field "spec.b"`; first from its metadata, then from its
/// content and at last from the metadata of embedded objects, each sorted by path.
///
/// apiVersion, kind and metadata of the object and of embedded resources stay; unknown fields inside metadata go, as
/// they do when Go decodes it.
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
    let mut gone = Gone::default();
    visit(schema, value, &mut String::new(), schema.preserve_unknown, &mut gone);
    let Gone { mut content, metadata: (own, mut embedded) } = gone;
    content.sort();
    embedded.sort();
    own.iter()
        .chain(&content)
        .chain(&embedded)
        .map(|path| format!("unknown field {}", go::quote(path)))
        .collect()
}

/// The paths of what went.
#[derive(Default)]
struct Gone {
    content: Vec<String>,
    /// Of the object itself, and of those inside of it.
    metadata: (Vec<String>, Vec<String>),
}

/// `keep` says whether fields that the node does not name stay.
fn visit(node: &Node, value: &mut Value, path: &mut String, keep: bool, gone: &mut Gone) {
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
                match (field, object.map(|object| &object.rest)) {
                    _ if is_meta => {
                        if key == "metadata" {
                            let is_own = length == 0;
                            let gone = if is_own { &mut gone.metadata.0 } else { &mut gone.metadata.1 };
                            let node = field.map(|field| field.node.node());
                            prune_metadata(node, value, path, gone);
                            // That of the object itself is settled with the rest of it: until then, an empty list of
                            // managers is a wish.
                            if let (false, Some(node)) = (is_own, node) {
                                canonicalise(node, value);
                            }
                        }
                    }
                    (Some(field), _) => {
                        let child = field.node.node();
                        visit(child, value, path, child.preserve_unknown, gone);
                    }
                    (None, Some(Rest::Values(values))) => {
                        let child = values.node();
                        visit(child, value, path, child.preserve_unknown, gone);
                    }
                    _ if keep => {}
                    _ => {
                        gone.content.push(path.clone());
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
                visit(item_node, item, path, keep || item_node.preserve_unknown, gone);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn prune_metadata(node: Option<&Node>, value: &mut Value, path: &str, gone: &mut Vec<String>) {
    let Some(node) = node else { return };
    let limits = body::Limits { bytes: usize::MAX, ..body::Limits::default() };
    if let Ok(decoded) = body::check(value, Some((node, "ObjectMeta")), &limits) {
        let names =
            decoded.findings.iter().filter_map(|f| f.strip_prefix("unknown field \"")?.strip_suffix('"'));
        gone.extend(names.map(|name| format!("{path}.{name}")));
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
        let gone = prune(&node, &mut value);
        (value, gone)
    }

    #[test]
    fn a_preserving_node_keeps_what_it_does_not_name_but_prunes_below_what_it_names() {
        let schema = json!({"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "in": {"type": "object", "properties": {"a": {"type": "string"}}},
        }}});
        let (value, gone) = pruned(schema, json!({"spec": {"free": {"x": 1}, "in": {"a": "1", "b": 2}}}));
        assert_eq!(value, json!({"spec": {"free": {"x": 1}, "in": {"a": "1"}}}));
        assert_eq!(gone, [r#"unknown field "spec.in.b""#]);
    }

    #[test]
    fn an_object_without_properties_is_emptied_and_lists_are_walked() {
        let schema = json!({"spec": {"type": "object"}, "l": {"type": "array", "items": {
            "type": "object", "properties": {"k": {"type": "string"}}}}});
        let (value, gone) = pruned(schema, json!({"spec": {"a": 1}, "l": [{"k": "a", "z": 1}]}));
        assert_eq!(value, json!({"spec": {}, "l": [{"k": "a"}]}));
        assert_eq!(gone, [r#"unknown field "l[0].z""#, r#"unknown field "spec.a""#]);
    }

    #[test]
    fn metadata_of_the_object_and_of_embedded_ones_loses_what_objectmeta_does_not_have() {
        let schema =
            json!({"t": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {}}});
        let object = json!({"metadata": {"name": "x", "banana": 1},
                            "t": {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}, "y": 1}, "z": 1}});
        let (value, gone) = pruned(schema, object);
        assert_eq!(
            value,
            json!({"metadata": {"name": "x"}, "t": {"kind": "K", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}}}})
        );
        assert_eq!(
            gone,
            [
                r#"unknown field "metadata.banana""#,
                r#"unknown field "t.z""#,
                r#"unknown field "t.metadata.y""#
            ]
        );
    }
}
