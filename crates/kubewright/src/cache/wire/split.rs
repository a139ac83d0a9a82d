//! Cutting a response body into objects, frame by frame, without waiting for its end.

use memchr::memchr;
use serde::Deserialize;

use super::{
    meta::Text,
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

    /// Takes the next frame and calls `item` for every object that is complete now.
    pub(crate) fn feed(
        &mut self,
        frame: &[u8],
        mut item: impl FnMut(&[u8], Spans),
    ) -> Result<(), SplitError> {
        let mut rest = frame;
        // What an earlier frame began is completed in small pieces: the rest of this one is read where it is.
        while !self.buffer.is_empty() && !rest.is_empty() {
            let (piece, later) = rest.split_at(PIECE.min(rest.len()));
            let mut held = std::mem::take(&mut self.buffer);
            let before = held.len();
            held.extend_from_slice(piece);
            let used = self.take_apart(&held, &mut item)?;
            if let Some(ours) = used.checked_sub(before) {
                rest = &rest[ours..];
                held.clear();
            } else {
                rest = later;
                held.drain(..used);
            }
            self.buffer = held;
        }
        let used = self.take_apart(rest, &mut item)?;
        self.buffer.extend_from_slice(&rest[used..]);
        Ok(())
    }

    fn take_apart(&mut self, bytes: &[u8], item: &mut impl FnMut(&[u8], Spans)) -> Result<usize, SplitError> {
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
                    Some(b'{') => self.stage = Stage::Item(Scanner::new()),
                    Some(b']') => self.stage = Stage::Tail,
                    Some(_) => return Err(SplitError::NotAList),
                },
                Stage::Item(scanner) => match scanner.advance(&bytes[at..]) {
                    Progress::Incomplete => return Ok(at),
                    Progress::Complete(end) => {
                        let Stage::Item(scanner) = std::mem::replace(&mut self.stage, Stage::Between) else {
                            return Err(SplitError::NotAList);
                        };
                        item(&bytes[at..at + end], scanner.into_spans());
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

    fn split(text: &str, step: usize) -> (Vec<String>, Result<ListMeta, SplitError>) {
        let mut splitter = ListSplitter::new();
        let mut items = Vec::new();
        for frame in text.as_bytes().chunks(step) {
            let fed = splitter.feed(frame, |item, _| items.push(String::from_utf8(item.to_vec()).unwrap()));
            if let Err(error) = fed {
                return (items, Err(error));
            }
        }
        (items, splitter.finish())
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
                if splitter.feed(frame, |_, _| ()).is_err() { return Ok(()); }
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
