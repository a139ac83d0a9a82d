//! Cutting a response body into objects, frame by frame, without waiting for its end.

use memchr::memchr;
use serde::Deserialize;

use super::{
    meta::Text,
    pattern::Unread,
    scan::{Progress, Scanner, Spans},
};

/// A body that is not what a list or a watch answers with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    #[error("the body is not a JSON object with a list of items")]
    NotAList,
    #[error("the body ends in the middle of an object")]
    Truncated,
    #[error("the body is not valid around its items: {0}")]
    Envelope(String),
}

/// How much of a frame is copied at a time to complete what an earlier one began.
const PIECE: usize = 1024;

/// What a list says beside its items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<u64>,
}

/// Who the objects of a list are for.
pub(crate) trait Items {
    /// Takes the object that the text begins with if it is like one before, without looking where it ends. Says where that was.
    fn like_before(&mut self, _text: &[u8]) -> Result<usize, Unread> {
        Err(Unread::Unlike)
    }

    /// The next object.
    fn item(&mut self, text: &[u8], spans: Spans);
}

/// Takes a list apart while it arrives.
pub(crate) struct ListSplitter {
    buffer: Vec<u8>,
    stage: Stage,
    /// Everything but the items: small, and parsed when all of it is there.
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

    /// Takes the next frame and hands over every object that is complete now.
    pub(crate) fn feed(&mut self, frame: &[u8], items: &mut impl Items) -> Result<(), SplitError> {
        let mut rest = frame;
        // What an earlier frame began is completed in small pieces: the rest of this one is read where it is.
        while !self.buffer.is_empty() && !rest.is_empty() {
            let (piece, later) = rest.split_at(PIECE.min(rest.len()));
            let mut held = std::mem::take(&mut self.buffer);
            let before = held.len();
            held.extend_from_slice(piece);
            let used = self.take_apart(&held, items)?;
            if let Some(ours) = used.checked_sub(before) {
                rest = &rest[ours..];
                held.clear();
            } else {
                rest = later;
                held.drain(..used);
            }
            self.buffer = held;
        }
        let used = self.take_apart(rest, items)?;
        self.buffer.extend_from_slice(&rest[used..]);
        Ok(())
    }

    fn take_apart(&mut self, bytes: &[u8], items: &mut impl Items) -> Result<usize, SplitError> {
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
                    Some(b'{') => match items.like_before(&bytes[at..]) {
                        Ok(end) => at += end,
                        // To be compared once more is less than to be scanned.
                        Err(Unread::Incomplete) => return Ok(at),
                        Err(Unread::Unlike) => self.stage = Stage::Item(Scanner::new()),
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

    /// The body has ended: what the list says of itself.
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

/// Takes a watch apart: one event a line.
#[derive(Default)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
}

impl LineSplitter {
    /// Takes the next frame and calls `line` for every line that is complete now.
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

    /// The body has ended: whether that was between two lines.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        if self.buffer.iter().all(u8::is_ascii_whitespace) { Ok(()) } else { Err(SplitError::Truncated) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes everything as it comes.
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
    fn a_list_comes_apart_the_same_in_any_pieces() {
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
    fn metadata_behind_the_items_counts_as_well() {
        let (items, meta) = split(r#"{"items":[{}],"metadata":{"resourceVersion":"5"}}"#, 4);
        assert_eq!((items.len(), meta.unwrap().resource_version.as_str()), (1, "5"));
    }

    #[test]
    fn empty_lists_have_many_faces() {
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
    fn a_body_that_is_no_list_is_refused() {
        for text in ["[]", "<html>", r#"{"items":[1]}"#, r#"{"items":[[]]}"#] {
            assert_eq!(split(text, 2).1, Err(SplitError::NotAList), "{text}");
        }
    }

    proptest! {
        #[test]
        fn lines_come_apart_the_same_in_any_pieces(lines in prop::collection::vec("[a-z]{1,9}", 0..9), step in 1usize..12) {
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
