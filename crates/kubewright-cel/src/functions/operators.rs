//! Operators, conversions and optionals.

use std::{cmp::Ordering, sync::Arc};

use super::{super::eval::fail, EvalResult, time};
use crate::{
    decl::ListKind,
    value::{Val, from_json},
};
use kubewright_schema::go;

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    Some(match (function, args) {
        ("_==_", [a, b]) => Ok(Val::Bool(a.equals(b))),
        ("_!=_", [a, b]) => Ok(Val::Bool(!a.equals(b))),
        ("_<_", [a, b]) => compare(a, b, Ordering::is_lt),
        ("_<=_", [a, b]) => compare(a, b, Ordering::is_le),
        ("_>_", [a, b]) => compare(a, b, Ordering::is_gt),
        ("_>=_", [a, b]) => compare(a, b, Ordering::is_ge),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [a, b]) => arithmetic(function, a, b),
        ("!_", [Val::Bool(flag)]) => Ok(Val::Bool(!flag)),
        ("-_", [Val::Int(n)]) => n.checked_neg().map_or_else(overflow, |n| Ok(Val::Int(n))),
        ("-_", [Val::Double(f)]) => Ok(Val::Double(-f)),
        ("_[_]", [Val::Optional(inner), key]) => {
            Ok(Val::Optional(inner.as_ref().and_then(|inner| index(inner, key).ok()).map(Box::new)))
        }
        ("_[_]", [of, key]) => index(of, key),
        ("_[?_]", [Val::Optional(inner), key]) => {
            Ok(Val::Optional(inner.as_ref().and_then(|inner| index(inner, key).ok()).map(Box::new)))
        }
        ("_[?_]", [of, key]) => Ok(Val::Optional(index(of, key).ok().map(Box::new))),
        ("@in", [key, of]) => match of.items() {
            Some(items) => Ok(Val::Bool(items.iter().any(|item| item.equals(key)))),
            None => Ok(Val::Bool(of.get(key).is_some())),
        },
        ("size", [of]) => match of.size() {
            Some(size) => Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => fail("no such overload"),
        },
        ("type", [of]) => Ok(Val::Type(of.type_name())),
        ("dyn", [of]) => Ok(of.clone()),
        ("optional.of", [of]) => Ok(Val::some(of.clone())),
        ("optional.none", []) => Ok(Val::Optional(None)),
        ("optional.ofNonZeroValue", [of]) => Ok(Val::Optional((!is_zero(of)).then(|| Box::new(of.clone())))),
        ("hasValue", [Val::Optional(inner)]) => Ok(Val::Bool(inner.is_some())),
        ("value", [Val::Optional(inner)]) => match inner {
            Some(inner) => Ok((**inner).clone()),
            None => fail("optional.none() dereference"),
        },
        ("or", [Val::Optional(Some(_)), _]) => Ok(args[0].clone()),
        ("or", [Val::Optional(None), other]) => Ok(other.clone()),
        ("orValue", [Val::Optional(inner), other]) => {
            Ok(inner.as_ref().map_or_else(|| other.clone(), |inner| (**inner).clone()))
        }
        ("bool" | "int" | "uint" | "double" | "string" | "bytes", [of]) => return convert(function, of),
        _ => return None,
    })
}

fn overflow<T>() -> Result<T, super::CelError> {
    fail("integer overflow")
}

fn compare<'v>(a: &Val<'v>, b: &Val<'v>, ask: fn(Ordering) -> bool) -> EvalResult<'v> {
    match a.compare(b) {
        Some(order) => Ok(Val::Bool(ask(order))),
        None if matches!((a, b), (Val::Double(_), _) | (_, Val::Double(_))) => Ok(Val::Bool(false)),
        None => fail("no such overload"),
    }
}

fn index<'v>(of: &Val<'v>, key: &Val<'v>) -> EvalResult<'v> {
    if let Val::JsonObject(..) = of {
        return match key {
            Val::String(name) => of.field(name).map_or_else(|| fail(format!("no such key: {name}")), Ok),
            _ => fail("no such overload"),
        };
    }
    let Some(items) = of.items() else {
        return of.get(key).map_or_else(|| fail(format!("no such key: {}", display(key))), Ok);
    };
    match key {
        Val::Int(at) => match usize::try_from(*at).ok().and_then(|at| items.get(at)) {
            Some(item) => Ok(item.clone()),
            None => fail(format!("index out of bounds: {at}")),
        },
        _ => fail("no such overload"),
    }
}

fn arithmetic<'v>(operator: &str, a: &Val<'v>, b: &Val<'v>) -> EvalResult<'v> {
    match (operator, a, b) {
        ("_/_" | "_%_", Val::Int(_), Val::Int(0)) | ("_/_" | "_%_", Val::Uint(_), Val::Uint(0)) => {
            fail(if operator == "_/_" { "division by zero" } else { "modulus by zero" })
        }
        (_, Val::Int(a), Val::Int(b)) => match operator {
            "_+_" => a.checked_add(*b),
            "_-_" => a.checked_sub(*b),
            "_*_" => a.checked_mul(*b),
            "_/_" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map_or_else(overflow, |n| Ok(Val::Int(n))),
        (_, Val::Uint(a), Val::Uint(b)) => match operator {
            "_+_" => a.checked_add(*b),
            "_-_" => a.checked_sub(*b),
            "_*_" => a.checked_mul(*b),
            "_/_" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map_or_else(|| fail("unsigned integer overflow"), |n| Ok(Val::Uint(n))),
        (_, Val::Double(a), Val::Double(b)) => Ok(Val::Double(match operator {
            "_+_" => a + b,
            "_-_" => a - b,
            "_*_" => a * b,
            _ => a / b,
        })),
        ("_+_", Val::String(a), Val::String(b)) => Ok(Val::text(format!("{a}{b}"))),
        ("_+_", Val::Bytes(a), Val::Bytes(b)) => Ok(Val::Bytes([&a[..], &b[..]].concat().into())),
        ("_+_" | "_-_", Val::Duration(a), Val::Duration(b)) => {
            let sum = if operator == "_+_" { a.checked_add(*b) } else { a.checked_sub(*b) };
            sum.map_or_else(|| fail("duration overflow"), |sum| Ok(Val::Duration(sum)))
        }
        ("_+_", Val::Timestamp(a), Val::Duration(b)) | ("_+_", Val::Duration(b), Val::Timestamp(a)) => {
            Ok(Val::Timestamp(a + i128::from(*b)))
        }
        ("_-_", Val::Timestamp(a), Val::Duration(b)) => Ok(Val::Timestamp(a - i128::from(*b))),
        ("_-_", Val::Timestamp(a), Val::Timestamp(b)) => {
            i64::try_from(a - b).map_or_else(|_| fail("duration overflow"), |nanos| Ok(Val::Duration(nanos)))
        }
        ("_+_", Val::JsonList(first, elem, kind), Val::JsonList(second, ..))
            if **kind != ListKind::Atomic =>
        {
            Ok(Val::List(Arc::new(
                merge(first, second, kind).into_iter().map(|item| from_json(item, elem)).collect(),
            )))
        }
        ("_+_", a, b) => match (a.items(), b.items()) {
            (Some(a), Some(b)) => Ok(Val::list(a.iter().chain(b.iter()).cloned().collect())),
            _ => fail("no such overload"),
        },
        _ => fail("no such overload"),
    }
}

/// Concatenates: sets add new items, associative lists replace items with equal keys.
fn merge<'v>(
    first: &'v [serde_json::Value],
    second: &'v [serde_json::Value],
    kind: &ListKind,
) -> Vec<&'v serde_json::Value> {
    let mut out: Vec<_> = first.iter().collect();
    for item in second {
        let same = |old: &&serde_json::Value| match kind {
            ListKind::Map(keys) => keys.iter().all(|key| old.get(key) == item.get(key)),
            _ => *old == item,
        };
        match out.iter().position(same) {
            Some(at) => out[at] = item,
            None => out.push(item),
        }
    }
    out
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null
        | Val::Optional(None)
        | Val::Bool(false)
        | Val::Int(0)
        | Val::Uint(0)
        | Val::Duration(0) => true,
        Val::Double(f) => *f == 0.0,
        other => other.size() == Some(0),
    }
}

/// Formats a value for errors and `string()`.
pub(super) fn display(value: &Val<'_>) -> String {
    match value {
        Val::String(text) => text.to_string(),
        Val::Bool(flag) => flag.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(f) => go::float(*f),
        Val::Duration(nanos) => time::format_duration(*nanos),
        Val::Timestamp(nanos) => time::format_timestamp(*nanos),
        Val::Ip(ip) => ip.0.to_string(),
        Val::Cidr(cidr) => cidr.to_string(),
        Val::Quantity(quantity) => quantity.to_string(),
        Val::Type(name) => (*name).to_owned(),
        other => other.type_name().to_owned(),
    }
}

fn convert<'v>(to: &str, of: &Val<'v>) -> Option<EvalResult<'v>> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "in range"
    )]
    Some(match (to, of) {
        ("bool", Val::Bool(_))
        | ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::String(_))
        | ("bytes", Val::Bytes(_)) => Ok(of.clone()),
        ("bool", Val::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            other => fail(format!("strconv.ParseBool: parsing {}: invalid syntax", go::quote(other))),
        },
        ("int", Val::Uint(n)) => i64::try_from(*n).map_or_else(|_| overflow(), |n| Ok(Val::Int(n))),
        ("int", Val::Double(f)) if f.abs() < 9.2e18 => Ok(Val::Int(*f as i64)),
        ("uint", Val::Double(f)) if (0.0..1.8e19).contains(f) => Ok(Val::Uint(*f as u64)),
        ("int" | "uint", Val::Double(_)) => overflow(),
        ("int", Val::Timestamp(nanos)) => Ok(Val::Int(nanos.div_euclid(1_000_000_000) as i64)),
        ("int", Val::String(text)) => text.parse().map_or_else(
            |_| fail(format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(text))),
            |n| Ok(Val::Int(n)),
        ),
        ("uint", Val::Int(n)) => {
            u64::try_from(*n).map_or_else(|_| fail("unsigned integer overflow"), |n| Ok(Val::Uint(n)))
        }
        ("uint", Val::String(text)) => text.parse().map_or_else(
            |_| fail(format!("strconv.ParseUint: parsing {}: invalid syntax", go::quote(text))),
            |n| Ok(Val::Uint(n)),
        ),
        ("double", Val::Int(n)) => Ok(Val::Double(*n as f64)),
        ("double", Val::Uint(n)) => Ok(Val::Double(*n as f64)),
        ("double", Val::String(text)) => text.parse().map_or_else(
            |_| fail(format!("strconv.ParseFloat: parsing {}: invalid syntax", go::quote(text))),
            |f| Ok(Val::Double(f)),
        ),
        ("bytes", Val::String(text)) => Ok(Val::Bytes(text.as_bytes().into())),
        ("string", Val::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::text(text)),
            Err(_) => fail("invalid UTF-8 in bytes, cannot convert to string"),
        },
        ("string", other) => Ok(Val::text(display(other))),
        _ => return None,
    })
}
