//! Objects that look like an earlier one, read by what differs from it.
//!
//! The objects of a template are the same text but for some strings in it: a name, an identity, a version, a value or two. A
//! [`Pattern`] is the text of one of them and knows where its strings are. Another text is compared with it; where the two
//! differ inside of a string that is a value, the string is passed over in both, and where they differ anywhere else, the
//! pattern does not fit. What fits has the same brackets, the same keys, numbers and words in the same places, so where it ends and where
//! its metadata lies is known without scanning it, and what it has of its own is the script to keep it by.
//!
//! Whoever has a text that no pattern fits reads it in the way that takes longer ([`scan`](super::scan),
//! [`meta`](super::meta), [`pack`](super::pack)). Whatever is unusual is left to that way, so that only one of the two has to
//! be right about it: a metadata whose strings need more than being copied, a text too long, a name that is none.

use std::{ops::Range, sync::Arc};

use kubewright_difference::{Steps, common, common_at_end};
use smallvec::SmallVec;

use super::{
    common::Block,
    meta::{Meta, MetaView, TooLong},
    pack::{Dictionary, Packed, SMALL, most},
    roles::{Role, Value, values},
    scan::string_end,
};

/// The longest text that others are compared with. What is kept of it is small, but what is cut out need not be.
const LONGEST: usize = 8 * SMALL;

/// An object that others may look like.
pub(crate) struct Pattern {
    text: Box<[u8]>,
    /// The strings that may differ, in the order of the text.
    values: Box<[Value]>,
    name: Box<[u8]>,
    /// Empty if it has none.
    namespace: Box<[u8]>,
    uid: Box<[u8]>,
    resource_version: Box<[u8]>,
    /// All of it once more, as it is at hand in a cached object.
    meta: Meta,
    /// The text as it is kept: with its type, and without what is cut out.
    kept: Arc<Dictionary>,
    kept_size: usize,
}

/// An object that a pattern fits.
pub(crate) struct Fitting<'a> {
    pattern: &'a Pattern,
    /// Where it ends.
    pub(crate) end: usize,
    pub(crate) name: &'a [u8],
    /// Empty if it has none.
    pub(crate) namespace: &'a [u8],
    pub(crate) uid: &'a [u8],
    pub(crate) resource_version: &'a [u8],
    /// Which texts of labels and owners are not those of the pattern.
    changed: SmallVec<[(usize, &'a [u8]); 4]>,
    size: u32,
}

/// Why an object was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not like the pattern.
    Unlike,
    /// As far as it is there it may be.
    Incomplete,
}

/// How the text of an object is kept.
pub(crate) struct Kept {
    pub(crate) text: Arc<Dictionary>,
    pub(crate) size: usize,
    /// What was put in the place of its opening brace.
    pub(crate) header: usize,
    /// What was cut out of it.
    pub(crate) cut: Option<Range<usize>>,
}

impl Pattern {
    /// Of an object that was read in the way that takes longer, its metadata being there; `block` keeps what others may have too.
    /// None if it is of a sort that nothing will be compared with.
    pub(crate) fn of(
        text: &[u8],
        metadata: Range<usize>,
        kept: Kept,
        block: impl FnOnce(&[u8]) -> Block,
    ) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let own = match &kept.cut {
            Some(cut) => [&text[metadata.start..cut.start], &text[cut.end..metadata.end]].concat(),
            None => text[metadata.clone()].to_vec(),
        };
        let view: MetaView<'_> = serde_json::from_str(std::str::from_utf8(&own).ok()?).ok()?;
        let meta = Meta::from_view(&view, block).ok()?;
        let values = values(text, metadata, kept.cut.clone(), meta.labels().count())?;
        let values = values.into_iter().map(|value| value.kept_behind(kept.header, kept.cut.as_ref()));
        Some(Self {
            text: text.into(),
            values: values.collect(),
            name: view.name.0.as_bytes().into(),
            namespace: view.namespace.as_ref().map_or(&[][..], |namespace| namespace.0.as_bytes()).into(),
            uid: view.uid.0.as_bytes().into(),
            resource_version: view.resource_version.0.as_bytes().into(),
            meta,
            kept: kept.text,
            kept_size: kept.size,
        })
    }

    /// The object that `text` begins with. `script` is then what it is kept by.
    pub(crate) fn read<'a>(&'a self, text: &'a [u8], script: &mut Vec<u8>) -> Result<Fitting<'a>, Unread> {
        script.clear();
        let mut steps = Steps::new(script);
        let mut fitting = Fitting {
            pattern: self,
            end: 0,
            name: &self.name,
            namespace: &self.namespace,
            uid: &self.uid,
            resource_version: &self.resource_version,
            changed: SmallVec::new(),
            size: 0,
        };
        let mut values = self.values.iter();
        // Where the texts are compared; how far the kept one is told; how long it is going to be.
        let (mut at, mut from, mut told, mut size) = (0, 0, 0, self.kept_size);
        loop {
            let alike = common(&text[at..], &self.text[from..]);
            (at, from) = (at + alike, from + alike);
            if from == self.text.len() {
                break;
            }
            if at == text.len() {
                return Err(self.incomplete(text));
            }
            // A string that is longer in the other text differs where it ends in this one.
            let value = values.find(|value| from <= value.end).ok_or(Unread::Unlike)?;
            let same = from.checked_sub(value.start).ok_or(Unread::Unlike)?;
            let start = at - same;
            // From its beginning: a backslash may be what both have.
            let end = string_end(text, start).map_err(|_| self.incomplete(text))?;
            let (new, old) = (&text[start..end], &self.text[value.start..value.end]);
            (at, from) = (end, value.end);
            let Some(kept) = value.kept else { continue };
            fitting.take(value.role, new).ok_or(Unread::Unlike)?;
            let same_at_end = common_at_end(&new[same..], &old[same..]);
            let differs = kept + same;
            steps.step(told, differs - told, &new[same..new.len() - same_at_end]);
            told = kept + old.len() - same_at_end;
            size = size + new.len() - old.len();
        }
        steps.step(told, self.kept_size - told, &[]);
        if size > SMALL || script.len() > most(size) || fitting.name.is_empty() {
            return Err(Unread::Unlike);
        }
        fitting.end = at;
        fitting.size = u32::try_from(size).map_err(|_| Unread::Unlike)?;
        Ok(fitting)
    }

    /// What to say of a text that ends too early. One that is so much longer will not be small, and to wait for the end of it would be
    /// to compare it over and over.
    fn incomplete(&self, text: &[u8]) -> Unread {
        if text.len() > self.text.len() + SMALL { Unread::Unlike } else { Unread::Incomplete }
    }
}

impl<'a> Fitting<'a> {
    /// A string that is not the pattern's.
    fn take(&mut self, role: Role, new: &'a [u8]) -> Option<()> {
        if role == Role::Elsewhere {
            return Some(());
        }
        if !is_plain(new) {
            return None;
        }
        match role {
            Role::Name => self.name = new,
            Role::Namespace => self.namespace = new,
            Role::Uid => self.uid = new,
            Role::ResourceVersion => self.resource_version = new,
            Role::Common(number) => self.changed.push((number, new)),
            Role::Metadata | Role::Elsewhere => {}
        }
        Some(())
    }

    /// Its metadata; `block` keeps what others may have too.
    pub(crate) fn meta(&self, block: impl FnOnce(&[u8]) -> Block) -> Result<Meta, TooLong> {
        self.pattern.meta.like(self.uid, self.resource_version, &self.changed, block)
    }

    /// The object at rest, with the script that [`Pattern::read`] has written.
    pub(crate) fn packed(&self, script: &[u8]) -> Packed {
        Packed::told(script, self.size, &self.pattern.kept)
    }
}

/// Whether what stands between the quotes is what the string says.
fn is_plain(text: &[u8]) -> bool {
    let unusual = |byte: &&u8| !matches!(byte, b' '..=b'~') || **byte == b'\\';
    // Counted rather than looked for: strings are short, and all of them usual.
    text.iter().filter(unusual).count() == 0
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
pub(super) mod tests;
