//! Schema-directed operations on values that server-side apply consists of.
//!
//! | file | question |
//! |---|---|
//! | `validate` | does the value fit the schema, as apply demands of a configuration? |
//! | `fields` | which paths does a value have? |
//! | `merge` | live object + applied configuration = ? |
//! | `compare` | which paths were added, removed, changed? |
//! | `created` | the same of a new object, in one walk |
//! | `remove` | the value without these paths |
//! | `reconcile` | an owned set after its schema went from granular to atomic |

mod compare;
mod created;
mod fields;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::cmp::Ordering;

pub(super) use compare::{Comparison, compare};
pub(super) use created::{Excluded, created};
pub(super) use fields::field_set;
pub(super) use merge::merge;
pub(super) use reconcile::reconcile;
pub(super) use remove::remove;
use serde_json::{Map, Value};
pub(super) use validate::validate;

use super::path::{PathElement, Scalar as Key};
use crate::{
    Kind, List, ListType, Node, Object, Scalar,
    node::{ANY, RAW},
};

/// Kind of a node for a particular value: an untyped node takes the kind of the value.
#[derive(Clone, Copy)]
enum Atom<'n> {
    Scalar(ScalarKind),
    List(ListView<'n>),
    Map(MapView<'n>),
}

#[derive(Clone, Copy)]
enum ScalarKind {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy)]
enum ListView<'n> {
    Typed(&'n List),
    Untyped,
}

#[derive(Clone, Copy)]
enum MapView<'n> {
    Typed(&'n Object),
    /// Merged key by key.
    Open,
    /// One value.
    Raw,
}

/// Returns the atom of `node` for `value`; `null` matches every kind, and an untyped node then counts as a
/// map.
fn atom<'n>(node: &'n Node, value: Option<&Value>) -> Atom<'n> {
    let open = match &node.kind {
        Kind::Object(object) => return Atom::Map(MapView::Typed(object)),
        Kind::List(list) => return Atom::List(ListView::Typed(list)),
        Kind::Scalar(scalar) => return Atom::Scalar(scalar_kind(*scalar)),
        Kind::Any => MapView::Open,
        Kind::Raw => MapView::Raw,
    };
    match value {
        None | Some(Value::Null | Value::Object(_)) => Atom::Map(open),
        Some(Value::Array(_)) => Atom::List(ListView::Untyped),
        Some(_) => Atom::Scalar(ScalarKind::Untyped),
    }
}

fn scalar_kind(scalar: Scalar) -> ScalarKind {
    match scalar {
        Scalar::String | Scalar::Bytes => ScalarKind::String,
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => ScalarKind::Numeric,
        Scalar::Boolean => ScalarKind::Boolean,
        Scalar::Formatted | Scalar::Time | Scalar::MicroTime | Scalar::IntOrString | Scalar::Quantity => {
            ScalarKind::Untyped
        }
    }
}

impl<'n> ListView<'n> {
    fn is_atomic(self) -> bool {
        match self {
            Self::Typed(list) => list.list_type == ListType::Atomic,
            Self::Untyped => true,
        }
    }

    fn item(self) -> &'n Node {
        match self {
            Self::Typed(list) => list.item.node(),
            Self::Untyped => &RAW,
        }
    }

    /// Returns the path element of an item of a set or an associative list.
    fn element(self, item: &Value) -> Result<PathElement, String> {
        match self {
            Self::Typed(List { list_type: ListType::Map(keys), item: node }) => {
                keyed(keys, node.node(), item)
            }
            Self::Typed(List { list_type: ListType::Set, .. }) => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(PathElement::Value(Key(scalar.clone()))),
            },
            _ => Err("invalid indexing of non-associative list".into()),
        }
    }
}

fn keyed(keys: &[Box<str>], node: &Node, item: &Value) -> Result<PathElement, String> {
    let item = match item {
        Value::Object(item) => item,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut found: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            let default = || node.as_object()?.field(key)?.node.node().default.as_ref();
            let value = item.get(&**key).or_else(default)?;
            Some((key.clone(), Key(value.clone())))
        })
        .collect();
    if found.is_empty() && !keys.is_empty() {
        let names: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            names.join(" ")
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(found))
}

impl<'n> MapView<'n> {
    fn is_atomic(self) -> bool {
        match self {
            Self::Typed(object) => object.atomic,
            Self::Open => false,
            Self::Raw => true,
        }
    }

    /// Returns the schema of the value under a key; `None` if the key is not allowed.
    fn value_of(self, key: &str) -> Option<&'n Node> {
        match self {
            Self::Typed(object) => object.value_of(key),
            Self::Open => Some(&ANY),
            Self::Raw => Some(&RAW),
        }
    }

    fn is_named(self, key: &str) -> bool {
        matches!(self, Self::Typed(object) if object.field(key).is_some())
    }
}

fn as_map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn as_list(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

/// Key of two maps with its value in each.
type Pair<'v> = (&'v str, Option<&'v Value>, Option<&'v Value>);

/// Returns all keys of either map, in order.
fn zip_keys<'v>(
    lhs: Option<&'v Map<String, Value>>,
    rhs: Option<&'v Map<String, Value>>,
) -> impl Iterator<Item = Pair<'v>> {
    let mut left = lhs.into_iter().flatten().peekable();
    let mut right = rhs.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((l, _)), Some((r, _))) => l.cmp(r),
        };
        let lhs = if order.is_le() { left.next() } else { None };
        let rhs = if order.is_ge() { right.next() } else { None };
        let (key, _) = lhs.or(rhs)?;
        Some((key.as_str(), lhs.map(|(_, value)| value), rhs.map(|(_, value)| value)))
    })
}
