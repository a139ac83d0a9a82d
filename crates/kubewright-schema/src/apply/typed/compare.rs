//! Comparison of two objects by path.

use std::{collections::BTreeMap, mem::discriminant};

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, as_list, as_map, atom, zip_keys};
use crate::{
    Node,
    apply::{
        path::{PathElement, equal},
        set::FieldSet,
    },
    node::RAW,
};

/// Changes from the left object to the right one. The sets are disjoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// Applies `f` to each set.
    pub(crate) fn map(self, f: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { removed: f(self.removed), modified: f(self.modified), added: f(self.added) }
    }

    fn union(self, other: Self) -> Self {
        Self {
            removed: self.removed.into_union(other.removed),
            modified: self.modified.into_union(other.modified),
            added: self.added.into_union(other.added),
        }
    }

    /// Appends the changes found under an element; elements come in order.
    fn push(&mut self, element: PathElement, change: NodeChange) {
        let NodeChange { itself, below } = change;
        let is = |change: Change| itself == Some(change);
        if is(Change::Removed) || !below.removed.is_empty() {
            self.removed.push(element.clone(), is(Change::Removed), below.removed);
        }
        if is(Change::Modified) || !below.modified.is_empty() {
            self.modified.push(element.clone(), is(Change::Modified), below.modified);
        }
        if is(Change::Added) || !below.added.is_empty() {
            self.added.push(element, is(Change::Added), below.added);
        }
    }
}

/// Compares two values of one type.
pub(crate) fn compare(node: &Node, lhs: &Value, rhs: &Value) -> Comparison {
    value(node, Some(lhs), Some(rhs)).below
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

/// Change at a path, and changes below it.
#[derive(Default)]
struct NodeChange {
    itself: Option<Change>,
    below: Comparison,
}

fn value(node: &Node, lhs: Option<&Value>, rhs: Option<&Value>) -> NodeChange {
    let (left, right) = (atom(node, lhs), atom(node, rhs));
    match (lhs, rhs) {
        (None, None) => NodeChange::default(),
        (_, None) => as_atom(left, lhs, rhs),
        (None, _) => as_atom(right, lhs, rhs),
        _ if discriminant(&left) == discriminant(&right) => as_atom(right, lhs, rhs),
        _ => {
            let (one, other) = (as_atom(left, lhs, rhs), as_atom(right, lhs, rhs));
            NodeChange { itself: other.itself.or(one.itself), below: one.below.union(other.below) }
        }
    }
}

/// Compares two values as one kind of atom.
fn as_atom(atom: Atom<'_>, lhs: Option<&Value>, rhs: Option<&Value>) -> NodeChange {
    let below = match atom {
        Atom::Scalar(_) => return leaf(lhs, rhs),
        Atom::List(view) => {
            let (left, right) = (as_list(lhs).unwrap_or_default(), as_list(rhs).unwrap_or_default());
            if view.is_atomic() || (left.is_empty() && right.is_empty()) {
                return leaf(lhs, rhs);
            }
            lists(view, left, right)
        }
        Atom::Map(view) => {
            let (left, right) = (as_map(lhs), as_map(rhs));
            if view.is_atomic() || (left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty)) {
                return leaf(lhs, rhs);
            }
            maps(view, left, right)
        }
    };
    let itself = match (lhs, rhs) {
        (None, _) => Some(Change::Added),
        (_, None) => Some(Change::Removed),
        _ => None,
    };
    NodeChange { itself, below }
}

fn leaf(lhs: Option<&Value>, rhs: Option<&Value>) -> NodeChange {
    let itself = match (lhs, rhs) {
        (None, _) => Some(Change::Added),
        (_, None) => Some(Change::Removed),
        (Some(lhs), Some(rhs)) => (!equal(lhs, rhs)).then_some(Change::Modified),
    };
    NodeChange { itself, below: Comparison::default() }
}

fn maps(view: MapView<'_>, lhs: Option<&Map<String, Value>>, rhs: Option<&Map<String, Value>>) -> Comparison {
    let mut out = Comparison::default();
    for (key, lhs, rhs) in zip_keys(lhs, rhs) {
        let change = value(view.value_of(key).unwrap_or(&RAW), lhs, rhs);
        out.push(PathElement::field(key), change);
    }
    out
}

fn lists(view: ListView<'_>, lhs: &[Value], rhs: &[Value]) -> Comparison {
    let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in lhs {
        if let Ok(element) = view.element(item) {
            items.entry(element).or_default().0.push(item);
        }
    }
    for item in rhs {
        if let Ok(element) = view.element(item) {
            items.entry(element).or_default().1.push(item);
        }
    }
    let mut out = Comparison::default();
    for (element, (left, right)) in items {
        match same_key(view.item(), &left, &right) {
            (change, None) => out.push(element, change),
            // Once as a single item and once as a group: both are recorded.
            (change, Some(group)) => {
                let mut more = Comparison::default();
                more.push(element.clone(), NodeChange { itself: Some(group), below: Comparison::default() });
                let mut single = Comparison::default();
                single.push(element, change);
                out = out.union(single).union(more);
            }
        }
    }
    out
}

/// Compares items with the same key: normally one on each side; several are compared as one value.
fn same_key(node: &Node, left: &[&Value], right: &[&Value]) -> (NodeChange, Option<Change>) {
    match (left, right) {
        ([] | [_], [] | [_]) => (value(node, left.first().copied(), right.first().copied()), None),
        ([_, _, ..], [_, _, ..]) => {
            let same = left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r));
            (NodeChange { itself: (!same).then_some(Change::Modified), below: Comparison::default() }, None)
        }
        ([_, _, ..], _) => (value(node, None, right.first().copied()), Some(Change::Removed)),
        (_, _) => (value(node, left.first().copied(), None), Some(Change::Added)),
    }
}
