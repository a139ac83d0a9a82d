//! YAML bodies, with the scalar resolution of kube-apiserver's YAML 1.1 library: `yes` and `on` are true,
//! `0644` is octal, keys become strings, `<<` merges.

use std::{collections::BTreeMap, iter::Peekable};

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Map, Number, Value};

use super::{BodyError, Limits};
use crate::go;

/// Prefix of the finding about repeated keys.
pub(super) const UNMARSHAL_ERRORS: &str = "yaml: unmarshal errors:\n";
/// Maximum number of nodes after the expansion of aliases.
const MAX_NODES: usize = 1 << 20;

/// Decodes the first document; returns its value and the finding about repeated keys.
pub(super) fn decode(body: &[u8], limits: &Limits) -> Result<(Value, Option<String>), BodyError> {
    let text = str::from_utf8(body).map_err(|_| syntax("yaml: invalid leading UTF-8 octet"))?;
    let mut options = Options::default();
    options.emit_comments = false;
    let mut reader = Reader {
        events: Parser::new_from_str_with_options(text, options).peekable(),
        anchors: BTreeMap::new(),
        duplicates: Vec::new(),
        nodes: 0,
        depth_left: limits.depth,
    };
    let value = reader.document()?;
    let duplicates = (!reader.duplicates.is_empty())
        .then(|| format!("{UNMARSHAL_ERRORS}{}", reader.duplicates.join("\n")));
    Ok((value, duplicates))
}

fn syntax(message: impl Into<String>) -> BodyError {
    BodyError::Syntax(message.into())
}

struct Reader<'t> {
    events: Peekable<Parser<'t, StrInput<'t>>>,
    anchors: BTreeMap<usize, (Value, usize)>,
    duplicates: Vec<String>,
    nodes: usize,
    depth_left: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), BodyError> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(syntax("yaml: unexpected end of stream")),
        }
    }

    fn document(&mut self) -> Result<Value, BodyError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Value::Null),
                (event, span) => {
                    let value = self.node(event, span)?;
                    // The rest of the document must be well-formed too.
                    while !matches!(self.next()?.0, Event::DocumentEnd | Event::StreamEnd) {}
                    return Ok(value);
                }
            }
        }
    }

    fn count(&mut self, nodes: usize) -> Result<(), BodyError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(syntax("yaml: document contains excessive aliasing"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Result<Value, BodyError> {
        let before = self.nodes;
        self.count(1)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.to_string().ends_with("str"));
                let plain = style == ScalarStyle::Plain && !is_text;
                (if plain { resolve(&text) } else { Value::String(text.into_owned()) }, anchor)
            }
            Event::Alias(id) => {
                let Some((value, nodes)) = self.anchors.get(&id).cloned() else {
                    return Err(syntax(format!(
                        "yaml: line {}: unknown anchor referenced",
                        span.start.line()
                    )));
                };
                self.count(nodes)?;
                return Ok(value);
            }
            Event::SequenceStart(_, anchor, _) => (self.nested(Self::sequence)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.nested(Self::mapping)?, anchor),
            _ => (Value::Null, 0),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), self.nodes - before));
        }
        Ok(value)
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, BodyError>) -> Result<Value, BodyError> {
        self.depth_left = self.depth_left.checked_sub(1).ok_or_else(|| syntax("exceeded max depth"))?;
        let value = read(self)?;
        self.depth_left += 1;
        Ok(value)
    }

    fn sequence(&mut self) -> Result<Value, BodyError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.node(event, span)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Value, BodyError> {
        let (mut map, mut merged) = (Map::new(), Map::new());
        loop {
            let (event, span) = self.next()?;
            if let Event::MappingEnd = event {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.node(event, span)?;
            let (event, value_span) = self.next()?;
            let value = self.node(event, value_span)?;
            if is_merge {
                merge_into(&mut merged, value)?;
                continue;
            }
            let name = key_name(&key)?;
            if map.contains_key(&name) {
                let shown = if key.is_string() { go::quote(&name) } else { name.clone() };
                self.duplicates.push(format!("  line {}: key {shown} already set in map", span.start.line()));
            }
            map.insert(name, value);
        }
        for (key, value) in merged {
            map.entry(key).or_insert(value);
        }
        Ok(Value::Object(map))
    }
}

fn merge_into(merged: &mut Map<String, Value>, value: Value) -> Result<(), BodyError> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                merged.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(maps) => maps.into_iter().try_for_each(|map| merge_into(merged, map)),
        _ => Err(syntax("yaml: map merge requires map or sequence of maps as the value")),
    }
}

fn key_name(key: &Value) -> Result<String, BodyError> {
    match key {
        Value::String(name) => Ok(name.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(go::plain(key)),
        other => Err(syntax(format!("unsupported map key of type: {}", go::type_name(other)))),
    }
}

/// Translates a scan error into the message of the Go library.
fn scan_error(error: &ScanError) -> BodyError {
    let line = error.marker().line();
    let reason = error.info();
    let said = match reason.split_once(", did not find ") {
        Some((_, what)) => format!("did not find {what}"),
        None if reason.contains("flow sequence") || reason.contains("bracket '['") => {
            "did not find expected ',' or ']'".to_owned()
        }
        None if reason.contains("flow mapping") || reason.contains("bracket '{'") => {
            "did not find expected ',' or '}'".to_owned()
        }
        None if reason.contains("tabs") => "found character that cannot start any token".to_owned(),
        None if reason.contains("simple key") => "could not find expected ':'".to_owned(),
        None => reason.clone(),
    };
    syntax(format!("yaml: line {line}: {said}"))
}

/// Resolves a plain scalar by the YAML 1.1 rules of the Go library.
fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return true.into();
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return false.into();
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return text.into();
    }
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain)).unwrap_or_else(|| text.into())
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => i64::from_str_radix(&digits[2..], 16).ok()?,
        [b'0', b'b' | b'B', ..] => i64::from_str_radix(&digits[2..], 2).ok()?,
        [b'0', b'o' | b'O', ..] => i64::from_str_radix(&digits[2..], 8).ok()?,
        [b'0', _, ..] => i64::from_str_radix(digits, 8).ok()?,
        _ => digits.parse().ok()?,
    };
    Some(Value::from(if negative { -value } else { value }))
}

fn float(text: &str) -> Option<Value> {
    let is_number = text.contains(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let value: f64 = if is_number { text.parse().ok()? } else { return None };
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        decode(text.as_bytes(), &Limits::default()).unwrap().0
    }

    #[test]
    fn scalars_are_resolved_as_yaml_1_1() {
        assert_eq!(
            value("[yes, off, 'yes', 0644, 0x10, 1_000, 1.5, ~, 1e3, 2020-01-01, -5, +5, a, '', 1.2.3, 0o7]"),
            json!([
                true,
                false,
                "yes",
                420,
                16,
                1000,
                1.5,
                null,
                1000.0,
                "2020-01-01",
                -5,
                5,
                "a",
                "",
                "1.2.3",
                7
            ])
        );
    }

    #[test]
    fn anchors_merges_and_block_strings_work() {
        let text = "base: &b {x: 1, z: 2}\nuse:\n  <<: *b\n  z: 3\ntext: |\n  one\n  two\n1: n\ntrue: m\n";
        assert_eq!(
            value(text),
            json!({"base": {"x": 1, "z": 2}, "use": {"x": 1, "z": 3}, "text": "one\ntwo\n", "1": false, "true": "m"})
        );
        assert_eq!(value("# only a comment\n"), Value::Null);
        assert_eq!(value("a: 1\n---\nb: 2\n"), json!({"a": 1}));
    }

    #[test]
    fn repeated_keys_are_reported_with_their_line() {
        let (value, said) = decode(b"a: 1\nb: 2\na: 3\nc:\n  d: 1\n  d: 2\n", &Limits::default()).unwrap();
        assert_eq!(value, json!({"a": 3, "b": 2, "c": {"d": 2}}));
        assert_eq!(
            said.unwrap(),
            "yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  line 6: key \"d\" already set in map"
        );
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(decode(nested(250).as_bytes(), &Limits::default()).is_ok());
        assert!(decode(nested(251).as_bytes(), &Limits::default()).is_err());
        assert!(decode(nested(100_000).as_bytes(), &Limits::default()).is_err());
        let block = (0..300).map(|level| " ".repeat(level) + "a:").collect::<Vec<_>>().join("\n");
        assert!(decode(block.as_bytes(), &Limits::default()).is_err());
    }

    #[test]
    fn invalid_yaml_is_rejected() {
        let refusal = |text: &str| decode(text.as_bytes(), &Limits::default()).unwrap_err().to_string();
        assert_eq!(refusal("a: [1"), "yaml: line 1: did not find expected ',' or ']'");
        assert!(refusal("a: *nope").starts_with("yaml: "));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..9 {
            let line = format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "));
            bomb.push_str(&line);
        }
        assert_eq!(refusal(&bomb), "yaml: document contains excessive aliasing");
        assert!(decode(&[0xff, 0xfe], &Limits::default()).is_err());
    }
}
