//! JSON bodies.

use serde_json::error::Category;

use super::{BodyError, Decoded, Limits, seed::Context};
use crate::Node;

pub(super) fn decode(
    body: &[u8],
    schema: Option<(&Node, &str)>,
    limits: &Limits,
) -> Result<Decoded, BodyError> {
    // `from_str` skips the UTF-8 check of every single string, so the whole body is checked once instead.
    match std::str::from_utf8(body) {
        Ok(text) => run(serde_json::Deserializer::from_str(text), body, schema, limits),
        Err(_) => run(serde_json::Deserializer::from_slice(body), body, schema, limits),
    }
}

fn run<'a>(
    mut source: serde_json::Deserializer<impl serde_json::de::Read<'a>>,
    body: &[u8],
    schema: Option<(&Node, &str)>,
    limits: &Limits,
) -> Result<Decoded, BodyError> {
    // The context counts levels itself: CRDs nest deeper than serde_json's own limit.
    source.disable_recursion_limit();
    let mut context = Context::new(limits.depth);
    let value = context.run(&mut source, schema).and_then(|value| source.end().map(|()| value));
    match value {
        Ok(value) => context.finish(value),
        Err(_) if context.is_too_deep() => Err(Context::depth_error()),
        Err(error) => Err(BodyError::Syntax(message(body, &error))),
    }
}

/// Translates a `serde_json` error into the message of Go's `encoding/json` for the same position.
fn message(body: &[u8], error: &serde_json::Error) -> String {
    if error.classify() == Category::Eof {
        return "unexpected end of JSON input".to_owned();
    }
    let line = body.split(|b| *b == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let at = error.column().saturating_sub(1).min(line.len().saturating_sub(1));
    let text = String::from_utf8_lossy(line.get(at..).unwrap_or_default()).into_owned();
    let Some(found) = text.chars().next() else { return "unexpected end of JSON input".to_owned() };
    let reason = error.to_string();
    let context = if reason.starts_with("trailing characters") {
        "after top-level value"
    } else if reason.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if reason.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if reason.starts_with("expected `,` or `]`") {
        "after array element"
    } else if reason.starts_with("expected `:`") {
        "after object key"
    } else {
        "looking for beginning of value"
    };
    let quoted = if found == '\'' { "'\\''".to_owned() } else { format!("'{found}'") };
    format!("invalid character {quoted} {context}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &str) -> String {
        decode(body.as_bytes(), None, &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_read_as_go_writes_them() {
        assert_eq!(refusal(""), "unexpected end of JSON input");
        assert_eq!(refusal("{\"a\":"), "unexpected end of JSON input");
        assert_eq!(refusal("{not json"), "invalid character 'n' looking for beginning of object key string");
        assert_eq!(refusal("{\"a\" 1}"), "invalid character '1' after object key");
        assert_eq!(refusal("{\"a\":1 2}"), "invalid character '2' after object key:value pair");
        assert_eq!(refusal("[1 2]"), "invalid character '2' after array element");
        assert_eq!(refusal("{} x"), "invalid character 'x' after top-level value");
    }

    #[test]
    fn nesting_is_limited() {
        let deep = "[".repeat(251) + &"]".repeat(251);
        assert_eq!(refusal(&deep), "exceeded max depth");
        let fine = "[".repeat(250) + &"]".repeat(250);
        assert!(decode(fine.as_bytes(), None, &Limits::default()).is_ok());
    }
}
