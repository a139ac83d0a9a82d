//! Atomic lists, maps and structs, which apply configurations must not set.
//!
//! They are replaced as a whole, so that setting one field would drop the others.

use serde_json::Value;

use crate::{
    registry::descriptor::Descriptor,
    schema::{Gvk, Kind, ListType, Node, Schemas},
};

/// The paths of all atomic values in a configuration of a built-in type.
pub(super) fn find(ty: &Descriptor, configuration: &Value) -> Vec<String> {
    let gvk = Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref());
    let mut out = Vec::new();
    if let Some(shape) = Schemas::builtin().lookup(&gvk) {
        walk(&shape, configuration, "", &mut out);
    }
    out
}

fn walk(node: &Node, value: &Value, path: &str, out: &mut Vec<String>) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(members)) => {
            if object.atomic {
                out.push(path.to_owned());
            }
            for (key, value) in members {
                if let Some(field) = object.field(key) {
                    walk(field.node.node(), value, &format!("{path}.{key}"), out);
                }
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            if list.list_type == ListType::Atomic {
                out.push(path.to_owned());
            }
            for (n, item) in items.iter().enumerate() {
                walk(list.item.node(), item, &format!("{path}[{n}]"), out);
            }
        }
        _ => {}
    }
}
