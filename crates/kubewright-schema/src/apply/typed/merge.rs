//! Merge of a live object and an applied configuration. The configuration wins; items of associative lists
//! take its order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, as_list, as_map, atom, zip_keys};
use crate::{Node, apply::path::PathElement};

/// Merges `rhs` into `lhs`; both must match the schema.
pub(crate) fn merge(node: &Node, lhs: &Value, rhs: &Value) -> Value {
    either(node, Some(lhs), Some(rhs)).unwrap_or(Value::Null)
}

fn either(node: &Node, lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
    match atom(node, rhs.or(lhs)) {
        Atom::Scalar(_) => rhs.or(lhs).cloned(),
        Atom::List(view) => lists(view, lhs, rhs),
        Atom::Map(view) => maps(view, lhs, rhs),
    }
}

fn maps(view: MapView<'_>, lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
    let (left, right) = (as_map(lhs), as_map(rhs));
    // If both are empty or null, the distinction between the two is kept.
    let both_empty = left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty);
    if view.is_atomic() || both_empty {
        return rhs.or(lhs).cloned();
    }
    let out: Map<_, _> = zip_keys(left, right)
        .filter_map(|(key, lhs, rhs)| {
            let merged = match view.value_of(key) {
                Some(node) => either(node, lhs, rhs),
                None => rhs.or(lhs).cloned(),
            };
            Some((key.to_owned(), merged?))
        })
        .collect();
    (!out.is_empty()).then_some(Value::Object(out))
}

fn lists(view: ListView<'_>, lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
    let (left, right) = (as_list(lhs).unwrap_or_default(), as_list(rhs).unwrap_or_default());
    if view.is_atomic() || (left.is_empty() && right.is_empty()) {
        return rhs.or(lhs).cloned();
    }
    let out = Interleave::new(view, left, right).run();
    (!out.is_empty()).then_some(Value::Array(out))
}

/// Interleaving of two lists. Items in both have the order of the right list; items only in the left one keep
/// their position between them.
struct Interleave<'a> {
    view: ListView<'a>,
    left: Vec<(PathElement, &'a Value)>,
    right: Vec<(PathElement, &'a Value)>,
    /// The left item per element; `None` if it occurs more than once, because duplicates are not merged.
    in_left: BTreeMap<PathElement, Option<&'a Value>>,
    in_right: BTreeMap<PathElement, &'a Value>,
}

impl<'a> Interleave<'a> {
    fn new(view: ListView<'a>, left: &'a [Value], right: &'a [Value]) -> Self {
        let index = |items: &'a [Value]| -> Vec<_> {
            items.iter().filter_map(|item| Some((view.element(item).ok()?, item))).collect()
        };
        let (left, right) = (index(left), index(right));
        let mut in_left = BTreeMap::new();
        for (element, item) in &left {
            in_left.entry(element.clone()).and_modify(|seen| *seen = None).or_insert(Some(*item));
        }
        let in_right = right.iter().map(|(element, item)| (element.clone(), *item)).collect();
        Self { view, left, right, in_left, in_right }
    }

    fn run(&self) -> Vec<Value> {
        let mut shared =
            self.right.iter().map(|(element, _)| element).filter(|e| self.in_left.contains_key(*e));
        let mut next_shared = shared.next();
        let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
        let mut out = Vec::with_capacity(self.left.len().max(self.right.len()));
        let (mut l, mut r) = (0, 0);
        while l < self.left.len() || r < self.right.len() {
            if let (Some((left, _)), Some((right, _))) = (self.left.get(l), self.right.get(r)) {
                if left == right {
                    merged.insert(right);
                    out.extend(self.merge_item(right));
                    (l, r) = (l + 1, r + 1);
                    next_shared = shared.next();
                    continue;
                }
                if self.in_right.contains_key(left) && next_shared.is_some_and(|next| next != left) {
                    // In both lists: it is emitted at its position in the right list.
                    l += 1;
                    continue;
                }
            }
            if let Some((element, item)) = self.left.get(l) {
                if !self.in_right.contains_key(element) {
                    out.extend(either(self.view.item(), Some(item), None));
                    l += 1;
                    continue;
                }
                if merged.contains(element) {
                    l += 1;
                }
            }
            if let Some((element, _)) = self.right.get(r) {
                merged.insert(element);
                out.extend(self.merge_item(element));
                r += 1;
                if next_shared == Some(element) {
                    next_shared = shared.next();
                }
            }
        }
        out
    }

    fn merge_item(&self, element: &PathElement) -> Option<Value> {
        let left = self.in_left.get(element).copied().flatten();
        either(self.view.item(), left, self.in_right.get(element).copied())
    }
}
