//! What does the creator of an object own?
//!
//! The same question as [`compare`](super::compare) answers, for the commonest case: there is nothing yet but what Go
//! makes of nothing, and nobody to take fields from. One walk checks the object, finds the fields and writes them down
//! as the text of `fieldsV1`, without a set or a tree in between. Whatever is unusual (items that share a key, values that
//! do not fit) is left to the long way.

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, atom, validate::scalar_problem};
use crate::{
    ListType, Node,
    apply::{path::equal, set::FieldSet},
    go,
};

/// What nobody comes to own by a creation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Except<'a> {
    /// Not these, nor what lies below them.
    pub(crate) reset: Option<&'a FieldSet>,
    /// Not these themselves.
    pub(crate) stripped: Option<&'a FieldSet>,
}

impl<'a> Except<'a> {
    fn below(self, key: &str) -> Self {
        let below = |set: Option<&'a FieldSet>| set.and_then(|set| set.field(key)).map(|(_, below)| below);
        Self { reset: below(self.reset), stripped: below(self.stripped) }
    }

    fn has(set: Option<&FieldSet>, key: &str) -> bool {
        set.and_then(|set| set.field(key)).is_some_and(|(member, _)| member)
    }
}

/// The long way has to be gone.
#[derive(Debug)]
pub(crate) struct Unusual;

/// The fields of `new` that `empty` does not have, as the text of `fieldsV1`; `{}` when there are none.
pub(crate) fn created(
    node: &Node,
    empty: &Value,
    new: &Value,
    except: Except<'_>,
) -> Result<String, Unusual> {
    let mut out = String::with_capacity(4096);
    out.push('{');
    value(node, Some(empty), new, except, true, &mut out)?;
    out.push('}');
    Ok(out)
}

/// Writes what is owned inside a value, without braces around it; whether the value is owned itself, which `counts` or
/// not.
fn value(
    node: &Node,
    lhs: Option<&Value>,
    rhs: &Value,
    except: Except<'_>,
    counts: bool,
    out: &mut String,
) -> Result<bool, Unusual> {
    let leaf = || counts && lhs.is_none_or(|lhs| !equal(lhs, rhs));
    let was_empty = lhs.is_none_or(is_empty);
    if rhs.is_null() {
        return if was_empty { Ok(leaf()) } else { Err(Unusual) };
    }
    let itself = counts && lhs.is_none();
    match (atom(node, Some(rhs)), rhs) {
        (Atom::Scalar(kind), rhs) if scalar_problem(kind, rhs).is_none() => Ok(leaf()),
        (Atom::Map(view), Value::Object(map)) => {
            if view.is_atomic() {
                return fitting(node, rhs).map(|()| leaf());
            }
            // What is open takes the form of its value, and may take another one.
            if matches!(view, MapView::Open) && lhs.is_some() {
                return Err(Unusual);
            }
            if map.is_empty() && was_empty {
                return Ok(leaf());
            }
            below(itself, out, |out| members(view, lhs.and_then(Value::as_object), map, except, out))
        }
        (Atom::List(view), Value::Array(items)) => {
            if view.is_atomic() {
                return fitting(node, rhs).map(|()| leaf());
            }
            if !was_empty {
                return Err(Unusual);
            }
            if items.is_empty() {
                return Ok(leaf());
            }
            below(itself, out, |out| elements(view, items, out))
        }
        _ => Err(Unusual),
    }
}

/// What is owned together with something inside it has a dot among that, which sorts before everything else.
fn below(
    itself: bool,
    out: &mut String,
    write: impl FnOnce(&mut String) -> Result<(), Unusual>,
) -> Result<bool, Unusual> {
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

fn fitting(node: &Node, value: &Value) -> Result<(), Unusual> {
    super::validate(node, value, true).map_err(|_| Unusual)
}

fn members(
    view: MapView<'_>,
    lhs: Option<&Map<String, Value>>,
    rhs: &Map<String, Value>,
    except: Except<'_>,
    out: &mut String,
) -> Result<(), Unusual> {
    for (key, rhs) in rhs {
        let node = view.value_of(key).ok_or(Unusual)?;
        let lhs = lhs.and_then(|lhs| lhs.get(key));
        if Except::has(except.reset, key) {
            fitting(node, rhs)?;
            continue;
        }
        let counts = !Except::has(except.stripped, key);
        put(out, "f:", key, |out| value(node, lhs, rhs, except.below(key), counts, out))?;
    }
    Ok(())
}

fn elements(view: ListView<'_>, items: &[Value], out: &mut String) -> Result<(), Unusual> {
    let ListView::Typed(list) = view else { return Err(Unusual) };
    let mut keyed_items = Vec::with_capacity(items.len());
    for item in items {
        let key = match &list.list_type {
            ListType::Map(keys) => keyed(keys, view.item(), item)?,
            ListType::Set if !(item.is_object() || item.is_array() || item.is_null()) => {
                let mut key = String::new();
                push_value(&mut key, item);
                key
            }
            _ => return Err(Unusual),
        };
        keyed_items.push((key, item));
    }
    keyed_items.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if keyed_items.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(Unusual);
    }
    let kind = if matches!(list.list_type, ListType::Set) { "v:" } else { "k:" };
    for (key, item) in keyed_items {
        put(out, kind, &key, |out| value(view.item(), None, item, Except::default(), true, out))?;
    }
    Ok(())
}

/// `{"name":"c"}`
fn keyed(keys: &[Box<str>], node: &Node, item: &Value) -> Result<String, Unusual> {
    let item = item.as_object().ok_or(Unusual)?;
    let mut found: Vec<(&str, &Value)> = keys
        .iter()
        .filter_map(|key| {
            let default = || node.as_object()?.field(key)?.node.node().default.as_ref();
            Some((&**key, item.get(&**key).or_else(default)?))
        })
        .collect();
    if found.is_empty() {
        return Err(Unusual);
    }
    found.sort_unstable_by_key(|(key, _)| *key);
    let mut out = String::new();
    for (n, (key, value)) in found.into_iter().enumerate() {
        // A definition may name its fields as it likes; such names are spelled elsewhere.
        if !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
            return Err(Unusual);
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

/// The value as Go writes it; most are names, which are written as they are.
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

/// Writes a member, unless it turns out that neither it nor anything inside it is owned.
fn put(
    out: &mut String,
    kind: &str,
    key: &str,
    write: impl FnOnce(&mut String) -> Result<bool, Unusual>,
) -> Result<(), Unusual> {
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

/// What stands between the quotes of a JSON string. Keys of lists are full of quotes, and nothing else is usual.
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
