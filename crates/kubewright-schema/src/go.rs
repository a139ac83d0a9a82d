//! Formatting of values like Go. Error messages of kube-apiserver contain such values, and users search for
//! them.

use std::fmt::Write;

use serde_json::{Number, Value};

/// Formats a string like `%q`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c if u32::from(c) < 0x80 => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => drop(write!(out, "\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn is_print(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e000}'..='\u{f8ff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}

/// Formats a number like `%v`; floats in the shortest form, with an exponent from 1e21 on.
pub fn number(n: &Number) -> String {
    match n.as_f64() {
        Some(f) if !n.is_i64() && !n.is_u64() => float(f),
        _ => n.to_string(),
    }
}

/// Formats a float64 like `%v`.
pub fn float(f: f64) -> String {
    let exponent = if f == 0.0 { 0 } else { decimal_exponent(f) };
    if (-4..21).contains(&exponent) {
        return format!("{f}");
    }
    let text = format!("{f:e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn decimal_exponent(f: f64) -> i32 {
    let text = format!("{f:e}");
    text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or_default()
}

/// Formats decoded JSON like `%v`: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let pairs: Vec<_> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// Formats decoded JSON like `%#v`: `map[string]interface {}{"a":1}`.
pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(s) => quote(s),
        Value::Bool(_) | Value::Number(_) => plain(value),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), syntax(v))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

/// Returns the Go type of decoded JSON like `%T`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns the name that errors of `encoding/json` use for the kind of a JSON value.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Encodes JSON like `encoding/json`: with sorted keys, and `<`, `>`, `&` escaped.
pub fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        assert_eq!(quote("a\"b\\c\n\u{1}\u{200b}ü"), r#""a\"b\\c\n\x01\u200bü""#);
    }

    #[test]
    fn floats_print_as_go_prints_them() {
        let cases =
            [(1.5, "1.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (0.00001, "1e-05"), (0.0, "0")];
        for (f, text) in cases {
            assert_eq!(float(f), text);
        }
    }

    #[test]
    fn compound_values_print_as_go_prints_them() {
        let value = json!({"spec": {"foo": 1, "l": ["x", null]}});
        assert_eq!(plain(&value), "map[spec:map[foo:1 l:[x <nil>]]]");
        assert_eq!(syntax(&json!({"a": [1]})), r#"map[string]interface {}{"a":[]interface {}{1}}"#);
        assert_eq!(json(&json!("a<b")), r#""a\u003cb""#);
    }
}
