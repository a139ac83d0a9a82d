//! Fields owned by the creator of an object.
//!
//! A fast path for the result of [`compare`](super::compare) in the most common case: the object is compared
//! with an empty one and there are no other managers. One pass validates the object, finds the fields and
//! writes the text of `fieldsV1`, without building a set or a tree. Unusual objects (items with equal keys,
//! values that do not match the schema) are left to the comparison.

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, atom, validate::scalar_problem};
use crate::{
    ListType, Node,
    apply::{path::equal, set::FieldSet},
    go,
};

/// Fields that the creator does not own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Excluded<'a> {
    /// Excludes these and all paths below them.
    pub(crate) reset: Option<&'a FieldSet>,
    /// Excludes only these themselves.
    pub(crate) stripped: Option<&'a FieldSet>,
}

impl<'a> Excluded<'a> {
    fn below(self, key: &str) -> Self {
        let below = |set: Option<&'a FieldSet>| set.and_then(|set| set.field(key)).map(|(_, below)| below);
        Self { reset: below(self.reset), stripped: below(self.stripped) }
    }

    fn has(set: Option<&FieldSet>, key: &str) -> bool {
        set.and_then(|set| set.field(key)).is_some_and(|(member, _)| member)
    }
}

/// Error for objects that need the full comparison.
#[derive(Debug)]
pub(crate) struct NeedsComparison;

/// Returns the fields of `new` that `empty` does not have, as the text of `fieldsV1`; `{}` if there are none.
pub(crate) fn created(
    node: &Node,
    empty: &Value,
    new: &Value,
    excluded: Excluded<'_>,
) -> Result<String, NeedsComparison> {
    let mut out = String::with_capacity(4096);
    out.push('{');
    value(node, Some(empty), new, excluded, true, &mut out)?;
    out.push('}');
    Ok(out)
}

/// Writes the fields owned within a value, without braces around them; returns whether the value itself is
/// owned, if `can_own`.
fn value(
    node: &Node,
    lhs: Option<&Value>,
    rhs: &Value,
    excluded: Excluded<'_>,
    can_own: bool,
    out: &mut String,
) -> Result<bool, NeedsComparison> {
    let leaf = || can_own && lhs.is_none_or(|lhs| !equal(lhs, rhs));
    let was_empty = lhs.is_none_or(is_empty);
    if rhs.is_null() {
        return if was_empty { Ok(leaf()) } else { Err(NeedsComparison) };
    }
    let itself = can_own && lhs.is_none();
    match (atom(node, Some(rhs)), rhs) {
        (Atom::Scalar(kind), rhs) if scalar_problem(kind, rhs).is_none() => Ok(leaf()),
        (Atom::Map(view), Value::Object(map)) => {
            if view.is_atomic() {
                return validate_value(node, rhs).map(|()| leaf());
            }
            // An untyped node takes the kind of its value, which can differ from that of `lhs`.
            if matches!(view, MapView::Open) && lhs.is_some() {
                return Err(NeedsComparison);
            }
            if map.is_empty() && was_empty {
                return Ok(leaf());
            }
            write_content(itself, out, |out| {
                members(view, lhs.and_then(Value::as_object), map, excluded, out)
            })
        }
        (Atom::List(view), Value::Array(items)) => {
            if view.is_atomic() {
                return validate_value(node, rhs).map(|()| leaf());
            }
            if !was_empty {
                return Err(NeedsComparison);
            }
            if items.is_empty() {
                return Ok(leaf());
            }
            write_content(itself, out, |out| elements(view, items, out))
        }
        _ => Err(NeedsComparison),
    }
}

/// Writes the owned content of a member. A member that is owned itself gets a dot, which sorts before all
/// keys.
fn write_content(
    itself: bool,
    out: &mut String,
    write: impl FnOnce(&mut String) -> Result<(), NeedsComparison>,
) -> Result<bool, NeedsComparison> {
    let start = out.len();
    if itself {
        out.push_str("\".\":{}");
    }
    let inside = out.len();
    write(out)?;
    if out.len() == inside {
        out.truncate(start);
    }
    Ok(itself)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

fn validate_value(node: &Node, value: &Value) -> Result<(), NeedsComparison> {
    super::validate(node, value, true).map_err(|_| NeedsComparison)
}

fn members(
    view: MapView<'_>,
    lhs: Option<&Map<String, Value>>,
    rhs: &Map<String, Value>,
    excluded: Excluded<'_>,
    out: &mut String,
) -> Result<(), NeedsComparison> {
    for (key, rhs) in rhs {
        let node = view.value_of(key).ok_or(NeedsComparison)?;
        let lhs = lhs.and_then(|lhs| lhs.get(key));
        if Excluded::has(excluded.reset, key) {
            validate_value(node, rhs)?;
            continue;
        }
        let can_own = !Excluded::has(excluded.stripped, key);
        write_member(out, "f:", key, |out| value(node, lhs, rhs, excluded.below(key), can_own, out))?;
    }
    Ok(())
}

fn elements(view: ListView<'_>, items: &[Value], out: &mut String) -> Result<(), NeedsComparison> {
    let ListView::Typed(list) = view else { return Err(NeedsComparison) };
    let mut keyed_items = Vec::with_capacity(items.len());
    for item in items {
        let key = match &list.list_type {
            ListType::Map(keys) => keyed(keys, view.item(), item)?,
            ListType::Set if !(item.is_object() || item.is_array() || item.is_null()) => {
                let mut key = String::new();
                push_value(&mut key, item);
                key
            }
            _ => return Err(NeedsComparison),
        };
        keyed_items.push((key, item));
    }
    keyed_items.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if keyed_items.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(NeedsComparison);
    }
    let kind = if matches!(list.list_type, ListType::Set) { "v:" } else { "k:" };
    for (key, item) in keyed_items {
        write_member(out, kind, &key, |out| value(view.item(), None, item, Excluded::default(), true, out))?;
    }
    Ok(())
}

/// Returns the keys as `{"name":"c"}`.
fn keyed(keys: &[Box<str>], node: &Node, item: &Value) -> Result<String, NeedsComparison> {
    let item = item.as_object().ok_or(NeedsComparison)?;
    let mut found: Vec<(&str, &Value)> = keys
        .iter()
        .filter_map(|key| {
            let default = || node.as_object()?.field(key)?.node.node().default.as_ref();
            Some((&**key, item.get(&**key).or_else(default)?))
        })
        .collect();
    if found.is_empty() {
        return Err(NeedsComparison);
    }
    found.sort_unstable_by_key(|(key, _)| *key);
    let mut out = String::new();
    for (n, (key, value)) in found.into_iter().enumerate() {
        // Field names of a CRD may need escaping, which the comparison does.
        if !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
            return Err(NeedsComparison);
        }
        out.push(if n == 0 { '{' } else { ',' });
        out.push('"');
        out.push_str(key);
        out.push_str("\":");
        push_value(&mut out, value);
    }
    out.push('}');
    Ok(out)
}

/// Writes a value like Go; most are names that need no escaping.
fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text)
            if text.bytes().all(|b| is_plain(b) && !matches!(b, b'<' | b'>' | b'&' | 0x80..)) =>
        {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        value => out.push_str(&go::json(value)),
    }
}

fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && !matches!(byte, b'"' | b'\\')
}

/// Writes a member, unless neither it nor anything in it is owned.
fn write_member(
    out: &mut String,
    kind: &str,
    key: &str,
    write: impl FnOnce(&mut String) -> Result<bool, NeedsComparison>,
) -> Result<(), NeedsComparison> {
    let start = out.len();
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(kind);
    push_escaped(out, key);
    out.push_str("\":{");
    let inside = out.len();
    if write(out)? || out.len() > inside {
        out.push('}');
    } else {
        out.truncate(start);
    }
    Ok(())
}

/// Writes the content of a JSON string. List keys contain quotes; other escapes are rare.
fn push_escaped(out: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < 0x20) {
        let quoted = Value::from(text).to_string();
        return out.push_str(&quoted[1..quoted.len() - 1]);
    }
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        out.push_str(&rest[..at]);
        out.push('\\');
        out.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
