//! Which paths differ between two objects?

use std::{collections::BTreeMap, mem::discriminant};

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, as_list, as_map, atom, zip_keys};
use crate::{
    apply::{
        path::{PathElement, equal},
        set::FieldSet,
    },
    schema::{Node, node::RAW},
};

/// What changed from the left object to the right one. No path is in two of the sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The comparison without these paths and everything below them.
    pub(crate) fn without(self, paths: &FieldSet) -> Self {
        if paths.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(paths),
            modified: self.modified.recursive_difference(paths),
            added: self.added.recursive_difference(paths),
        }
    }
}

/// Compares two values of one type.
pub(crate) fn compare(node: &Node, lhs: &Value, rhs: &Value) -> Comparison {
    let mut walker = Walker { path: Vec::new(), out: Comparison::default() };
    walker.value(node, Some(lhs), Some(rhs));
    walker.out
}

struct Walker {
    path: Vec<PathElement>,
    out: Comparison,
}

impl Walker {
    fn value(&mut self, node: &Node, lhs: Option<&Value>, rhs: Option<&Value>) {
        let (left, right) = (atom(node, lhs), atom(node, rhs));
        let was_leaf = match (lhs, rhs) {
            (None, None) => return,
            (_, None) => self.as_atom(left, lhs, rhs),
            (None, _) => self.as_atom(right, lhs, rhs),
            _ if discriminant(&left) == discriminant(&right) => self.as_atom(right, lhs, rhs),
            _ => {
                self.as_atom(left, lhs, rhs);
                self.as_atom(right, lhs, rhs)
            }
        };
        if !was_leaf {
            if lhs.is_none() {
                self.out.added.insert(&self.path);
            } else if rhs.is_none() {
                self.out.removed.insert(&self.path);
            }
        }
    }

    /// Compares in one form; says whether that was one value as a whole.
    fn as_atom(&mut self, atom: Atom<'_>, lhs: Option<&Value>, rhs: Option<&Value>) -> bool {
        match atom {
            Atom::Scalar(_) => self.leaf(lhs, rhs),
            Atom::List(view) => {
                let (left, right) = (as_list(lhs).unwrap_or_default(), as_list(rhs).unwrap_or_default());
                if view.is_atomic() || (left.is_empty() && right.is_empty()) {
                    return self.leaf(lhs, rhs);
                }
                self.lists(view, left, right);
                false
            }
            Atom::Map(view) => {
                let (left, right) = (as_map(lhs), as_map(rhs));
                if view.is_atomic() || (left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty)) {
                    return self.leaf(lhs, rhs);
                }
                self.maps(view, left, right);
                false
            }
        }
    }

    fn leaf(&mut self, lhs: Option<&Value>, rhs: Option<&Value>) -> bool {
        match (lhs, rhs) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(lhs), Some(rhs)) if !equal(lhs, rhs) => self.out.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn maps(
        &mut self,
        view: MapView<'_>,
        lhs: Option<&Map<String, Value>>,
        rhs: Option<&Map<String, Value>>,
    ) {
        for (key, lhs, rhs) in zip_keys(lhs, rhs) {
            self.path.push(PathElement::field(key));
            self.value(view.value_of(key).unwrap_or(&RAW), lhs, rhs);
            self.path.pop();
        }
    }

    fn lists(&mut self, view: ListView<'_>, lhs: &[Value], rhs: &[Value]) {
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
        for (element, (left, right)) in items {
            self.path.push(element);
            self.item(view.item(), &left, &right);
            self.path.pop();
        }
    }

    /// Items with the same key: normally one on each side; several are compared as one value.
    fn item(&mut self, node: &Node, left: &[&Value], right: &[&Value]) {
        match (left, right) {
            ([] | [_], [] | [_]) => self.value(node, left.first().copied(), right.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r));
                if !same {
                    self.out.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                self.value(node, None, right.first().copied());
                self.out.removed.insert(&self.path);
            }
            (_, _) => {
                self.value(node, left.first().copied(), None);
                self.out.added.insert(&self.path);
            }
        }
    }
}
