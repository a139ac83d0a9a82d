//! Removal of paths from a value.

use serde_json::{Map, Value};

use super::{Atom, as_list, as_map, atom};
use crate::{
    Node,
    apply::{path::PathElement, set::FieldSet},
    node::RAW,
};

/// Removes paths from a value. Containers that become empty turn into `null`, as upstream.
pub(crate) fn remove(node: &Node, value: &Value, paths: &FieldSet) -> Value {
    match atom(node, Some(value)) {
        Atom::Scalar(_) => value.clone(),
        Atom::List(view) => {
            if view.is_atomic() {
                return Value::Null;
            }
            let items: Vec<_> = as_list(Some(value))
                .unwrap_or_default()
                .iter()
                .filter_map(|item| {
                    let Ok(element) = view.element(item) else { return Some(item.clone()) };
                    if paths.has_element(&element) {
                        return None;
                    }
                    Some(below(view.item(), item, paths, &element))
                })
                .collect();
            if items.is_empty() { Value::Null } else { Value::Array(items) }
        }
        Atom::Map(view) => {
            if view.is_atomic() {
                return Value::Null;
            }
            let map: Map<_, _> = as_map(Some(value))
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| {
                    let element = PathElement::field(key.as_str());
                    if paths.has_element(&element) {
                        return None;
                    }
                    let node = view.value_of(key).unwrap_or(&RAW);
                    Some((key.clone(), below(node, value, paths, &element)))
                })
                .collect();
            if map.is_empty() { Value::Null } else { Value::Object(map) }
        }
    }
}

fn below(node: &Node, value: &Value, paths: &FieldSet, element: &PathElement) -> Value {
    match paths.below(element) {
        Some(paths) => remove(node, value, paths),
        None => value.clone(),
    }
}
