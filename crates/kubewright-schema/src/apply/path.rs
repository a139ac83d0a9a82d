//! Path elements: their order, display and encoding in `FieldsV1`.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use crate::go;

/// Step of a field path.
///
/// The order is that of `FieldsV1`: fields, then keyed items, then set items, then indexes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object or a key of a map: `f:name`.
    Field(Box<str>),
    /// An item of an associative list by its key fields, sorted by name: `k:{"name":"c"}`.
    Key(Vec<(Box<str>, Scalar)>),
    /// An item of a set by its value: `v:"x"`.
    Value(Scalar),
    /// An item by its position: `i:0`.
    Index(i64),
}

/// A JSON value with a total order in which `1` and `1.0` are equal.
#[derive(Debug, Clone)]
pub struct Scalar(pub Value);

/// Error decoding a key of `FieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementError {
    /// It is shorter than a type letter and a colon.
    #[error("key must be 2 characters long:")]
    TooShort,
    /// There is no colon after the type letter.
    #[error("missing colon: {0}")]
    NoColon(String),
    /// The type letter is unknown, perhaps of a newer version; such keys are skipped.
    #[error("unknown path element type")]
    UnknownType,
    /// The text after the colon does not match the type letter.
    #[error("{0:?} does not hold what its type letter says")]
    Malformed(String),
}

impl PathElement {
    /// Creates a field element.
    pub fn field(name: impl Into<Box<str>>) -> Self {
        Self::Field(name.into())
    }

    /// Decodes a key of `FieldsV1`.
    pub fn parse(text: &str) -> Result<Self, ElementError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(ElementError::TooShort);
        }
        if bytes[1] != b':' {
            return Err(ElementError::NoColon(text.to_owned()));
        }
        let malformed = || ElementError::Malformed(text.to_owned());
        let rest = text.get(2..).ok_or_else(malformed)?;
        match bytes[0] {
            b'f' => Ok(Self::field(rest)),
            b'v' => serde_json::from_str(rest).map(|v| Self::Value(Scalar(v))).map_err(|_| malformed()),
            b'k' => {
                let fields: Map<String, Value> = serde_json::from_str(rest).map_err(|_| malformed())?;
                Ok(Self::Key(fields.into_iter().map(|(k, v)| (k.into_boxed_str(), Scalar(v))).collect()))
            }
            b'i' => rest.parse().map(Self::Index).map_err(|_| malformed()),
            _ => Err(ElementError::UnknownType),
        }
    }

    /// Encodes as a key of `FieldsV1`.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let map: Map<_, _> = fields.iter().map(|(k, v)| (k.to_string(), v.0.clone())).collect();
                format!("k:{}", go::json(&Value::Object(map)))
            }
            Self::Value(value) => format!("v:{}", go::json(&value.0)),
            Self::Index(at) => format!("i:{at}"),
        }
    }
}

/// Formats like in conflicts: `.spec`, `[name="c"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Null => f.write_str("null"),
            Value::String(s) => f.write_str(&go::quote(s)),
            Value::Array(items) => {
                let texts: Vec<_> = items.iter().map(|v| Scalar(v.clone()).to_string()).collect();
                write!(f, "[{}]", texts.join(","))
            }
            Value::Object(map) => {
                let texts: Vec<_> = map.iter().map(|(k, v)| format!("{k}={}", Scalar(v.clone()))).collect();
                write!(f, "{{{}}}", texts.join(";"))
            }
            other => f.write_str(&go::plain(other)),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        compare(&self.0, &other.0) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Returns whether two values are equal for server-side apply, where `1` equals `1.0`.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    compare(a, b) == Ordering::Equal
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().unwrap_or_default().total_cmp(&y.as_f64().unwrap_or_default()),
        },
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => {
            let unequal = x.iter().zip(y).map(|(x, y)| compare(x, y)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (Value::Object(x), Value::Object(y)) => {
            let unequal = x
                .iter()
                .zip(y)
                .map(|((xk, xv), (yk, yv))| xk.cmp(yk).then_with(|| compare(xv, yv)))
                .find(|o| o.is_ne());
            unequal.unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_round_trip_as_fields_v1_keys() {
        for text in
            ["f:spec", "f:", r#"k:{"port":80,"protocol":"TCP"}"#, r#"v:"example.com/a""#, "v:1", "i:3"]
        {
            assert_eq!(PathElement::parse(text).unwrap().to_key(), text);
        }
    }

    #[test]
    fn unknown_and_malformed_elements_are_distinguished() {
        assert_eq!(PathElement::parse("f"), Err(ElementError::TooShort));
        assert_eq!(PathElement::parse("fx"), Err(ElementError::NoColon("fx".into())));
        assert_eq!(PathElement::parse("z:1"), Err(ElementError::UnknownType));
        assert!(matches!(PathElement::parse("v:{"), Err(ElementError::Malformed(_))));
        assert!(matches!(PathElement::parse("k:[1]"), Err(ElementError::Malformed(_))));
        assert!(matches!(PathElement::parse("i:x"), Err(ElementError::Malformed(_))));
        assert!(PathElement::parse("fü").is_err());
    }

    #[test]
    fn conflicts_print_keys_as_upstream_does() {
        let element = PathElement::parse(r#"k:{"protocol":"TCP","port":80}"#).unwrap();
        assert_eq!(element.to_string(), r#"[port=80,protocol="TCP"]"#);
        assert_eq!(PathElement::Value(Scalar(json!("a"))).to_string(), r#"[="a"]"#);
    }

    #[test]
    fn integers_equal_whole_floats() {
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!({"a": null}), &json!({})));
    }
}
