//! Which paths does a value have?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Atom, ListView, MapView, as_list, as_map, atom};
use crate::{
    apply::{path::PathElement, set::FieldSet},
    schema::Node,
};

/// The paths that an applied configuration speaks about, and so owns.
pub(crate) fn field_set(node: &Node, value: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    visit(node, value, &mut Vec::new(), &mut set);
    set
}

fn visit(node: &Node, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match atom(node, Some(value)) {
        Atom::Scalar(_) => set.insert(path),
        Atom::List(view) if view.is_atomic() => set.insert(path),
        Atom::Map(view) if view.is_atomic() => set.insert(path),
        Atom::List(view) => visit_list(view, as_list(Some(value)).unwrap_or_default(), path, set),
        Atom::Map(view) => {
            for (key, value) in as_map(Some(value)).into_iter().flatten() {
                visit_field(view, key, value, path, set);
            }
        }
    }
}

fn visit_field(view: MapView<'_>, key: &str, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    let Some(node) = view.value_of(key) else { return };
    path.push(PathElement::field(key));
    visit(node, value, path, set);
    let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty || !view.is_named(key) {
        set.insert(path);
    }
    path.pop();
}

fn visit_list(view: ListView<'_>, items: &[Value], path: &mut Vec<PathElement>, set: &mut FieldSet) {
    let elements: Vec<_> = items.iter().filter_map(|item| Some((view.element(item).ok()?, item))).collect();
    let mut times: BTreeMap<&PathElement, usize> = BTreeMap::new();
    for (element, _) in &elements {
        *times.entry(element).or_default() += 1;
    }
    let mut duplicates_done = BTreeSet::new();
    for (element, item) in &elements {
        let is_duplicate = times.get(element).is_some_and(|n| *n > 1);
        if is_duplicate && !duplicates_done.insert(element) {
            continue;
        }
        path.push(element.clone());
        if !is_duplicate {
            visit(view.item(), item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}
