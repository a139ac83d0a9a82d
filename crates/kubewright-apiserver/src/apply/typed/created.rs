//! What does the creator of an object own?
//!
//! The same question as [`compare`](super::compare) answers, for the commonest case: there is nothing yet but what Go
//! makes of nothing, and nobody to take fields from. One walk checks the object, finds the fields and writes them down
//! as `fieldsV1`, without a set in between. Whatever is unusual (items that share a key, values that do not fit) is left
//! to the long way.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, atom, validate::scalar_problem};
use crate::{
    apply::{path::equal, set::FieldSet},
    schema::{ListType, Node, go},
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

type Fields = Map<String, Value>;

/// The fields of `new` that `empty` does not have, as `fieldsV1`.
pub(crate) fn created(
    node: &Node,
    empty: &Value,
    new: &Value,
    except: Except<'_>,
) -> Result<Fields, Unusual> {
    value(node, Some(empty), new, except).map(|owned| owned.below)
}

/// Whether a value is owned itself, and what is owned inside it.
struct Owned {
    itself: bool,
    below: Fields,
}

fn value(node: &Node, lhs: Option<&Value>, rhs: &Value, except: Except<'_>) -> Result<Owned, Unusual> {
    let leaf = || Owned { itself: lhs.is_none_or(|lhs| !equal(lhs, rhs)), below: Fields::new() };
    let was_empty = lhs.is_none_or(is_empty);
    if rhs.is_null() {
        return if was_empty { Ok(leaf()) } else { Err(Unusual) };
    }
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
            let below = members(view, lhs.and_then(Value::as_object), map, except)?;
            Ok(Owned { itself: lhs.is_none(), below })
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
            Ok(Owned { itself: lhs.is_none(), below: elements(view, items)? })
        }
        _ => Err(Unusual),
    }
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
) -> Result<Fields, Unusual> {
    let mut out = Fields::new();
    for (key, rhs) in rhs {
        let node = view.value_of(key).ok_or(Unusual)?;
        let lhs = lhs.and_then(|lhs| lhs.get(key));
        if Except::has(except.reset, key) {
            fitting(node, rhs)?;
            continue;
        }
        let mut owned = value(node, lhs, rhs, except.below(key))?;
        owned.itself &= !Except::has(except.stripped, key);
        put(&mut out, || format!("f:{key}"), owned);
    }
    Ok(out)
}

fn elements(view: ListView<'_>, items: &[Value]) -> Result<Fields, Unusual> {
    let ListView::Typed(list) = view else { return Err(Unusual) };
    let mut out = Fields::new();
    for item in items {
        let key = match &list.list_type {
            ListType::Map(keys) => keyed(keys, view.item(), item)?,
            ListType::Set if !(item.is_object() || item.is_array() || item.is_null()) => {
                format!("v:{}", go::json(item))
            }
            _ => return Err(Unusual),
        };
        if out.contains_key(&key) {
            return Err(Unusual);
        }
        put(&mut out, || key, value(view.item(), None, item, Except::default())?);
    }
    Ok(out)
}

/// `k:{"name":"c"}`
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
    let mut out = String::from("k:");
    for (n, (key, value)) in found.into_iter().enumerate() {
        // A definition may name its fields as it likes; such names are spelled elsewhere.
        if !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
            return Err(Unusual);
        }
        let before = if n == 0 { '{' } else { ',' };
        // Writing into a string cannot fail.
        let _ = write!(out, "{before}\"{key}\":{}", go::json(value));
    }
    out.push('}');
    Ok(out)
}

fn put(out: &mut Fields, key: impl FnOnce() -> String, owned: Owned) {
    let Owned { itself, mut below } = owned;
    if !below.is_empty() && itself {
        below.insert(".".to_owned(), Value::Object(Map::new()));
    }
    if itself || !below.is_empty() {
        out.insert(key(), Value::Object(below));
    }
}
