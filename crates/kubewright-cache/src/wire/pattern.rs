//! Reading of list items by comparison with an earlier item.
//!
//! Objects made from one template are the same text but for some strings: name, uid, version, a value or two. An [`ItemBase`] is
//! the text of one object with the positions of its strings. Another text is compared with it, sixteen bytes at a time. Where
//! the two differ inside of a string value, the string is skipped in both; where they differ anywhere else, the item does not
//! match. A match has the same brackets, keys, numbers and literals in the same places, so its end and its metadata are known
//! without scanning it, and the differences are the delta to store. Of a sync of small objects this takes 30 % of the CPU:
//! otherwise each is scanned, its metadata deserialised, and a delta searched for.
//!
//! Items that do not match are read by [`scan`](super::scan), [`meta`](super::meta) and [`pack`](super::pack). Unusual items
//! never match, so that only that path has to handle them: metadata with escapes or non-ASCII strings, long texts, empty names.

use std::{ops::Range, sync::Arc};

use kubewright_delta::{Encoder, common_prefix, common_suffix};
use smallvec::SmallVec;

use super::{
    common::Block,
    meta::{Meta, MetaView, TooLong},
    pack::{Base, Packed, SMALL, max_delta},
    roles::{Field, StringSpan, string_spans},
    scan::string_end,
};

/// Upper size of a base. Its stored part is small, but the part that is cut out may be larger.
const MAX_TEXT: usize = 8 * SMALL;

/// Object that the following items of a list are compared with.
pub(crate) struct ItemBase {
    text: Box<[u8]>,
    /// Strings that may differ, in the order of the text.
    strings: Box<[StringSpan]>,
    name: Box<[u8]>,
    /// Empty if it has none.
    namespace: Box<[u8]>,
    uid: Box<[u8]>,
    resource_version: Box<[u8]>,
    /// Metadata as cached objects hold it.
    meta: Meta,
    /// Base for deltas: the stored text, with its type and without the part that is cut out.
    stored: Arc<Base>,
    stored_size: usize,
}

/// Item that matches a base.
pub(crate) struct ItemMatch<'a> {
    base: &'a ItemBase,
    /// End of the item in the text.
    pub(crate) end: usize,
    pub(crate) name: &'a [u8],
    /// Empty if it has none.
    pub(crate) namespace: &'a [u8],
    pub(crate) uid: &'a [u8],
    pub(crate) resource_version: &'a [u8],
    /// Texts of labels and owners that differ from the base, by their number.
    changed: SmallVec<[(usize, &'a [u8]); 4]>,
    size: u32,
}

/// Reason why an item does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It differs outside of string values.
    Different,
    /// It matches so far; the rest has not arrived.
    Incomplete,
}

/// Stored form of a text.
pub(crate) struct Stored {
    pub(crate) base: Arc<Base>,
    pub(crate) size: usize,
    /// Length of the header that replaces the opening brace.
    pub(crate) header: usize,
    /// Part of the text that is not stored.
    pub(crate) cut: Option<Range<usize>>,
}

impl ItemBase {
    /// Creates a base from an object whose metadata is at this position; `block` interns labels and owners. Returns `None` for
    /// unusual objects.
    pub(crate) fn new(
        text: &[u8],
        metadata: Range<usize>,
        stored: Stored,
        block: impl FnOnce(&[u8]) -> Block,
    ) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let own = match &stored.cut {
            Some(cut) => [&text[metadata.start..cut.start], &text[cut.end..metadata.end]].concat(),
            None => text[metadata.clone()].to_vec(),
        };
        let view: MetaView<'_> = serde_json::from_str(std::str::from_utf8(&own).ok()?).ok()?;
        let meta = Meta::from_view(&view, block).ok()?;
        let strings = string_spans(text, metadata, stored.cut.clone(), meta.labels().count())?;
        let strings =
            strings.into_iter().map(|string| string.with_stored(stored.header, stored.cut.as_ref()));
        Some(Self {
            text: text.into(),
            strings: strings.collect(),
            name: view.name.0.as_bytes().into(),
            namespace: view.namespace.as_ref().map_or(&[][..], |namespace| namespace.0.as_bytes()).into(),
            uid: view.uid.0.as_bytes().into(),
            resource_version: view.resource_version.0.as_bytes().into(),
            meta,
            stored: stored.base,
            stored_size: stored.size,
        })
    }

    /// Compares the item that `text` begins with, and writes its delta against the stored text.
    pub(crate) fn compare<'a>(
        &'a self,
        text: &'a [u8],
        delta: &mut Vec<u8>,
    ) -> Result<ItemMatch<'a>, Mismatch> {
        delta.clear();
        let mut encoder = Encoder::new(delta);
        let mut item = ItemMatch {
            base: self,
            end: 0,
            name: &self.name,
            namespace: &self.namespace,
            uid: &self.uid,
            resource_version: &self.resource_version,
            changed: SmallVec::new(),
            size: 0,
        };
        let mut strings = self.strings.iter();
        // Positions in both texts; end of the encoded part of the stored text; size of the decoded text.
        let (mut at, mut from, mut encoded, mut size) = (0, 0, 0, self.stored_size);
        loop {
            let equal = common_prefix(&text[at..], &self.text[from..]);
            (at, from) = (at + equal, from + equal);
            if from == self.text.len() {
                break;
            }
            if at == text.len() {
                return Err(self.incomplete(text));
            }
            // A string that is longer in the item differs at its end in the base.
            let string = strings.find(|string| from <= string.end).ok_or(Mismatch::Different)?;
            let same = from.checked_sub(string.start).ok_or(Mismatch::Different)?;
            let start = at - same;
            // From its start: both may have a backslash in the equal part.
            let end = string_end(text, start).map_err(|_| self.incomplete(text))?;
            let (new, old) = (&text[start..end], &self.text[string.start..string.end]);
            (at, from) = (end, string.end);
            let Some(stored) = string.stored else { continue };
            item.set(string.field, new).ok_or(Mismatch::Different)?;
            let suffix = common_suffix(&new[same..], &old[same..]);
            let differs = stored + same;
            encoder.step(encoded, differs - encoded, &new[same..new.len() - suffix]);
            encoded = stored + old.len() - suffix;
            size = size + new.len() - old.len();
        }
        encoder.step(encoded, self.stored_size - encoded, &[]);
        if size > SMALL || delta.len() > max_delta(size) || item.name.is_empty() {
            return Err(Mismatch::Different);
        }
        item.end = at;
        item.size = u32::try_from(size).map_err(|_| Mismatch::Different)?;
        Ok(item)
    }

    /// Classifies a text that ends early. One that is much longer than the base cannot be small; waiting for its end would
    /// compare it with every frame.
    fn incomplete(&self, text: &[u8]) -> Mismatch {
        if text.len() > self.text.len() + SMALL { Mismatch::Different } else { Mismatch::Incomplete }
    }
}

impl<'a> ItemMatch<'a> {
    /// Takes a string that differs from the base.
    fn set(&mut self, field: Field, new: &'a [u8]) -> Option<()> {
        if field == Field::None {
            return Some(());
        }
        if !is_plain(new) {
            return None;
        }
        match field {
            Field::Name => self.name = new,
            Field::Namespace => self.namespace = new,
            Field::Uid => self.uid = new,
            Field::ResourceVersion => self.resource_version = new,
            Field::Shared(number) => self.changed.push((number, new)),
            Field::OtherMetadata | Field::None => {}
        }
        Some(())
    }

    /// Returns the metadata; `block` interns labels and owners.
    pub(crate) fn meta(&self, block: impl FnOnce(&[u8]) -> Block) -> Result<Meta, TooLong> {
        self.base.meta.with(self.uid, self.resource_version, &self.changed, block)
    }

    /// Returns the packed object; `delta` is what [`ItemBase::compare`] has written.
    pub(crate) fn packed(&self, delta: &[u8]) -> Packed {
        Packed::from_delta(delta, self.size, &self.base.stored)
    }
}

/// Whether a string has neither escapes nor bytes beyond printable ASCII.
fn is_plain(text: &[u8]) -> bool {
    let unusual = |byte: &&u8| !matches!(byte, b' '..=b'~') || **byte == b'\\';
    // Counting is vectorised; strings are short, and nearly all are plain.
    text.iter().filter(unusual).count() == 0
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
pub(super) mod tests;
