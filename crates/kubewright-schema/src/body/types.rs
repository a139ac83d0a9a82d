//! Type checks of the values of built-in types, with the error messages of Go's decoders.

use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{AdditionalProperties, Child, Kind, Node, Scalar, Schemas, go, time};

/// Returns the name of a type as Go prints it in messages.
pub(super) fn go_type(child: &Child) -> String {
    match child {
        Child::Builtin(id) => {
            let name = Schemas::builtin().name_of(*id);
            let mut parts = name.rsplit('.');
            let (kind, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            format!("{package}.{kind}")
        }
        Child::Inline(node) => match &node.kind {
            Kind::Object(object) => match &object.additional {
                AdditionalProperties::Values(values) => format!("map[string]{}", go_type(values)),
                _ => "map[string]interface {}".to_owned(),
            },
            Kind::List(list) => format!("[]{}", go_type(&list.item)),
            Kind::Scalar(scalar) => scalar_type(*scalar).to_owned(),
            Kind::Any | Kind::Raw => "interface {}".to_owned(),
        },
    }
}

fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::Bytes => "[]uint8",
        _ => "string",
    }
}

/// Type error of a value.
pub(super) enum Problem {
    /// Wrong JSON kind for the field: the message names the field.
    Kind(String),
    /// Rejected by the type's own decoder: the complete message.
    Custom(String),
}

/// Checks a scalar, or an object or list in the place of a scalar.
pub(super) fn problem(node: &Node, value: &Value) -> Option<Problem> {
    let wrong = || Some(Problem::Kind(go::json_kind(value).to_owned()));
    let own = |go_type: &str| {
        let kind = go::json_kind(value);
        Some(Problem::Custom(format!("json: cannot unmarshal {kind} into Go value of type {go_type}")))
    };
    let scalar = match (&node.kind, value) {
        (_, Value::Null)
        | (Kind::Any | Kind::Raw, _)
        | (Kind::Object(_), Value::Object(_))
        | (Kind::List(_), Value::Array(_)) => return None,
        (Kind::Object(_) | Kind::List(_), _) => return wrong(),
        (Kind::Scalar(scalar), _) => *scalar,
    };
    match (scalar, value) {
        (Scalar::String | Scalar::Formatted | Scalar::IntOrString, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Number | Scalar::Quantity, Value::Number(_)) => None,
        (Scalar::Int32, Value::Number(n)) => match n.as_i64() {
            Some(n) if i32::try_from(n).is_ok() => None,
            _ => Some(Problem::Kind(format!("number {}", go::number(n)))),
        },
        (Scalar::Int64, Value::Number(n)) if n.is_i64() => None,
        (Scalar::Int64, Value::Number(n)) => Some(Problem::Kind(format!("number {}", go::number(n)))),
        (Scalar::IntOrString, Value::Number(n)) => match n.as_i64() {
            Some(n) if i32::try_from(n).is_ok() => None,
            _ => Some(Problem::Custom(format!(
                "json: cannot unmarshal number {} into Go value of type int32",
                go::number(n)
            ))),
        },
        (Scalar::IntOrString, _) => own("int32"),
        (Scalar::Time | Scalar::MicroTime, Value::String(text)) => {
            time_problem(scalar, text).map(Problem::Custom)
        }
        (Scalar::Time | Scalar::MicroTime, _) => own("string"),
        (Scalar::Bytes, Value::String(text)) => base64_problem(text).map(Problem::Custom),
        (Scalar::Quantity, Value::String(text)) => quantity_problem(text).map(Problem::Custom),
        (Scalar::Quantity, other) => quantity_problem(&other.to_string()).map(Problem::Custom),
        _ => wrong(),
    }
}

fn base64_problem(text: &str) -> Option<String> {
    // Go ignores line breaks in base64.
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let at = match STANDARD.decode(&text) {
        Ok(_) => return None,
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. }) => at,
        Err(DecodeError::InvalidLength(_) | DecodeError::InvalidPadding) => text.trim_end_matches('=').len(),
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

fn time_problem(scalar: Scalar, text: &str) -> Option<String> {
    let is_micro = scalar == Scalar::MicroTime;
    let fraction = text.get(19..).unwrap_or_default();
    let digits = fraction.strip_prefix('.').map(|f| f.bytes().take_while(u8::is_ascii_digit).count());
    let is_good = time::parse(text).is_some() && (!is_micro || digits == Some(6));
    if text.is_empty() || is_good {
        return None;
    }
    let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let bytes = text.as_bytes();
    let has = |from: usize, to: usize| bytes.get(from..to).is_some_and(|b| b.iter().all(u8::is_ascii_digit));
    let parts = [(0, 4, "2006"), (5, 7, "01"), (8, 10, "02"), (11, 13, "15"), (14, 16, "04"), (17, 19, "05")];
    let last = if is_micro && digits != Some(6) { ".000000" } else { "Z07:00" };
    let missed = parts.iter().find(|(from, to, _)| !has(*from, *to));
    let (from, element) = missed.map_or((19, last), |(from, _, element)| (*from, *element));
    let rest = text.get(from..).unwrap_or_default();
    Some(format!(
        "parsing time {} as \"{layout}\": cannot parse {} as \"{element}\"",
        go::quote(text),
        go::quote(rest)
    ))
}

fn quantity_problem(text: &str) -> Option<String> {
    const MISMATCH: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    const SUFFIX: &str = "unable to parse quantity's suffix";
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    if number.is_empty() || number.matches('.').count() > 1 || number == "." {
        return Some(MISMATCH.to_owned());
    }
    let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if known.contains(&suffix) {
        return None;
    }
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let power = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !power.bytes().all(|b| b.is_ascii_digit()) {
        return Some(MISMATCH.to_owned());
    }
    let exponent = suffix.len() - letters.len() == 1 && suffix.starts_with(['e', 'E']) && !power.is_empty();
    (!exponent).then(|| SUFFIX.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_quantities_and_bytes_are_checked_as_their_decoders_do() {
        assert_eq!(
            time_problem(Scalar::MicroTime, "yesterday").unwrap(),
            r#"parsing time "yesterday" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "yesterday" as "2006""#
        );
        assert_eq!(
            time_problem(Scalar::MicroTime, "2020-01-01T00:00:00Z").unwrap(),
            r#"parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
        assert_eq!(time_problem(Scalar::MicroTime, "2020-01-01T00:00:00.123456Z"), None);
        assert_eq!(time_problem(Scalar::Time, "2020-01-01T23:59:59.5+02:00"), None);
        assert_eq!(base64_problem("not base64!").unwrap(), "illegal base64 data at input byte 3");
        assert_eq!(base64_problem("YQ=="), None);
        for good in ["1", "100m", "1.5Gi", "-1", "1e3", "1E+2", ".5", "5."] {
            assert_eq!(quantity_problem(good), None, "{good}");
        }
        for bad in ["", "abc", "1x", "1..5", "--1", "1 Gi", "1ee3", "1mi"] {
            assert!(quantity_problem(bad).is_some(), "{bad}");
        }
    }
}
