//! JSON values, one after the other, into nodes.
//!
//! `serde_json` reads the strings and the numbers; the structure is read here because a node must know its line,
//! and because a key written twice must be noticed.

use serde_json::Number;

use super::{
    error::{DecodeProblem, ReadError},
    limits::Limits,
    node::{Mapping, Mark, Node, NodeValue},
};

/// Reads the JSON values of a text. Between them may be white space and lines that begin with `#`.
pub(super) struct JsonReader<'t> {
    text: &'t str,
    position: usize,
    line: usize,
    line_begins_at: usize,
    limits: Limits,
}

impl<'t> JsonReader<'t> {
    pub(super) fn new(text: &'t str, first_line: usize, limits: Limits) -> Self {
        Self { text, position: 0, line: first_line, line_begins_at: 0, limits }
    }

    /// The next value, or `None` at the end of the text. After an error, [`JsonReader::skip_to_next`] goes on.
    pub(super) fn next(&mut self) -> Option<Result<Node, ReadError>> {
        self.skip_space_and_comments();
        if self.position == self.text.len() { None } else { Some(self.value(0)) }
    }

    /// Goes to the next line that begins with an opening brace, which is how every JSON writer begins a document.
    /// `false` if there is none.
    pub(super) fn skip_to_next(&mut self) -> bool {
        while let Some(end) = memchr::memchr(b'\n', &self.text.as_bytes()[self.position..]) {
            self.position += end + 1;
            self.line += 1;
            self.line_begins_at = self.position;
            if self.peek() == Some(b'{') {
                return true;
            }
        }
        self.position = self.text.len();
        false
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn mark(&self) -> Mark {
        Mark { line: self.line, column: self.position - self.line_begins_at + 1 }
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError { at: self.mark(), problem: DecodeProblem::Syntax { message: message.into() } })
    }

    fn skip_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.position += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_begins_at = self.position;
            }
        }
    }

    fn skip_space_and_comments(&mut self) {
        self.skip_space();
        while self.peek() == Some(b'#') {
            let rest = &self.text.as_bytes()[self.position..];
            self.position += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.skip_space();
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, ReadError> {
        if depth > self.limits.depth {
            let problem = DecodeProblem::TooDeep { limit: self.limits.depth };
            return Err(ReadError { at: self.mark(), problem });
        }
        let at = self.mark();
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeValue::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => NodeValue::Number(self.number()?),
            Some(_) => self.literal()?,
            None => return self.error("the text ends where a JSON value should be"),
        };
        Ok(Node::new(at, value))
    }

    fn object(&mut self, depth: usize) -> Result<NodeValue, ReadError> {
        let mut mapping = Mapping::default();
        self.position += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(NodeValue::Mapping(mapping));
        }
        loop {
            self.skip_space();
            let key_at = self.mark();
            if self.peek() != Some(b'"') {
                return self.error("a JSON object needs a key in double quotes here");
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return self.error("a colon is missing after the key");
            }
            self.position += 1;
            self.skip_space();
            let node = self.value(depth + 1)?;
            mapping.insert(key, key_at, node);
            if !self.another(b'}')? {
                return Ok(NodeValue::Mapping(mapping));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<NodeValue, ReadError> {
        let mut items = Vec::new();
        self.position += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(NodeValue::Sequence(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            if !self.another(b']')? {
                return Ok(NodeValue::Sequence(items));
            }
        }
    }

    /// After an element: `true` for a comma, `false` for the closing bracket.
    fn another(&mut self, close: u8) -> Result<bool, ReadError> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.position += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.position += 1;
                Ok(false)
            }
            Some(_) => self.error(format!("a comma or `{}` is missing", char::from(close))),
            None => self.error(format!("the text ends before the closing `{}`", char::from(close))),
        }
    }

    fn string(&mut self) -> Result<String, ReadError> {
        let begin = self.position;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        let mut at = begin + 1;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(0..0x20) => {
                    self.position = at;
                    return self.error("a line break or control character stands inside a JSON string");
                }
                Some(_) => at += 1,
                None => return self.error("the closing quote of this string is missing"),
            }
        }
        let text = if escaped {
            match serde_json::from_str(&self.text[begin..=at]) {
                Ok(text) => text,
                Err(_) => return self.error("this string has an escape that JSON does not know"),
            }
        } else {
            self.text[begin + 1..at].to_owned()
        };
        self.position = at + 1;
        Ok(text)
    }

    fn number(&mut self) -> Result<Number, ReadError> {
        let rest = &self.text[self.position..];
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-')).unwrap_or(rest.len());
        let digits = &rest[..end];
        let number = match serde_json::from_str::<Number>(digits) {
            // serde_json may miss a float by its last bit; the standard library never does.
            Ok(number) if number.is_f64() => digits.parse().ok().and_then(Number::from_f64),
            number => number.ok(),
        };
        let Some(number) = number else {
            return self.error("this is not a JSON number, or it is too large");
        };
        self.position += end;
        Ok(number)
    }

    fn literal(&mut self) -> Result<NodeValue, ReadError> {
        let rest = &self.text[self.position..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let value = match &rest[..end] {
            "true" => NodeValue::Bool(true),
            "false" => NodeValue::Bool(false),
            "null" => NodeValue::Null,
            _ => return self.error("this is not a JSON value"),
        };
        self.position += end;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<serde_json::Value, (usize, String)>> {
        let mut reader = JsonReader::new(text, 1, Limits::default());
        let mut out = Vec::new();
        while let Some(next) = reader.next() {
            let failed = next.is_err();
            out.push(next.map(Node::into_json).map_err(|error| (error.at.line, error.problem.to_string())));
            if failed && !reader.skip_to_next() {
                break;
            }
        }
        out
    }

    #[test]
    fn values_follow_each_other_with_or_without_space() {
        let values = read("{\"a\":1}{\"b\":[true,null,\"x\\n\\u00e9\"]}\n# a note\n[] {}\n");
        let expected = ["{\"a\":1}", "{\"b\":[true,null,\"x\\n\\u00e9\"]}", "[]", "{}"];
        assert_eq!(values.len(), expected.len());
        for (value, json) in values.into_iter().zip(expected) {
            assert_eq!(value.unwrap(), serde_json::from_str::<serde_json::Value>(json).unwrap());
        }
    }

    #[test]
    fn a_broken_value_does_not_hide_the_next_line() {
        let values = read("{\"a\":1}\n{\"b\": \n \"x\" oops}\n{\"c\":3}\n");
        assert_eq!(values.len(), 3);
        assert!(values[0].is_ok() && values[2].is_ok());
        let (line, message) = values[1].clone().unwrap_err();
        assert_eq!(line, 3);
        assert!(message.contains("comma"), "{message}");
    }

    #[test]
    fn what_serde_json_refuses_is_refused_here() {
        for text in [
            "{",
            "[1,]",
            "{\"a\" 1}",
            "{a:1}",
            "[01]",
            "[1.]",
            "[.5]",
            "[+1]",
            "\"a",
            "\"a\nb\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "[1e400]",
            "tru",
            "nul",
            "{\"a\":1,}",
            "[1 2]",
            "{,}",
            "'a'",
            "\"\\",
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
            assert!(read(text)[0].is_err(), "{text}");
        }
    }

    #[test]
    fn a_repeated_key_is_remembered_with_both_lines() {
        let mut reader = JsonReader::new("{\"a\": 1,\n \"a\": 2}", 10, Limits::default());
        let node = reader.next().unwrap().unwrap();
        let mut found = Vec::new();
        node.each_repeated("", &mut |path, repeated| {
            found.push((path, repeated.at.line, repeated.first_line));
        });
        assert_eq!(found, [("a".to_owned(), 11, 10)]);
        assert_eq!(node.into_json(), serde_json::json!({"a": 2}));
    }

    #[test]
    fn nesting_stops_at_the_limit() {
        let limits = Limits::default();
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(JsonReader::new(&nested(limits.depth), 1, limits).next().unwrap().is_ok());
        let error = JsonReader::new(&nested(limits.depth + 1), 1, limits).next().unwrap().unwrap_err();
        assert!(matches!(error.problem, DecodeProblem::TooDeep { .. }));
    }
}
