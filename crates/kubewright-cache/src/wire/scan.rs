//! Finding the end of a JSON object and the few parts of it that a cache needs, without building anything.
//!
//! The scanner does not validate: it balances brackets and skips strings. What it cuts out is parsed by serde
//! afterwards, so a malformed object is still reported, by the part of the code that can name it.

use std::{borrow::Cow, ops::Range};

/// Where the interesting parts of one object lie, as offsets from its opening brace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Spans {
    /// The text inside the quotes of the top-level `apiVersion`.
    pub(crate) api_version: Option<Range<usize>>,
    /// The text inside the quotes of the top-level `kind`.
    pub(crate) kind: Option<Range<usize>>,
    /// The text inside the quotes of the top-level `type`, which watch events have.
    pub(crate) event_type: Option<Range<usize>>,
    /// The value of the top-level `object`, which watch events have.
    pub(crate) object: Option<Range<usize>>,
    /// The value of the top-level `metadata`, braces included.
    pub(crate) metadata: Option<Range<usize>>,
    /// What to cut out of a `metadata` so that `managedFields` is gone and the rest is still JSON; see [`cut`](Self::cut).
    managed_fields: Option<Range<usize>>,
}

impl Spans {
    /// What to cut out so that `managedFields` is gone and the rest is still JSON.
    pub(crate) fn cut(&self) -> Option<Range<usize>> {
        // Of a metadata that is there twice the last counts, and what was found in an earlier one is not in it.
        let metadata = self.metadata.as_ref()?;
        self.managed_fields.clone().filter(|cut| metadata.start <= cut.start && cut.end <= metadata.end)
    }
}

/// The text of an object without its `managedFields`. What is no object stays as it is.
pub fn without_managed_fields(text: &[u8]) -> Cow<'_, [u8]> {
    let mut scanner = Scanner::until_metadata();
    scanner.advance(text);
    match scanner.into_spans().cut() {
        Some(cut) => Cow::Owned([&text[..cut.start], &text[cut.end..]].concat()),
        None => Cow::Borrowed(text),
    }
}

/// What a call of [`Scanner::advance`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The object goes on after the bytes seen so far.
    Incomplete,
    /// The object ends before this offset.
    Complete(usize),
    /// The array of the top-level `items` begins after this offset (only when asked for).
    Items(usize),
    /// Everything that matters has been found (only when asked for); the object goes on.
    Enough,
    /// A closing bracket without an opening one, or a first byte that opens no object.
    Unbalanced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Other,
    ApiVersion,
    Kind,
    Type,
    Object,
    Metadata,
    ManagedFields,
    Items,
}

/// Where a scan stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    Items,
    Metadata,
}

/// A scan of one object over a buffer that may still grow.
///
/// Call [`advance`](Self::advance) with all bytes of the object so far; after `Incomplete`, call it again with the
/// same bytes and more. Nothing is looked at twice.
#[derive(Debug)]
pub(crate) struct Scanner {
    at: usize,
    depth: u32,
    /// Where the current string began (after its quote), when inside one.
    string: Option<usize>,
    /// The member of the outermost object, or of `metadata`, whose value is being read.
    member: [Member; 2],
    /// Whether the next string on this level is a value rather than a key.
    value: [bool; 2],
    value_start: usize,
    key_start: usize,
    last_comma: Option<usize>,
    stop: Stop,
    spans: Spans,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            depth: 0,
            string: None,
            member: [Member::Other; 2],
            value: [false; 2],
            value_start: 0,
            key_start: 0,
            last_comma: None,
            stop: Stop::End,
            spans: Spans::default(),
        }
    }

    /// A scan that stops where the elements of the top-level `items` begin.
    pub(crate) fn until_items() -> Self {
        Self { stop: Stop::Items, ..Self::new() }
    }

    /// A scan that stops when it knows the type and the metadata: for objects whose end is known without it. Servers write
    /// these first, so the larger part of most objects is not looked at.
    pub(crate) fn until_metadata() -> Self {
        Self { stop: Stop::Metadata, ..Self::new() }
    }

    pub(crate) fn into_spans(self) -> Spans {
        self.spans
    }

    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Progress {
        while self.at < bytes.len() {
            if let Some(start) = self.string {
                match string_end(bytes, self.at) {
                    Ok(end) => {
                        self.at = end + 1;
                        self.string = None;
                        self.end_string(bytes, start..end);
                        continue;
                    }
                    Err(at) => {
                        self.at = at;
                        return Progress::Incomplete;
                    }
                }
            }
            if self.depth > 2 {
                self.skip(bytes);
                continue;
            }
            let byte = bytes[self.at];
            self.at += 1;
            match byte {
                b'"' => self.string = Some(self.at),
                b'{' | b'[' => {
                    if self.depth == 0 && byte == b'[' {
                        return Progress::Unbalanced;
                    }
                    if self.depth == 1 && self.value[0] {
                        self.value_start = self.at - 1;
                        if self.stop == Stop::Items && self.member[0] == Member::Items && byte == b'[' {
                            return Progress::Items(self.at);
                        }
                        if self.member[0] == Member::Metadata {
                            self.value[1] = false;
                            self.member[1] = Member::Other;
                            self.last_comma = None;
                        }
                    }
                    self.depth += 1;
                }
                b'}' | b']' => match self.depth {
                    0 => return Progress::Unbalanced,
                    1 => return Progress::Complete(self.at),
                    2 => {
                        self.end_nested_member();
                        self.depth = 1;
                        self.end_nested();
                        if self.stop == Stop::Metadata && self.knows_enough() {
                            return Progress::Enough;
                        }
                    }
                    _ => self.depth -= 1,
                },
                b',' => match self.depth {
                    1 => {
                        self.value[0] = false;
                        self.member[0] = Member::Other;
                    }
                    2 if self.member[0] == Member::Metadata => {
                        if self.member[1] == Member::ManagedFields {
                            self.spans.managed_fields = Some(self.key_start..self.at);
                        }
                        self.last_comma = Some(self.at - 1);
                        self.value[1] = false;
                        self.member[1] = Member::Other;
                    }
                    _ => {}
                },
                b':' => match self.depth {
                    1 => self.value[0] = true,
                    2 => self.value[1] = true,
                    _ => {}
                },
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ if self.depth == 0 => return Progress::Unbalanced,
                _ => {}
            }
        }
        Progress::Incomplete
    }

    /// Passes over what lies too deep to matter, in a loop that looks at brackets and strings alone.
    fn skip(&mut self, bytes: &[u8]) {
        let (mut at, mut depth) = (self.at, self.depth);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match CLASSES[usize::from(byte)] {
                Class::Other => {}
                Class::Quote => match string_end(bytes, at) {
                    Ok(end) => at = end + 1,
                    Err(incomplete) => {
                        self.string = Some(at);
                        at = incomplete;
                        break;
                    }
                },
                Class::Open => depth += 1,
                Class::Close => {
                    depth -= 1;
                    if depth == 2 {
                        break;
                    }
                }
            }
        }
        (self.at, self.depth) = (at, depth);
    }

    fn end_string(&mut self, bytes: &[u8], text: Range<usize>) {
        match self.depth {
            1 if !self.value[0] => {
                self.member[0] = match &bytes[text] {
                    b"metadata" => Member::Metadata,
                    b"kind" => Member::Kind,
                    b"apiVersion" => Member::ApiVersion,
                    b"object" => Member::Object,
                    b"type" => Member::Type,
                    b"items" => Member::Items,
                    _ => Member::Other,
                };
            }
            1 => match self.member[0] {
                Member::Kind => self.spans.kind = Some(text),
                Member::ApiVersion => self.spans.api_version = Some(text),
                Member::Type => self.spans.event_type = Some(text),
                _ => {}
            },
            2 if self.member[0] == Member::Metadata
                && !self.value[1]
                && &bytes[text.clone()] == b"managedFields" =>
            {
                self.member[1] = Member::ManagedFields;
                self.key_start = text.start - 1;
            }
            _ => {}
        }
    }

    /// The object or array at depth 2 is about to close: a last member has no comma behind it.
    fn end_nested_member(&mut self) {
        if self.member[0] == Member::Metadata && self.member[1] == Member::ManagedFields {
            let from = self.last_comma.unwrap_or(self.key_start);
            self.spans.managed_fields = Some(from..self.at - 1);
        }
    }

    fn knows_enough(&self) -> bool {
        self.spans.metadata.is_some() && self.spans.kind.is_some() && self.spans.api_version.is_some()
    }

    fn end_nested(&mut self) {
        let span = self.value_start..self.at;
        match self.member[0] {
            Member::Metadata => self.spans.metadata = Some(span),
            Member::Object => self.spans.object = Some(span),
            _ => {}
        }
    }
}

/// What a byte outside of strings is to those who only balance brackets.
#[derive(Clone, Copy)]
enum Class {
    Other,
    Quote,
    Open,
    Close,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    classes[b'"' as usize] = Class::Quote;
    classes[b'{' as usize] = Class::Open;
    classes[b'[' as usize] = Class::Open;
    classes[b'}' as usize] = Class::Close;
    classes[b']' as usize] = Class::Close;
    classes
};

/// Where the string that goes on at this offset has its closing quote; or, when that is yet to come, where to go on.
///
/// Eight bytes at a time, because most strings in an object are shorter than what a vector instruction pays off for.
#[inline]
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        let rest = &bytes[at..];
        let found = match rest.first_chunk::<8>() {
            Some(chunk) => match quote_or_backslash(u64::from_le_bytes(*chunk)) {
                None => {
                    at += 8;
                    continue;
                }
                found => found,
            },
            None => rest.iter().position(|byte| matches!(byte, b'"' | b'\\')),
        };
        match found {
            None => return Err(bytes.len()),
            Some(found) => at += found,
        }
        if bytes[at] == b'"' {
            return Ok(at);
        }
        // A backslash and what it escapes are passed together.
        if at + 1 >= bytes.len() {
            return Err(at);
        }
        at += 2;
    }
}

/// The place of the first quote or backslash among eight bytes.
#[inline]
fn quote_or_backslash(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The lowest bit of this that is set is the top bit of the first byte that is zero.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let found = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then_some((found.trailing_zeros() / 8) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn scan_in_steps(text: &str, step: usize) -> (Progress, Spans) {
        let mut scanner = Scanner::new();
        let mut seen = 0;
        loop {
            seen = (seen + step).min(text.len());
            match scanner.advance(&text.as_bytes()[..seen]) {
                Progress::Incomplete if seen < text.len() => {}
                progress => return (progress, scanner.into_spans()),
            }
        }
    }

    #[test]
    fn managed_fields_are_cut_wherever_they_stand() {
        for (with, without) in [
            (r#"{"metadata":{"managedFields":[{"a":"]}"}],"name":"x"}}"#, json!({"metadata":{"name":"x"}})),
            (r#"{"metadata":{"name":"x", "managedFields":[]}}"#, json!({"metadata":{"name":"x"}})),
            (r#"{"metadata":{"managedFields":null}}"#, json!({"metadata":{}})),
            (r#"{"metadata":{"a":1,"managedFields":[{},[2]],"b":2}}"#, json!({"metadata":{"a":1,"b":2}})),
        ] {
            let cut = without_managed_fields(with.as_bytes());
            assert_eq!(serde_json::from_slice::<Value>(&cut).unwrap(), without, "{with}");
        }
    }

    #[test]
    fn what_has_no_managed_fields_or_is_no_object_stays_as_it_is() {
        for text in ["", "[]", "null", r#"{"metadata":{"name":"x"}}"#, r#"{"metadata":{"managedFields":["#] {
            assert_eq!(without_managed_fields(text.as_bytes()), Cow::Borrowed(text.as_bytes()));
        }
        // The last metadata counts, so nothing is cut out of the first.
        let twice = r#"{"metadata":{"managedFields":[]},"metadata":{"name":"x"}}"#;
        let (_, spans) = scan_in_steps(twice, 5);
        assert!(spans.managed_fields.is_some());
        assert_eq!(spans.cut(), None);
    }

    #[test]
    fn managed_fields_elsewhere_are_left_alone() {
        let text = r#"{"spec":{"managedFields":[1]},"metadata":{"labels":{"managedFields":"x"}},"managedFields":[]}"#;
        let (_, spans) = scan_in_steps(text, 7);
        assert_eq!(spans.managed_fields, None);
        assert_eq!(&text[spans.metadata.unwrap()], r#"{"labels":{"managedFields":"x"}}"#);
    }

    #[test]
    fn kind_inside_spec_is_not_the_kind() {
        let text = r#"{"spec":{"kind":"Other"},"kind":"Pod","apiVersion":"v1","metadata":{}}"#;
        let (_, spans) = scan_in_steps(text, 1);
        assert_eq!(&text[spans.kind.unwrap()], "Pod");
        assert_eq!(&text[spans.api_version.unwrap()], "v1");
    }

    #[test]
    fn a_scan_for_metadata_stops_behind_it_unless_the_type_comes_later() {
        let scan = |text: &str| {
            let mut scanner = Scanner::until_metadata();
            (scanner.advance(text.as_bytes()), scanner.into_spans())
        };
        let first = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[]},"spec":{"#;
        let (progress, spans) = scan(first);
        assert_eq!(progress, Progress::Enough);
        assert_eq!(&first[spans.metadata.unwrap()], r#"{"name":"a","managedFields":[]}"#);
        assert_eq!(&first[spans.managed_fields.unwrap()], r#","managedFields":[]"#);
        let last = r#"{"metadata":{"name":"a"},"spec":{},"kind":"Pod","apiVersion":"v1"}"#;
        assert_eq!(scan(last).0, Progress::Complete(last.len()));
    }

    #[test]
    fn a_watch_line_gives_its_type_and_object() {
        let text = r#"{"type":"ADDED","object":{"type":"Opaque","metadata":{"name":"s"}}}"#;
        let (_, spans) = scan_in_steps(text, 3);
        assert_eq!(&text[spans.event_type.unwrap()], "ADDED");
        assert_eq!(&text[spans.object.unwrap()], r#"{"type":"Opaque","metadata":{"name":"s"}}"#);
    }

    #[test]
    fn text_that_opens_no_object_is_unbalanced() {
        for text in ["]", "}", "[{}]", "null", "x"] {
            assert_eq!(scan_in_steps(text, 1).0, Progress::Unbalanced, "{text}");
        }
    }

    #[test]
    fn brackets_and_quotes_inside_strings_do_not_count() {
        let text = r#"{"a":"}]\"{[\\","b":"\u007d"}"#;
        for step in 1..text.len() {
            assert_eq!(scan_in_steps(text, step).0, Progress::Complete(text.len()), "step {step}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\\\\\"{}\\[\\],: é]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            let key = prop_oneof![
                Just("metadata".to_owned()),
                Just("managedFields".to_owned()),
                Just("kind".to_owned()),
                "[a-z\"\\\\,:{}]{1,6}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_object_in_any_pieces_gives_the_same_spans(value in json_value(), step in 1usize..9) {
            let object = json!({ "metadata": value, "spec": {"x": [1, {"y": "z"}]} });
            let text = object.to_string();
            let whole = scan_in_steps(&text, text.len());
            prop_assert_eq!(&scan_in_steps(&text, step), &whole);
            prop_assert_eq!(whole.0, Progress::Complete(text.len()));
        }

        #[test]
        fn cutting_managed_fields_removes_just_that_member(value in json_value(), first: bool) {
            let mut text = format!(r#"{{"metadata":{{"name":"n","managedFields":{value}}}}}"#);
            if first {
                text = format!(r#"{{"metadata":{{"managedFields":{value},"name":"n"}}}}"#);
            }
            let left: Value = serde_json::from_slice(&without_managed_fields(text.as_bytes())).unwrap();
            prop_assert_eq!(left, json!({"metadata": {"name": "n"}}));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Scanner::new().advance(&bytes);
            let _ = Scanner::until_items().advance(&bytes);
        }
    }
}
