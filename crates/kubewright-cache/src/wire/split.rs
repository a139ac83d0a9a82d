//! Splitters that cut a response body into objects, frame by frame.

use memchr::memchr;
use serde::Deserialize;

use super::{
    meta::Text,
    pattern::Mismatch,
    scan::{Progress, Scanner, Spans},
};

/// Error of a body that is neither a list nor a watch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    #[error("the body is not a JSON object with a list of items")]
    NotAList,
    #[error("the body ends in the middle of an object")]
    Truncated,
    #[error("the body is not valid around its items: {0}")]
    Envelope(String),
}

/// Number of bytes copied at a time to complete an object that an earlier frame began.
const PIECE: usize = 1024;

/// Metadata of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<u64>,
}

/// Consumer of the items of a list.
pub(crate) trait Items {
    /// Takes the item that the text begins with if it matches an earlier one, and returns its end.
    fn match_item(&mut self, _text: &[u8]) -> Result<usize, Mismatch> {
        Err(Mismatch::Different)
    }

    /// Takes an item.
    fn item(&mut self, text: &[u8], spans: Spans);
}

/// Splits a list while it arrives.
pub(crate) struct ListSplitter {
    buffer: Vec<u8>,
    stage: Stage,
    /// The list without its items: small, and parsed at the end.
    envelope: Vec<u8>,
}

enum Stage {
    Head(Scanner),
    /// Between items.
    Between,
    Item(Scanner),
    Tail,
}

impl ListSplitter {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::new(), stage: Stage::Head(Scanner::until_items()), envelope: Vec::new() }
    }

    /// Takes the next frame and passes on every item that is complete.
    pub(crate) fn feed(&mut self, frame: &[u8], items: &mut impl Items) -> Result<(), SplitError> {
        let mut rest = frame;
        // An item that an earlier frame began is completed in small pieces; the rest of this frame is read in place.
        while !self.buffer.is_empty() && !rest.is_empty() {
            let (piece, later) = rest.split_at(PIECE.min(rest.len()));
            let mut held = std::mem::take(&mut self.buffer);
            let before = held.len();
            held.extend_from_slice(piece);
            let used = self.split(&held, items)?;
            if let Some(ours) = used.checked_sub(before) {
                rest = &rest[ours..];
                held.clear();
            } else {
                rest = later;
                held.drain(..used);
            }
            self.buffer = held;
        }
        let used = self.split(rest, items)?;
        self.buffer.extend_from_slice(&rest[used..]);
        Ok(())
    }

    fn split(&mut self, bytes: &[u8], items: &mut impl Items) -> Result<usize, SplitError> {
        let mut at = 0;
        loop {
            match &mut self.stage {
                Stage::Head(scanner) => match scanner.advance(&bytes[at..]) {
                    Progress::Incomplete => return Ok(at),
                    Progress::Items(end) => {
                        self.envelope.extend_from_slice(&bytes[at..at + end - 1]);
                        self.envelope.extend_from_slice(b"[");
                        at += end;
                        self.stage = Stage::Between;
                    }
                    Progress::Complete(end) => {
                        self.envelope.extend_from_slice(&bytes[at..at + end]);
                        at += end;
                        self.stage = Stage::Tail;
                    }
                    Progress::Enough | Progress::Unbalanced => return Err(SplitError::NotAList),
                },
                Stage::Between => match bytes.get(at) {
                    None => return Ok(at),
                    Some(b' ' | b'\t' | b'\r' | b'\n' | b',') => at += 1,
                    Some(b'{') => match items.match_item(&bytes[at..]) {
                        Ok(end) => at += end,
                        // Comparing again costs less than scanning.
                        Err(Mismatch::Incomplete) => return Ok(at),
                        Err(Mismatch::Different) => self.stage = Stage::Item(Scanner::new()),
                    },
                    Some(b']') => self.stage = Stage::Tail,
                    Some(_) => return Err(SplitError::NotAList),
                },
                Stage::Item(scanner) => match scanner.advance(&bytes[at..]) {
                    Progress::Incomplete => return Ok(at),
                    Progress::Complete(end) => {
                        let Stage::Item(scanner) = std::mem::replace(&mut self.stage, Stage::Between) else {
                            return Err(SplitError::NotAList);
                        };
                        items.item(&bytes[at..at + end], scanner.into_spans());
                        at += end;
                    }
                    Progress::Items(_) | Progress::Enough | Progress::Unbalanced => {
                        return Err(SplitError::NotAList);
                    }
                },
                Stage::Tail => {
                    self.envelope.extend_from_slice(&bytes[at..]);
                    return Ok(bytes.len());
                }
            }
        }
    }

    /// Returns the metadata of the list at the end of the body.
    pub(crate) fn finish(self) -> Result<ListMeta, SplitError> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow, default)]
            metadata: Option<Meta<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta<'a> {
            #[serde(borrow, default)]
            resource_version: Text<'a>,
            #[serde(borrow, default, rename = "continue")]
            continue_token: Text<'a>,
            #[serde(default)]
            remaining_item_count: Option<u64>,
        }
        if !matches!(self.stage, Stage::Tail) {
            return Err(SplitError::Truncated);
        }
        let envelope: Envelope<'_> = serde_json::from_slice(&self.envelope).map_err(|error| {
            if error.is_eof() { SplitError::Truncated } else { SplitError::Envelope(error.to_string()) }
        })?;
        Ok(envelope.metadata.map_or_else(ListMeta::default, |meta| ListMeta {
            resource_version: meta.resource_version.0.into_owned(),
            continue_token: Some(meta.continue_token.0.into_owned()).filter(|token| !token.is_empty()),
            remaining: meta.remaining_item_count,
        }))
    }
}

/// Splits a watch into lines, one event each.
#[derive(Default)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
}

impl LineSplitter {
    /// Takes the next frame and calls `line` for every line that is complete.
    pub(crate) fn feed(&mut self, frame: &[u8], mut line: impl FnMut(&[u8])) {
        let mut rest = frame;
        if !self.buffer.is_empty() {
            match memchr(b'\n', rest) {
                None => {
                    self.buffer.extend_from_slice(rest);
                    return;
                }
                Some(end) => {
                    self.buffer.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    line(&self.buffer);
                    self.buffer.clear();
                }
            }
        }
        while let Some(end) = memchr(b'\n', rest) {
            if end > 0 {
                line(&rest[..end]);
            }
            rest = &rest[end + 1..];
        }
        self.buffer.extend_from_slice(rest);
    }

    /// Checks that the body ended between two lines.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        if self.buffer.iter().all(u8::is_ascii_whitespace) { Ok(()) } else { Err(SplitError::Truncated) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Collects the items.
    #[derive(Default)]
    struct Texts(Vec<String>);

    impl Items for Texts {
        fn item(&mut self, text: &[u8], _: Spans) {
            self.0.push(String::from_utf8_lossy(text).into_owned());
        }
    }

    fn split(text: &str, step: usize) -> (Vec<String>, Result<ListMeta, SplitError>) {
        let mut splitter = ListSplitter::new();
        let mut items = Texts::default();
        for frame in text.as_bytes().chunks(step) {
            if let Err(error) = splitter.feed(frame, &mut items) {
                return (items.0, Err(error));
            }
        }
        (items.0, splitter.finish())
    }

    const LIST: &str = r#" {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12","continue":"abc","remainingItemCount":3},
        "items":[ {"metadata":{"name":"a]"}} , {"metadata":{"name":"b"}}]}
"#;

    #[test]
    fn a_list_is_split_equally_in_frames_of_any_size() {
        for step in 1..LIST.len() {
            let (items, meta) = split(LIST, step);
            assert_eq!(
                items,
                [r#"{"metadata":{"name":"a]"}}"#, r#"{"metadata":{"name":"b"}}"#],
                "step {step}"
            );
            let meta = meta.unwrap();
            assert_eq!(meta.resource_version, "12");
            assert_eq!(meta.continue_token.as_deref(), Some("abc"));
            assert_eq!(meta.remaining, Some(3));
        }
    }

    #[test]
    fn metadata_may_follow_the_items() {
        let (items, meta) = split(r#"{"items":[{}],"metadata":{"resourceVersion":"5"}}"#, 4);
        assert_eq!((items.len(), meta.unwrap().resource_version.as_str()), (1, "5"));
    }

    #[test]
    fn empty_lists_are_accepted_in_every_form() {
        for text in
            [r#"{"items":[],"metadata":{}}"#, r#"{"items":null,"metadata":{}}"#, r#"{"metadata":{}}"#, "{}"]
        {
            assert_eq!(split(text, 3), (vec![], Ok(ListMeta::default())), "{text}");
        }
    }

    #[test]
    fn a_list_cut_off_anywhere_is_truncated() {
        let text = LIST.trim();
        for end in 0..text.len() {
            let (_, meta) = split(&text[..end], 5);
            assert_eq!(meta, Err(SplitError::Truncated), "cut at {end}");
        }
    }

    #[test]
    fn a_body_that_is_no_list_is_an_error() {
        for text in ["[]", "<html>", r#"{"items":[1]}"#, r#"{"items":[[]]}"#] {
            assert_eq!(split(text, 2).1, Err(SplitError::NotAList), "{text}");
        }
    }

    proptest! {
        #[test]
        fn lines_are_split_equally_in_frames_of_any_size(lines in prop::collection::vec("[a-z]{1,9}", 0..9), step in 1usize..12) {
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let mut splitter = LineSplitter::default();
            let mut found = Vec::new();
            for frame in text.as_bytes().chunks(step) {
                splitter.feed(frame, |line| found.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            prop_assert_eq!(found, lines);
            prop_assert_eq!(splitter.finish(), Ok(()));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, step in 1usize..9) {
            let mut splitter = ListSplitter::new();
            for frame in bytes.chunks(step) {
                if splitter.feed(frame, &mut Texts::default()).is_err() { return Ok(()); }
            }
            let _ = splitter.finish();
        }
    }

    #[test]
    fn a_line_without_an_end_is_truncated() {
        let mut splitter = LineSplitter::default();
        splitter.feed(b"{\"type\":\"AD", |_| panic!("no line is complete"));
        assert_eq!(splitter.finish(), Err(SplitError::Truncated));
    }
}
