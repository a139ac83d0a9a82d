//! Which strings of an object may differ in another one of the same form, and what they are to a cache.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::meta::{LABEL_TEXTS, OWNER_TEXTS};

/// What a string is to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    /// A text of the block of labels and owners, by its number.
    Common(usize),
    /// Any other one of the metadata.
    Metadata,
    /// Outside of the metadata, or cut out of it.
    Elsewhere,
}

/// A string that is the value of a member, or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Between the quotes.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) role: Role,
    /// Where it is in the text as it is kept, unless it is cut out.
    pub(super) kept: Option<usize>,
}

impl Value {
    /// Where it is in a text whose opening brace was replaced by a header, and of which something was cut out.
    pub(super) fn kept_behind(mut self, header: usize, cut: Option<&Range<usize>>) -> Self {
        let place = header + self.start - 1;
        self.kept = match cut {
            Some(cut) if self.start >= cut.end => Some(place - cut.len()),
            Some(cut) if self.start >= cut.start => None,
            _ => Some(place),
        };
        self
    }
}

/// A bracket that is open.
struct Open<'a> {
    is_object: bool,
    /// The member whose value is being read, without a key before its colon.
    key: Option<&'a [u8]>,
    /// How many members or elements came before this one.
    number: usize,
}

/// The strings of an object that may differ, in order; None if it is of a sort that others should not be compared with.
///
/// Its type is not among them, for another type is an error. Nor are keys: what a string is depends on them.
pub(super) fn values(
    text: &[u8],
    metadata: Range<usize>,
    cut: Option<Range<usize>>,
    labels: usize,
) -> Option<Vec<Value>> {
    // The walk below relies on it. There is one for each of a few objects.
    serde_json::from_slice::<IgnoredAny>(text).ok()?;
    let mut walk = Walk { text, metadata, cut, labels, open: Vec::new(), values: Vec::new() };
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
    Some(walk.values)
}

struct Walk<'a> {
    text: &'a [u8],
    metadata: Range<usize>,
    cut: Option<Range<usize>>,
    /// How many there are.
    labels: usize,
    open: Vec<Open<'a>>,
    values: Vec<Value>,
}

impl Walk<'_> {
    fn string(&mut self, span: Range<usize>) -> Option<()> {
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.contains(&span.start));
        let in_metadata = !is_cut && self.metadata.contains(&span.start);
        let innermost = self.open.last_mut()?;
        if innermost.is_object && innermost.key.is_none() {
            let key = &self.text[span];
            // It may be another one than it looks like.
            if in_metadata && key.contains(&b'\\') {
                return None;
            }
            innermost.key = Some(key);
            return Some(());
        }
        let role = if in_metadata { self.role_in_metadata()? } else { Role::Elsewhere };
        let is_type = matches!(&self.open[..], [Open { key: Some(b"apiVersion" | b"kind"), .. }]);
        if !is_type {
            self.values.push(Value { start: span.start, end: span.end, role, kept: None });
        }
        Some(())
    }

    fn role_in_metadata(&self) -> Option<Role> {
        // A structure may be written as an array of its fields. Nobody does.
        let [_, metadata, inner @ ..] = &self.open[..] else { return None };
        let field = metadata.key?;
        Some(match (field, inner) {
            (b"name", []) => Role::Name,
            (b"namespace", []) => Role::Namespace,
            (b"uid", []) => Role::Uid,
            (b"resourceVersion", []) => Role::ResourceVersion,
            (b"labels", [label]) => Role::Common(LABEL_TEXTS * label.number + 1),
            (b"ownerReferences", [owner, reference]) => {
                let field = reference.key?;
                let before = LABEL_TEXTS * self.labels + (OWNER_TEXTS.len() + 1) * owner.number;
                match OWNER_TEXTS.iter().position(|text| text.as_bytes() == field) {
                    Some(at) => Role::Common(before + at),
                    None => Role::Metadata,
                }
            }
            _ => Role::Metadata,
        })
    }
}
