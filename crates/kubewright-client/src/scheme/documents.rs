//! The documents of an input, before anybody looks into them.
//!
//! YAML reserves a line that begins with `---` for the start of a document, whatever stands before it, so the input
//! is cut there first. A broken document therefore ends at its own border and never takes the next one with it.

use super::{
    error::{DecodeProblem, ReadError},
    json::JsonReader,
    limits::Limits,
    node::{Mark, Node, NodeValue},
    yaml::YamlReader,
};

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Yields the values of all documents of an input; empty documents are passed over.
pub(super) struct Documents<'i> {
    rest: &'i [u8],
    next_line: usize,
    limits: Limits,
    reader: Reader<'i>,
    /// The value that showed that a piece is JSON.
    pending: Option<Node>,
}

enum Reader<'i> {
    None,
    Yaml(Box<YamlReader<'i>>),
    Json(JsonReader<'i>),
}

/// A piece of the input from one `---` to the next.
struct Chunk<'i> {
    bytes: &'i [u8],
    first_line: usize,
}

impl<'i> Documents<'i> {
    pub(super) fn new(input: &'i [u8], limits: Limits) -> Self {
        let rest = input.strip_prefix(BOM).unwrap_or(input);
        Self { rest, next_line: 1, limits, reader: Reader::None, pending: None }
    }

    /// The next value that is not null.
    pub(super) fn next(&mut self) -> Option<Result<Node, ReadError>> {
        loop {
            match self.pending.take().map(Ok).or_else(|| self.read()) {
                Some(Ok(node)) if matches!(node.value, NodeValue::Null) => {}
                Some(found) => return Some(found),
                None => {
                    let chunk = self.chunk()?;
                    if let Err(error) = self.open(&chunk) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// The next value of the piece at hand.
    fn read(&mut self) -> Option<Result<Node, ReadError>> {
        match &mut self.reader {
            Reader::None => None,
            Reader::Yaml(reader) => reader.next(),
            Reader::Json(reader) => {
                let next = reader.next();
                if matches!(next, Some(Err(_))) && !reader.skip_to_next() {
                    self.reader = Reader::None;
                }
                next
            }
        }
    }

    /// Cuts off the next piece.
    fn chunk(&mut self) -> Option<Chunk<'i>> {
        if self.rest.is_empty() {
            return None;
        }
        let first_line = self.next_line;
        let mut end = 0;
        let mut prologue = Prologue::Blank;
        for line in self.rest.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_prefix(BOM).unwrap_or(line);
            if begins_document(text) {
                // After directives the marker belongs to the same document; otherwise it begins the next one.
                if end > 0 && prologue != Prologue::Directives {
                    break;
                }
                prologue = Prologue::Over;
            } else {
                prologue.see(text);
            }
            end += line.len();
            self.next_line += 1;
        }
        let (bytes, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Chunk { bytes: bytes.strip_prefix(BOM).unwrap_or(bytes), first_line })
    }

    /// Chooses the reader for a piece.
    fn open(&mut self, chunk: &Chunk<'i>) -> Result<(), ReadError> {
        self.reader = Reader::None;
        let begin = Mark { line: chunk.first_line, column: 1 };
        if chunk.bytes.len() > self.limits.bytes {
            let problem = DecodeProblem::TooLarge { limit: self.limits.bytes };
            return Err(ReadError { at: begin, problem });
        }
        let text = std::str::from_utf8(chunk.bytes).map_err(|error| {
            let valid = &chunk.bytes[..error.valid_up_to()];
            let line = chunk.first_line + memchr::memchr_iter(b'\n', valid).count();
            let column = valid.len() - memchr::memrchr(b'\n', valid).map_or(0, |at| at + 1) + 1;
            ReadError { at: Mark { line, column }, problem: DecodeProblem::Encoding }
        })?;
        self.reader = self.reader_for(text, chunk.first_line);
        Ok(())
    }

    /// Flow-style YAML begins with a brace too. If the first value reads as JSON, the text is a JSON stream; if not,
    /// but all of it is good YAML, it is YAML; if it is neither, its quotes tell what it was meant to be.
    fn reader_for(&mut self, text: &'i str, first_line: usize) -> Reader<'i> {
        let yaml = || Box::new(YamlReader::new(text, first_line, self.limits));
        let Some((json, line)) = json_part(text, first_line) else { return Reader::Yaml(yaml()) };
        let json_from_start = || JsonReader::new(json, line, self.limits);
        let mut reader = json_from_start();
        if let Some(Ok(node)) = reader.next() {
            self.pending = Some(node);
            return Reader::Json(reader);
        }
        let mut attempt = yaml();
        let good_yaml = std::iter::from_fn(|| attempt.next()).all(|document| document.is_ok());
        let quoted = matches!(json[1..].trim_start().as_bytes().first(), Some(b'"' | b'}' | b'{'));
        if quoted && !good_yaml { Reader::Json(json_from_start()) } else { Reader::Yaml(yaml()) }
    }
}

/// What a piece holds before its first `---`.
#[derive(PartialEq)]
enum Prologue {
    Blank,
    Directives,
    Over,
}

impl Prologue {
    fn see(&mut self, line: &[u8]) {
        match line.trim_ascii().first() {
            None | Some(b'#') => {}
            // After the end of a document another prologue may follow.
            Some(b'.')
                if matches!(line.strip_prefix(b"..."), Some([] | [b' ' | b'\t' | b'\r' | b'\n', ..])) =>
            {
                *self = Self::Blank;
            }
            Some(b'%') if line[0] == b'%' && *self != Self::Over => *self = Self::Directives,
            Some(_) => *self = Self::Over,
        }
    }
}

/// Whether a line is a document marker: `---` with nothing or white space behind it.
fn begins_document(line: &[u8]) -> bool {
    matches!(line.strip_prefix(b"---"), Some([] | [b' ' | b'\t' | b'\r' | b'\n', ..]))
}

/// The text from its opening brace or bracket on and the line of that, if the first thing in it is one.
fn json_part(text: &str, first_line: usize) -> Option<(&str, usize)> {
    let mut at = 0;
    for (line, part) in (first_line..).zip(text.split_inclusive('\n')) {
        let content = if begins_document(part.as_bytes()) { &part[3..] } else { part };
        let content = content.trim_start();
        match content.as_bytes().first() {
            None | Some(b'#') => {}
            Some(b'{' | b'[') => return Some((&text[at + part.len() - content.len()..], line)),
            Some(_) => return None,
        }
        at += part.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Vec<Result<(usize, String), (usize, String)>> {
        let mut documents = Documents::new(input.as_bytes(), Limits::default());
        std::iter::from_fn(|| documents.next())
            .map(|next| match next {
                Ok(node) => Ok((node.at.line, node.into_json().to_string())),
                Err(error) => Err((error.at.line, error.problem.to_string())),
            })
            .collect()
    }

    fn good(input: &str) -> Vec<(usize, String)> {
        read(input).into_iter().map(Result::unwrap).collect()
    }

    fn document(line: usize, json: &str) -> (usize, String) {
        (line, json.to_owned())
    }

    #[test]
    fn markers_separate_documents_and_empty_ones_are_passed_over() {
        let input = "# a header\n---\n---\na: 1\n--- # next\n\n# only a comment\n---\nb: 2\n---\n~\n---\n";
        assert_eq!(good(input), [document(4, r#"{"a":1}"#), document(9, r#"{"b":2}"#)]);
        assert_eq!(good(""), []);
        assert_eq!(good("\n \n# nothing\n"), []);
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_change_nothing() {
        let unix = good("a: 1\n---\nb:\n- x\n");
        assert_eq!(good("\u{feff}a: 1\r\n---\r\nb:\r\n- x\r\n"), unix);
        assert_eq!(good("\u{feff}a: 1\n\u{feff}---\nb:\n- x\n"), unix);
    }

    #[test]
    fn a_marker_inside_a_text_is_no_marker() {
        let input = "a: |\n  ---\n  x\nb: ---y\nc: '\n  --- z'\n";
        assert_eq!(good(input), [document(1, r#"{"a":"---\nx\n","b":"---y","c":" --- z"}"#)]);
    }

    #[test]
    fn directives_belong_to_the_document_after_them() {
        let input = "%YAML 1.1\n# why\n---\na: 1\n...\n%YAML 1.2\n---\nb: 2\n...\nc: 3\n";
        let expected = [document(4, r#"{"a":1}"#), document(8, r#"{"b":2}"#), document(10, r#"{"c":3}"#)];
        assert_eq!(good(input), expected);
    }

    #[test]
    fn json_streams_and_yaml_may_be_mixed() {
        let input = "{\"a\":1}{\"a\":2}\n{\"a\":3}\n---\nb: 1\n---\n{c: flow}\n--- {\"d\":\n 4}\n";
        let expected = [
            document(1, r#"{"a":1}"#),
            document(1, r#"{"a":2}"#),
            document(2, r#"{"a":3}"#),
            document(4, r#"{"b":1}"#),
            document(6, r#"{"c":"flow"}"#),
            document(7, r#"{"d":4}"#),
        ];
        assert_eq!(good(input), expected);
    }

    #[test]
    fn a_broken_document_hides_no_other() {
        let input = "a: 1\n---\nb: [1\n---\nc: \"open\nd: 2\n---\n{\"e\": 1\n---\nf: 6\n";
        let found = read(input);
        let lines: Vec<_> = found
            .iter()
            .map(|next| match next {
                Ok((line, _)) => (true, *line),
                Err((line, _)) => (false, *line),
            })
            .collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(lines[0], (true, 1));
        assert!(matches!(lines[1], (false, 3 | 4)), "{found:?}");
        assert!(matches!(lines[2], (false, 5..=7)), "{found:?}");
        assert!(matches!(lines[3], (false, 8 | 9)), "{found:?}");
        assert_eq!(lines[4], (true, 10));
    }

    #[test]
    fn a_broken_document_before_an_end_marker_hides_no_other() {
        let found = read("a: [1\n...\nb: 2\n...\n~: x\n...\nc: 3\n");
        let good: Vec<_> = found.iter().filter_map(|next| next.as_ref().ok()).collect();
        assert_eq!(good, [&document(3, r#"{"b":2}"#), &document(7, r#"{"c":3}"#)], "{found:?}");
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_refused_with_their_line() {
        let input = b"a: 1\n---\nb: 2\nc: \xff\n---\nd: 4\n";
        let mut documents = Documents::new(input, Limits::default());
        assert!(documents.next().unwrap().is_ok());
        let error = documents.next().unwrap().unwrap_err();
        assert_eq!((error.at, error.problem), (Mark { line: 4, column: 4 }, DecodeProblem::Encoding));
        assert_eq!(documents.next().unwrap().unwrap().at.line, 6);
        assert!(documents.next().is_none());
    }

    #[test]
    fn a_document_above_the_limit_is_refused_and_the_next_is_read() {
        let limits = Limits { bytes: 20, ..Limits::default() };
        let input = "a: 1\n---\nb: 0123456789012345678901\n---\nc: 3\n";
        let mut documents = Documents::new(input.as_bytes(), limits);
        assert!(documents.next().unwrap().is_ok());
        let error = documents.next().unwrap().unwrap_err();
        assert_eq!((error.at.line, error.problem), (2, DecodeProblem::TooLarge { limit: 20 }));
        assert!(documents.next().unwrap().is_ok());
    }
}
