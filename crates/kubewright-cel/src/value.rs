//! Values: JSON interpreted by its declared type, and results of functions.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, sync::Arc};

use base64::Engine;
use serde_json::{Map, Value};

use super::{
    decl::{Decl, DeclKind, ListKind},
    functions::{
        authz::Authz,
        net::{Cidr, Ip, Url},
        numbers::{Quantity, Semver},
        time,
    },
};

#[derive(Debug, Clone)]
pub(super) enum Val<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'v, str>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    /// Nanoseconds since the epoch.
    Timestamp(i128),
    List(Arc<Vec<Self>>),
    Map(Arc<Vec<(Self, Self)>>),
    JsonList(&'v [Value], &'v Decl, &'v ListKind),
    JsonMap(&'v Map<String, Value>, &'v Decl),
    JsonObject(&'v Map<String, Value>, &'v BTreeMap<String, (String, Arc<Decl>)>),
    Optional(Option<Box<Self>>),
    Type(&'static str),
    Url(Arc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    Quantity(Quantity),
    Semver(Arc<Semver>),
    Format(&'static str),
    /// `authorizer` and its checks.
    Authz(Arc<Authz<'v>>),
    /// The variables of a policy, evaluated on first use.
    Variables,
}

/// Converts JSON by its declared type; a value that does not match keeps its JSON type.
pub(super) fn from_json<'v>(value: &'v Value, decl: &'v Decl) -> Val<'v> {
    match (&decl.kind, value) {
        (_, Value::Bool(flag)) => Val::Bool(*flag),
        (DeclKind::Double, Value::Number(number)) => Val::Double(number.as_f64().unwrap_or_default()),
        (DeclKind::Int, Value::Number(number)) => {
            let whole = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9.2e18);
            #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
            number.as_i64().or_else(|| whole.map(|f| f as i64)).map_or(Val::Double(f64::NAN), Val::Int)
        }
        (_, Value::Number(number)) => {
            number.as_i64().map_or_else(|| Val::Double(number.as_f64().unwrap_or_default()), Val::Int)
        }
        (DeclKind::Bytes, Value::String(text)) => {
            Val::Bytes(base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default().into())
        }
        (DeclKind::Duration, Value::String(text)) => time::duration(text).map_or(Val::Null, Val::Duration),
        (DeclKind::Timestamp(true), Value::String(text)) => {
            time::timestamp(&format!("{text}T00:00:00Z")).map_or(Val::Null, Val::Timestamp)
        }
        (DeclKind::Timestamp(false), Value::String(text)) => {
            time::timestamp(text).map_or(Val::Null, Val::Timestamp)
        }
        (_, Value::String(text)) => Val::String(Cow::Borrowed(text)),
        (DeclKind::List(elem, kind), Value::Array(items)) => Val::JsonList(items, elem, kind),
        (DeclKind::Map(value), Value::Object(map)) => Val::JsonMap(map, value),
        // Dynamic values have their JSON type.
        (DeclKind::Dyn, Value::Array(items)) => Val::JsonList(items, decl, &ListKind::Atomic),
        (DeclKind::Dyn, Value::Object(map)) => Val::JsonMap(map, decl),
        (DeclKind::Object(fields), Value::Object(map)) => Val::JsonObject(map, fields),
        _ => Val::Null,
    }
}

impl Val<'_> {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::String(Cow::Owned(text.into()))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(items))
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Box::new(value)))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) | Self::JsonList(..) => "list",
            Self::Map(_) | Self::JsonMap(..) => "map",
            Self::JsonObject(..) => "object",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authz(authz) => authz.type_name(),
            Self::Variables => "kubernetes.variables",
        }
    }

    /// Converts to JSON, if possible.
    pub(super) fn to_json(&self) -> Option<Value> {
        Some(match self {
            Self::Null | Self::Optional(None) => Value::Null,
            Self::Bool(flag) => (*flag).into(),
            Self::Int(n) => (*n).into(),
            Self::Uint(n) => (*n).into(),
            Self::Double(f) => serde_json::Number::from_f64(*f).map_or(Value::Null, Value::Number),
            Self::String(text) => Value::String(text.to_string()),
            Self::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
            Self::JsonList(items, ..) => Value::Array(items.to_vec()),
            Self::JsonMap(map, _) | Self::JsonObject(map, _) => Value::Object((*map).clone()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_json).collect::<Option<_>>()?),
            Self::Map(entries) => {
                let entry = |(key, value): &(Self, Self)| match key {
                    Self::String(key) => Some((key.to_string(), value.to_json()?)),
                    _ => None,
                };
                Value::Object(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Self::Optional(Some(value)) => value.to_json()?,
            _ => return None,
        })
    }

    /// Returns the elements of a list.
    pub(super) fn items(&self) -> Option<Cow<'_, [Self]>> {
        match self {
            Self::List(items) => Some(Cow::Borrowed(items)),
            Self::JsonList(items, elem, _) => Some(items.iter().map(|item| from_json(item, elem)).collect()),
            _ => None,
        }
    }

    /// Returns the entries of a map, in key order.
    pub(super) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some(entries.to_vec()),
            Self::JsonMap(map, value) => Some(
                map.iter()
                    .map(|(key, item)| (Self::String(Cow::Borrowed(key)), from_json(item, value)))
                    .collect(),
            ),
            _ => None,
        }
    }

    /// Returns the number of characters, elements or entries.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len(),
            Self::JsonList(items, ..) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::JsonMap(map, _) => map.len(),
            _ => return None,
        })
    }

    /// Returns the value of a key or field.
    pub(super) fn get(&self, key: &Self) -> Option<Self> {
        match (self, key) {
            (Self::JsonMap(map, value), Self::String(key)) => {
                map.get(&**key).map(|found| from_json(found, value))
            }
            (Self::Map(entries), key) => {
                entries.iter().find(|(known, _)| known.equals(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    /// Returns a field of an object by its identifier, or an entry of a map by its key.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::JsonObject(map, fields) => {
                let (real, decl) = fields.get(name)?;
                map.get(real).map(|found| from_json(found, decl))
            }
            other => other.get(&Self::text(name)),
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
            ) => self.compare(other) == Some(Ordering::Equal),
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Type(a), Self::Type(b)) | (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::JsonObject(a, fields), Self::JsonObject(b, others)) => {
                let known = fields.values().chain(others.values());
                known.into_iter().all(|(name, _)| a.get(name) == b.get(name))
            }
            (Self::JsonList(a, _, ListKind::Set | ListKind::Map(_)), Self::JsonList(b, ..)) => {
                a.len() == b.len() && a.iter().all(|item| b.contains(item))
            }
            (Self::JsonMap(a, _), Self::JsonMap(b, _)) => a == b,
            (a, b) => match (a.items(), b.items(), a.entries(), b.entries()) {
                (Some(a), Some(b), ..) => {
                    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
                }
                (_, _, Some(a), Some(_)) => {
                    Some(a.len()) == b.size()
                        && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| other.equals(value)))
                }
                _ => false,
            },
        }
    }

    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) | (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Double(_), Self::Double(_) | Self::Int(_) | Self::Uint(_))
            | (Self::Int(_) | Self::Uint(_), Self::Double(_)) => self.as_f64()?.partial_cmp(&other.as_f64()?),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as the language compares numbers")]
    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Uint(n) => Some(*n as f64),
            Self::Double(f) => Some(*f),
            _ => None,
        }
    }
}
