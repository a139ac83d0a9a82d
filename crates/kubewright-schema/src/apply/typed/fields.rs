//! Field paths of a value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Atom, ListView, MapView, as_list, as_map, atom};
use crate::{
    Node,
    apply::{path::PathElement, set::FieldSet},
};

/// Returns the paths that an applied configuration specifies, and so owns.
pub(crate) fn field_set(node: &Node, value: &Value) -> FieldSet {
    visit(node, value).below
}

/// Whether a value is owned as a whole, and the paths owned within it.
#[derive(Default)]
struct Visited {
    itself: bool,
    below: FieldSet,
}

fn visit(node: &Node, value: &Value) -> Visited {
    let whole = || Visited { itself: true, below: FieldSet::new() };
    let below = match atom(node, Some(value)) {
        Atom::Scalar(_) => return whole(),
        Atom::List(view) if view.is_atomic() => return whole(),
        Atom::Map(view) if view.is_atomic() => return whole(),
        Atom::List(view) => list(view, as_list(Some(value)).unwrap_or_default()),
        Atom::Map(view) => map(view, value),
    };
    Visited { itself: false, below }
}

fn map(view: MapView<'_>, value: &Value) -> FieldSet {
    let mut out = FieldSet::new();
    for (key, value) in as_map(Some(value)).into_iter().flatten() {
        let Some(node) = view.value_of(key) else { continue };
        let owned = visit(node, value);
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let itself = owned.itself || is_empty || !view.is_named(key);
        out.push(PathElement::field(key.as_str()), itself, owned.below);
    }
    out
}

fn list(view: ListView<'_>, items: &[Value]) -> FieldSet {
    let mut by_key: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = view.element(item) {
            by_key.entry(element).or_default().push(item);
        }
    }
    let mut out = FieldSet::new();
    for (element, items) in by_key {
        // Items with equal keys are owned as one, without paths below.
        let below = if let [only] = &*items { visit(view.item(), only).below } else { FieldSet::new() };
        out.push(element, true, below);
    }
    out
}
