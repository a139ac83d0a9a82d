//! Sets of field paths, such as the fields a manager owns or a write changed.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::path::{ElementError, PathElement};
use crate::{Kind, Node};

/// Set of paths into an object, stored as a sorted tree.
///
/// A path may be a member itself, have members below it, or both: `{"f:a": {".": {}, "f:b": {}}}` contains
/// `.a` and `.a.b`. There are no empty entries, so equal sets have equal trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    element: PathElement,
    member: bool,
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a set of paths of field names, such as `["metadata", "labels"]`.
    pub fn from_field_names<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::field(*name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Returns whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path; the empty path means the whole object, which has no owner.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.entry(last).member = true,
            [first, rest @ ..] => self.entry(first).below.insert(rest),
        }
    }

    /// Returns whether the path is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_element(last),
            [first, rest @ ..] => self.below(first).is_some_and(|set| set.has(rest)),
        }
    }

    pub(super) fn has_element(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|at| self.entries[at].member)
    }

    /// Returns the members below an element.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.find(element).map(|at| &self.entries[at].below).filter(|set| !set.is_empty())
    }

    /// Calls `f` with every path: the members of a level first, then the paths below each of them.
    pub fn for_each(&self, f: &mut dyn FnMut(&[PathElement])) {
        self.walk(&mut Vec::new(), f);
    }

    fn walk(&self, prefix: &mut Vec<PathElement>, f: &mut dyn FnMut(&[PathElement])) {
        for entry in self.entries.iter().filter(|e| e.member) {
            prefix.push(entry.element.clone());
            f(prefix);
            prefix.pop();
        }
        for entry in self.entries.iter().filter(|e| !e.below.is_empty()) {
            prefix.push(entry.element.clone());
            entry.below.walk(prefix, f);
            prefix.pop();
        }
    }

    /// Returns whether a field of this level is a member, and the paths below it.
    pub(super) fn field(&self, name: &str) -> Option<(bool, &Self)> {
        let is_named = |e: &&Entry| matches!(&e.element, PathElement::Field(field) if **field == *name);
        self.entries.iter().find(is_named).map(|e| (e.member, &e.below))
    }

    /// Returns the elements of this level, with whether each is a member and the paths below it.
    pub(super) fn level(&self) -> impl Iterator<Item = (&PathElement, bool, &Self)> {
        self.entries.iter().map(|e| (&e.element, e.member, &e.below))
    }

    fn find(&self, element: &PathElement) -> Option<usize> {
        self.entries.binary_search_by(|e| e.element.cmp(element)).ok()
    }

    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        // Values are visited in order, so it is nearly always the last entry or a new one after it.
        let at = match self.entries.last().map(|last| last.element.cmp(element)) {
            None | Some(Ordering::Less) => Err(self.entries.len()),
            Some(Ordering::Equal) => Ok(self.entries.len() - 1),
            Some(Ordering::Greater) => self.entries.binary_search_by(|e| e.element.cmp(element)),
        };
        let at = at.unwrap_or_else(|at| {
            self.entries.insert(at, Entry { element: element.clone(), member: false, below: Self::new() });
            at
        });
        &mut self.entries[at]
    }

    /// Returns the paths in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.clone().into_union(other.clone())
    }

    /// Returns the paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut entries = Vec::new();
        let mut others = other.entries.iter().peekable();
        for entry in &self.entries {
            while others.next_if(|other| other.element < entry.element).is_some() {}
            let Some(other) = others.next_if(|other| other.element == entry.element) else { continue };
            let both = Entry {
                element: entry.element.clone(),
                member: entry.member && other.member,
                below: entry.below.intersection(&other.below),
            };
            entries.extend(Some(both).filter(|entry| !entry.is_empty()));
        }
        Self { entries }
    }

    /// Returns the paths in this set that are not members of the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.clone().into_difference(other)
    }

    /// Like [`FieldSet::difference`], but a member of the other set also removes all paths below it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.clone().into_recursive_difference(other)
    }

    pub(super) fn into_union(self, other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut entries = Vec::with_capacity(self.entries.len() + other.entries.len());
        let mut others = other.entries.into_iter().peekable();
        for mut entry in self.entries {
            while let Some(other) = others.next_if(|other| other.element < entry.element) {
                entries.push(other);
            }
            if let Some(other) = others.next_if(|other| other.element == entry.element) {
                entry.member |= other.member;
                entry.below = entry.below.into_union(other.below);
            }
            entries.push(entry);
        }
        entries.extend(others);
        Self { entries }
    }

    pub(super) fn into_difference(self, other: &Self) -> Self {
        self.without(other, |entry, other| {
            entry.member &= !other.member;
            entry.below = std::mem::take(&mut entry.below).into_difference(&other.below);
        })
    }

    pub(super) fn into_recursive_difference(self, other: &Self) -> Self {
        self.without(other, |entry, other| {
            if other.member {
                entry.member = false;
                entry.below = Self::new();
            } else {
                entry.below = std::mem::take(&mut entry.below).into_recursive_difference(&other.below);
            }
        })
    }

    /// Applies `remove` to every entry that the other set has too.
    fn without(mut self, other: &Self, remove: impl Fn(&mut Entry, &Entry)) -> Self {
        if self.is_empty() || other.is_empty() {
            return self;
        }
        let mut others = other.entries.iter().peekable();
        self.entries.retain_mut(|entry| {
            while others.next_if(|other| other.element < entry.element).is_some() {}
            if let Some(other) = others.next_if(|other| other.element == entry.element) {
                remove(entry, other);
            }
            !entry.is_empty()
        });
        self
    }

    /// Keeps the paths at or below the given ones, whose steps are field names or `*` for any element.
    pub(super) fn keep_only(mut self, paths: &[&[&str]]) -> Self {
        if paths.iter().any(|path| path.is_empty()) {
            return self;
        }
        self.entries.retain_mut(|entry| {
            let matches = |step: &str| {
                step == "*" || matches!(&entry.element, PathElement::Field(name) if **name == *step)
            };
            let tails: Vec<&[&str]> = paths
                .iter()
                .filter_map(|path| path.split_first().filter(|(step, _)| matches(step)).map(|(_, tail)| tail))
                .collect();
            if tails.is_empty() {
                return false;
            }
            entry.below = std::mem::take(&mut entry.below).keep_only(&tails);
            !entry.is_empty()
        });
        self
    }

    /// Appends an entry that sorts after all others; empty ones are dropped.
    pub(super) fn push(&mut self, element: PathElement, member: bool, below: Self) {
        let entry = Entry { element, member, below };
        if !entry.is_empty() {
            self.entries.push(entry);
        }
    }

    /// Returns the set with every named field on the path to a member added. Apply removes fields with it: a
    /// struct field that is only an ancestor is removed if everything in it is.
    #[must_use]
    pub fn with_named_fields(&self, node: Option<&Node>) -> Self {
        let entries = self
            .entries
            .iter()
            .map(|entry| {
                let (named, below) = match (node.map(|n| &n.kind), &entry.element) {
                    (Some(Kind::Object(object)), PathElement::Field(name)) => {
                        (object.field(name).is_some(), object.value_of(name))
                    }
                    (Some(Kind::List(list)), PathElement::Key(_)) => (false, Some(list.item.node())),
                    _ => (false, None),
                };
                Entry {
                    element: entry.element.clone(),
                    member: entry.member || (named && !entry.below.is_empty()),
                    below: entry.below.with_named_fields(below),
                }
            })
            .collect();
        Self { entries }
    }

    /// Decodes `fieldsV1`. Keys of unknown types are skipped, as a newer server may have written them.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, ElementError> {
        let mut set = Self::new();
        let Value::Object(fields) = fields else { return Ok(set) };
        for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
            let element = match PathElement::parse(key) {
                Err(ElementError::UnknownType) => continue,
                element => element?,
            };
            let below = Self::from_fields_v1(value)?;
            let member = below.is_empty() || value.get(".").is_some();
            let entry = set.entry(&element);
            entry.member |= member;
            entry.below = entry.below.union(&below);
        }
        Ok(set)
    }

    /// Encodes as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.write_level(false))
    }

    fn write_level(&self, itself: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if itself && !self.is_empty() {
            out.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for entry in &self.entries {
            out.insert(entry.element.to_key(), Value::Object(entry.below.write_level(entry.member)));
        }
        out
    }
}

impl<P: AsRef<[PathElement]>> FromIterator<P> for FieldSet {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.as_ref());
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::from_fields_v1(fields).unwrap()
    }

    #[test]
    fn membership_of_a_path_and_of_paths_below_it_are_separate() {
        let s = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}));
        let field = PathElement::field;
        assert!(s.has(&[field("a")]) && s.has(&[field("a"), field("b")]) && s.has(&[field("c"), field("d")]));
        assert!(!s.has(&[field("c")]) && !s.has(&[]) && !s.has(&[field("a"), field("x")]));
    }

    #[test]
    fn removing_a_member_keeps_the_paths_below_it() {
        let s = set(&json!({"f:a": {".": {}, "f:b": {}}}));
        assert_eq!(s.difference(&set(&json!({"f:a": {}}))), set(&json!({"f:a": {"f:b": {}}})));
        assert_eq!(s.recursive_difference(&set(&json!({"f:a": {}}))), FieldSet::new());
        assert_eq!(s.difference(&s), FieldSet::new());
    }

    #[test]
    fn unknown_key_types_are_skipped_and_malformed_ones_rejected() {
        assert_eq!(set(&json!({"z:1": {"f:a": {}}, "f:b": {}})), set(&json!({"f:b": {}})));
        assert!(FieldSet::from_fields_v1(&json!({"k:x": {}})).is_err());
    }

    #[test]
    fn for_each_visits_members_of_a_level_first() {
        let mut seen = Vec::new();
        set(&json!({"f:a": {"f:x": {}}, "f:b": {}})).for_each(&mut |p| {
            seen.push(p.iter().map(ToString::to_string).collect::<String>());
        });
        assert_eq!(seen, [".b", ".a.x"]);
    }
}
