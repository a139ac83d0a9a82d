//! Simple paths such as `.spec.color` and `.spec['my-key']` to a field of a schema.

use serde_json::Value;

use crate::props::Props;

/// Field of a schema that a path leads to.
#[derive(Debug, Clone)]
pub struct FieldPath<'s> {
    /// The path as errors print it.
    pub text: String,
    /// The first field of the path.
    pub root: String,
    /// The schema of the field; none below one that preserves unknown fields.
    pub schema: Option<&'s Value>,
}

/// Resolves a path in a schema; the error says why there is no such field.
pub fn valid_path<'s>(path: &str, schema: &'s Value, brackets: bool) -> Result<FieldPath<'s>, String> {
    let mut at = FieldPath { text: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = tokens(path).into_iter();
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let name = tokens.next().ok_or_else(end)?;
                let quoted = name.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let name = quoted.ok_or_else(|| format!("expected single quoted string but got {name}"))?;
                step(&mut at, &unescape(name)?)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => step(&mut at, tokens.next().ok_or_else(end)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(at)
}

fn step(at: &mut FieldPath<'_>, name: &str) -> Result<(), String> {
    let lost = || "does not refer to a valid field".to_owned();
    let props = Props::new(at.schema.ok_or_else(lost)?);
    let named = props.has_properties();
    if named {
        at.schema = Some(props.property(name).ok_or_else(lost)?);
    } else if props.get("additionalProperties").is_some() {
        at.schema = props.values();
    } else {
        return Err(lost());
    }
    if at.root.is_empty() {
        name.clone_into(&mut at.root);
    }
    match (named, at.text.is_empty()) {
        (true, true) => name.clone_into(&mut at.text),
        (true, false) => at.text.extend([".", name]),
        (false, _) => at.text.extend(["[", name, "]"]),
    }
    Ok(())
}

fn tokens(path: &str) -> Vec<&str> {
    let (mut out, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let length = if let Some(quoted) = rest.strip_prefix('\'') {
            let mut escaped = false;
            let end = quoted.char_indices().find(|(_, c)| {
                let ends = *c == '\'' && !escaped;
                escaped = *c == '\\';
                ends
            });
            end.map_or(rest.len(), |(i, _)| i + 2)
        } else {
            match rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(at) => at,
                None => rest.len(),
            }
        };
        let (token, tail) = rest.split_at(length);
        out.push(token);
        rest = tail;
    }
    out
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            other => {
                let shown = other.map(String::from).unwrap_or_default();
                return Err(format!("invalid string literal: invalid escape char \\{shown}"));
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_resolve_to_fields_and_map_values_or_fail_with_a_reason() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b-c": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}}}});
        let text = |path: &str| valid_path(path, &schema, true).map(|found| found.text);
        assert_eq!(text(".a['b-c']").unwrap(), "a.b-c");
        assert_eq!(text(".m['it\\'s']").unwrap(), "m[it's]");
        assert_eq!(text(".m.k").unwrap(), "m[k]");
        let cases = [
            (".a.x", "does not refer to a valid field"),
            ("a", "expected [ or . but got: a"),
            (".", "unexpected end of JSON path"),
            (".a[0]", "expected single quoted string but got 0"),
            (".a['b-c'", "unexpected end of JSON path"),
        ];
        for (path, reason) in cases {
            assert_eq!(text(path).unwrap_err(), reason, "{path}");
        }
        assert_eq!(valid_path("['a']", &schema, false).unwrap_err(), "array notation is not allowed");
    }
}
