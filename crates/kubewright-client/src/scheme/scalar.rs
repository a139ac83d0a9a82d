//! What an unquoted YAML word means.
//!
//! Kubernetes reads YAML by turning it into JSON first, with the rules of YAML 1.1 as Go's `yaml.v2` applies them
//! (`sigs.k8s.io/yaml`). A manifest must mean the same to kubewright as to `kubectl`, so these are the same rules:
//!
//! | written | read as |
//! |---|---|
//! | `y yes on true`, `n no off false` (lower, Capitalised, UPPER) | a boolean |
//! | nothing, `~`, `null` | null |
//! | `0777`, `0o777`, `0x1ff`, `0b11`, `1_000` | 511, 511, 511, 3, 1000 |
//! | `1e3`, `3.0` | 1000 and 3: a whole number, because it becomes one on its way through JSON |
//! | `08`, `09.5` | 8 and 9.5: not octal, so decimal |
//! | `2024-01-31`, `12:30`, `1.2.3`, `0x`, `1e400` | text |
//! | `.inf`, `.nan` | an error: JSON has no such number |
//! | anything in quotes, or tagged `!!str` | text |
//!
//! Keys go the same way and become text again afterwards: the key `yes` is `"true"` and `0x10` is `"16"`.

use serde_json::Number;

/// The meaning of an unquoted word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    /// Above what an `i64` holds.
    Uint(u64),
    /// Written as a float, also when its value is whole.
    Float(f64),
    /// The word stands for itself.
    Text,
}

/// Reads an unquoted word.
pub(super) fn resolve(word: &str) -> Plain {
    match word {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Plain::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Plain::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        ".nan" | ".NaN" | ".NAN" => Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Plain::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Plain::Float(f64::NEG_INFINITY),
        _ => match word.as_bytes()[0] {
            b'.' => float(word),
            b'+' | b'-' | b'0'..=b'9' => {
                let digits = word.replace('_', "");
                integer(&digits).unwrap_or_else(|| float(&digits))
            }
            _ => Plain::Text,
        },
    }
}

/// An integer with an optional sign in base 2, 8 (also with a bare leading zero), 10 or 16, within 64 bits.
fn integer(digits: &str) -> Option<Plain> {
    let (negative, unsigned) = match digits.as_bytes().first()? {
        b'-' => (true, &digits[1..]),
        b'+' => (false, &digits[1..]),
        _ => (false, digits),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // from_str_radix would take a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    match (i64::try_from(size), negative) {
        (Ok(value), false) => Some(Plain::Int(value)),
        (Ok(value), true) => Some(Plain::Int(-value)),
        (Err(_), true) if size == i64::MIN.unsigned_abs() => Some(Plain::Int(i64::MIN)),
        (Err(_), true) => None,
        (Err(_), false) => Some(Plain::Uint(size)),
    }
}

/// A decimal float; everything else is text, and so is a number too large for 64 bits.
fn float(word: &str) -> Plain {
    let spelled_as_a_number =
        word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match word.parse::<f64>() {
        Ok(value) if spelled_as_a_number && value.is_finite() => Plain::Float(value),
        _ => Plain::Text,
    }
}

/// The JSON number of a float: whole values lose their decimal point, as on the way through Go's JSON. `None` for
/// infinities and NaN, which JSON cannot say.
pub(super) fn json_number(value: f64) -> Option<Number> {
    // 2^63 and 2^64: below them the conversions are exact.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    const U64_END: f64 = 18_446_744_073_709_551_616.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both ends are checked")]
    if value.fract() != 0.0 {
        Number::from_f64(value)
    } else if (-I64_END..I64_END).contains(&value) {
        Some((value as i64).into())
    } else if (0.0..U64_END).contains(&value) {
        Some((value as u64).into())
    } else {
        Number::from_f64(value)
    }
}

/// The text that a key becomes; `None` for null, which cannot be a key.
pub(super) fn key_text(word: &str) -> Option<String> {
    Some(match resolve(word) {
        Plain::Null => return None,
        Plain::Bool(value) => value.to_string(),
        Plain::Int(value) => value.to_string(),
        Plain::Uint(value) => value.to_string(),
        Plain::Float(value) => short_float(value),
        Plain::Text => word.to_owned(),
    })
}

/// A float key as Go writes it: the shortest digits that make the same 32-bit float, with an exponent from a
/// million upwards and below a ten-thousandth.
fn short_float(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "32 bits are what Go keeps of a key")]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_those_of_yaml_1_1() {
        for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
            assert_eq!(resolve(word), Plain::Bool(true), "{word}");
        }
        for word in ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"] {
            assert_eq!(resolve(word), Plain::Bool(false), "{word}");
        }
        for word in ["yEs", "tRUE", "oN", "yess", "t", "f"] {
            assert_eq!(resolve(word), Plain::Text, "{word}");
        }
    }

    #[test]
    fn integers_come_in_four_bases_with_underscores() {
        for (word, value) in [
            ("0", 0),
            ("-0", 0),
            ("+12", 12),
            ("0777", 511),
            ("-0777", -511),
            ("0o777", 511),
            ("0O17", 15),
            ("0x1Ff", 511),
            ("-0x10", -16),
            ("0b101", 5),
            ("1_000_000", 1_000_000),
            ("0_7", 7),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(resolve(word), Plain::Int(value), "{word}");
        }
        assert_eq!(resolve("18446744073709551615"), Plain::Uint(u64::MAX));
    }

    #[test]
    fn floats_are_decimal_and_finite() {
        for (word, value) in [
            ("1e3", 1000.0),
            ("3.0", 3.0),
            (".5", 0.5),
            ("1.", 1.0),
            ("-1.5E-2", -0.015),
            ("08", 8.0),
            ("+.5", 0.5),
        ] {
            assert_eq!(resolve(word), Plain::Float(value), "{word}");
        }
        assert_eq!(resolve("18446744073709551616"), Plain::Float(18_446_744_073_709_551_616.0));
        assert_eq!(resolve(".Inf"), Plain::Float(f64::INFINITY));
        assert_eq!(json_number(f64::INFINITY), None);
        assert_eq!(json_number(f64::NAN), None);
    }

    #[test]
    fn words_that_only_look_like_numbers_are_text() {
        for word in [
            "2024-01-31",
            "2024-01-31T10:00:00Z",
            "12:30:45",
            "1.2.3",
            "0x",
            "0xG",
            "0b2",
            "0o8",
            "1e",
            "1e400",
            "-",
            "+",
            ".",
            "..5",
            "_1",
            "1k",
            "500m",
            "1Gi",
            "inf",
            "nan",
            "+inf",
            "0x1p4",
            "--1",
            "0x-1",
            "1e+-3",
            "<<",
        ] {
            assert_eq!(resolve(word), Plain::Text, "{word}");
        }
    }

    #[test]
    fn whole_floats_become_integers_on_the_way_to_json() {
        for (value, json) in [
            (1000.0, "1000"),
            (-3.0, "-3"),
            (0.5, "0.5"),
            (9_223_372_036_854_775_808.0, "9223372036854775808"),
            (-0.0, "0"),
        ] {
            assert_eq!(json_number(value).unwrap().to_string(), json);
        }
        assert!(json_number(1e30).unwrap().is_f64());
    }

    #[test]
    fn keys_become_text_as_in_go() {
        for (word, text) in [
            ("app", "app"),
            ("yes", "true"),
            ("off", "false"),
            ("0x10", "16"),
            ("1.10", "1.1"),
            ("1.0", "1"),
            ("1e5", "100000"),
            ("1e6", "1e+06"),
            ("0.00001", "1e-05"),
            ("1234567.5", "1.2345675e+06"),
            (".inf", ".inf"),
            ("2024-01-31", "2024-01-31"),
        ] {
            assert_eq!(key_text(word).as_deref(), Some(text), "{word}");
        }
        assert_eq!(key_text("~"), None);
        assert_eq!(key_text(""), None);
    }
}
