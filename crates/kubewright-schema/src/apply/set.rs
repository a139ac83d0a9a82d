//! Sets of field paths: what a manager owns, what a write changed.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::path::{ElementError, PathElement};
use crate::{Kind, Node};

/// A set of paths into an object, kept as a sorted tree.
///
/// A path may be a member itself, have members below it, or both: `{"f:a": {".": {}, "f:b": {}}}` holds `.a` and
/// `.a.b`. No entry is void, so equal sets have equal trees.
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
    fn is_void(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of paths made of field names, such as `["metadata", "labels"]`.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::field(*name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path; the empty path stands for the whole object, which nobody owns.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.entry(last).member = true,
            [first, rest @ ..] => self.entry(first).below.insert(rest),
        }
    }

    /// Whether the path is a member.
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

    /// The members below an element.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.find(element).map(|at| &self.entries[at].below).filter(|set| !set.is_empty())
    }

    /// Calls `f` with every path: the members of a level first, then what lies below each of them.
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

    /// Whether a field of this level is a member, and what lies below it.
    pub(super) fn field(&self, name: &str) -> Option<(bool, &Self)> {
        let is_named = |e: &&Entry| matches!(&e.element, PathElement::Field(field) if **field == *name);
        self.entries.iter().find(is_named).map(|e| (e.member, &e.below))
    }

    /// The elements of this level, with whether each is a member and what lies below it.
    pub(super) fn level(&self) -> impl Iterator<Item = (&PathElement, bool, &Self)> {
        self.entries.iter().map(|e| (&e.element, e.member, &e.below))
    }

    fn find(&self, element: &PathElement) -> Option<usize> {
        self.entries.binary_search_by(|e| e.element.cmp(element)).ok()
    }

    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        // Values are walked in order, so the place is nearly always the last or a new last one.
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

    /// Everything in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.clone().into_union(other.clone())
    }

    /// Everything in both sets.
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
            entries.extend(Some(both).filter(|entry| !entry.is_void()));
        }
        Self { entries }
    }

    /// Everything in this set that is not a member of the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.clone().into_difference(other)
    }

    /// Like [`FieldSet::difference`], and a member of the other also takes away everything below it.
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

    /// Takes something away from every entry that the other set has too.
    fn without(mut self, other: &Self, take: impl Fn(&mut Entry, &Entry)) -> Self {
        if self.is_empty() || other.is_empty() {
            return self;
        }
        let mut others = other.entries.iter().peekable();
        self.entries.retain_mut(|entry| {
            while others.next_if(|other| other.element < entry.element).is_some() {}
            if let Some(other) = others.next_if(|other| other.element == entry.element) {
                take(entry, other);
            }
            !entry.is_void()
        });
        self
    }

    /// What lies on or below one of the paths, whose steps are field names or `*` for any element.
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
            !entry.is_void()
        });
        self
    }

    /// Appends an entry that comes after all others; void ones are passed over.
    pub(super) fn push(&mut self, element: PathElement, member: bool, below: Self) {
        let entry = Entry { element, member, below };
        if !entry.is_void() {
            self.entries.push(entry);
        }
    }

    /// The set with every named field on the way to a member made a member itself. Apply removes fields by it: a
    /// struct field that is only passed through goes when everything in it goes.
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

    /// Reads `fieldsV1`. Keys of an unknown kind are passed over, as a newer server may have written them.
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

    /// Writes `fieldsV1`.
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
    fn membership_and_what_lies_below_are_separate() {
        let s = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}));
        let field = PathElement::field;
        assert!(s.has(&[field("a")]) && s.has(&[field("a"), field("b")]) && s.has(&[field("c"), field("d")]));
        assert!(!s.has(&[field("c")]) && !s.has(&[]) && !s.has(&[field("a"), field("x")]));
    }

    #[test]
    fn a_member_taken_away_leaves_what_lies_below_it() {
        let s = set(&json!({"f:a": {".": {}, "f:b": {}}}));
        assert_eq!(s.difference(&set(&json!({"f:a": {}}))), set(&json!({"f:a": {"f:b": {}}})));
        assert_eq!(s.recursive_difference(&set(&json!({"f:a": {}}))), FieldSet::new());
        assert_eq!(s.difference(&s), FieldSet::new());
    }

    #[test]
    fn unknown_key_kinds_are_skipped_and_broken_ones_refused() {
        assert_eq!(set(&json!({"z:1": {"f:a": {}}, "f:b": {}})), set(&json!({"f:b": {}})));
        assert!(FieldSet::from_fields_v1(&json!({"k:x": {}})).is_err());
    }

    #[test]
    fn paths_come_members_first() {
        let mut seen = Vec::new();
        set(&json!({"f:a": {"f:x": {}}, "f:b": {}})).for_each(&mut |p| {
            seen.push(p.iter().map(ToString::to_string).collect::<String>());
        });
        assert_eq!(seen, [".b", ".a.x"]);
    }
}
