//! Strings of a base that may differ in another object of the same structure, and the metadata field that each holds.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::meta::{LABEL_TEXTS, OWNER_TEXTS};

/// Metadata field that a string holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    /// Text of the shared block of labels and owners, by its number.
    Shared(usize),
    /// Another field of the metadata.
    OtherMetadata,
    /// Outside of the metadata, or in the part of it that is not stored.
    None,
}

/// String that is the value of a member or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StringSpan {
    /// Position between the quotes.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) field: Field,
    /// Position in the stored text, unless it is cut out.
    pub(super) stored: Option<usize>,
}

impl StringSpan {
    /// Sets the position in the stored text, whose opening brace is replaced by a header and from which `cut` is removed.
    pub(super) fn with_stored(mut self, header: usize, cut: Option<&Range<usize>>) -> Self {
        let place = header + self.start - 1;
        self.stored = match cut {
            Some(cut) if self.start >= cut.end => Some(place - cut.len()),
            Some(cut) if self.start >= cut.start => None,
            _ => Some(place),
        };
        self
    }
}

/// Open bracket.
struct Open<'a> {
    is_object: bool,
    /// Key of the member whose value is being read; `None` before its colon.
    key: Option<&'a [u8]>,
    /// Number of members or elements before this one.
    number: usize,
}

/// Returns the strings of an object that may differ, in order, or `None` if it cannot be a base.
///
/// Its type is not among them, because another type is an error, nor are keys, because they decide what a string means.
pub(super) fn string_spans(
    text: &[u8],
    metadata: Range<usize>,
    cut: Option<Range<usize>>,
    labels: usize,
) -> Option<Vec<StringSpan>> {
    // The walk below relies on valid JSON. Few objects become a base.
    serde_json::from_slice::<IgnoredAny>(text).ok()?;
    let mut walk = Walk { text, metadata, cut, labels, open: Vec::new(), spans: Vec::new() };
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = super::scan::string_end(text, at).ok()?;
                walk.string(at..end)?;
                at = end + 1;
            }
            b'{' | b'[' => walk.open.push(Open { is_object: byte == b'{', key: None, number: 0 }),
            b'}' | b']' => {
                walk.open.pop();
            }
            b',' => {
                let open = walk.open.last_mut()?;
                (open.key, open.number) = (None, open.number + 1);
            }
            _ => {}
        }
    }
    Some(walk.spans)
}

struct Walk<'a> {
    text: &'a [u8],
    metadata: Range<usize>,
    cut: Option<Range<usize>>,
    /// Number of labels.
    labels: usize,
    open: Vec<Open<'a>>,
    spans: Vec<StringSpan>,
}

impl Walk<'_> {
    fn string(&mut self, span: Range<usize>) -> Option<()> {
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.contains(&span.start));
        let in_metadata = !is_cut && self.metadata.contains(&span.start);
        let innermost = self.open.last_mut()?;
        if innermost.is_object && innermost.key.is_none() {
            let key = &self.text[span];
            // An escaped key may equal a metadata field.
            if in_metadata && key.contains(&b'\\') {
                return None;
            }
            innermost.key = Some(key);
            return Some(());
        }
        let field = if in_metadata { self.field()? } else { Field::None };
        let is_type = matches!(&self.open[..], [Open { key: Some(b"apiVersion" | b"kind"), .. }]);
        if !is_type {
            self.spans.push(StringSpan { start: span.start, end: span.end, field, stored: None });
        }
        Some(())
    }

    fn field(&self) -> Option<Field> {
        // serde accepts a structure written as an array of its fields; such an object is not a base.
        let [_, metadata, inner @ ..] = &self.open[..] else { return None };
        let field = metadata.key?;
        Some(match (field, inner) {
            (b"name", []) => Field::Name,
            (b"namespace", []) => Field::Namespace,
            (b"uid", []) => Field::Uid,
            (b"resourceVersion", []) => Field::ResourceVersion,
            (b"labels", [label]) => Field::Shared(LABEL_TEXTS * label.number + 1),
            (b"ownerReferences", [owner, reference]) => {
                let field = reference.key?;
                let before = LABEL_TEXTS * self.labels + (OWNER_TEXTS.len() + 1) * owner.number;
                match OWNER_TEXTS.iter().position(|text| text.as_bytes() == field) {
                    Some(at) => Field::Shared(before + at),
                    None => Field::OtherMetadata,
                }
            }
            _ => Field::OtherMetadata,
        })
    }
}
