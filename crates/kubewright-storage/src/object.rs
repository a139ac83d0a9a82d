//! One stored object: its encoded bytes and what selectors, owners and finalizers need of it.
//!
//! The bytes are the object as a list item shows it: JSON without `kind` and `apiVersion`, which are the same for
//! every object of a type and are put in front when an object travels alone. The digits of `resourceVersion` are only
//! known when the writer has the revision, so an object is encoded around a gap ([`Draft`]) which the writer fills.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::siblings::{Base, Form, Siblings, Told};

/// Metadata that requests need without decoding the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The uids of `metadata.ownerReferences`.
    pub owners: Box<[Box<str>]>,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.deletionTimestamp`, as written.
    pub deletion: Option<Box<str>>,
    /// The values of the type's selectable fields, in the order of its descriptor.
    pub fields: Box<[Box<str>]>,
    /// For custom resources: the version of the definition that the bytes are written in.
    pub written: Option<Written>,
}

/// The version of a definition that a custom resource is stored in.
///
/// Definitions change under their objects: a read has to know by which schema the bytes were pruned and filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The version's name, such as `v1beta1`.
    pub version: Box<str>,
    /// Which schema that version had.
    pub schema: u64,
}

impl Meta {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Reads the metadata of an object; `fields` are the values of its selectable fields.
    pub fn of(object: &Map<String, Value>, fields: Box<[Box<str>]>) -> Self {
        let meta = object.get("metadata").and_then(Value::as_object);
        let text = |key: &str| meta.and_then(|m| m.get(key)).and_then(Value::as_str);
        let list = |key: &str| meta.and_then(|m| m.get(key)).and_then(Value::as_array).into_iter().flatten();
        let mut labels: Vec<(Box<str>, Box<str>)> = meta
            .and_then(|m| m.get("labels"))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into())))
            .collect();
        labels.sort_unstable();
        Self {
            uid: text("uid").unwrap_or_default().into(),
            labels: labels.into(),
            owners: list("ownerReferences").filter_map(|o| Some(o.get("uid")?.as_str()?.into())).collect(),
            finalizers: list("finalizers").filter_map(|f| Some(f.as_str()?.into())).collect(),
            deletion: text("deletionTimestamp").map(Into::into),
            fields,
            written: None,
        }
    }
}

/// An encoded object that waits for its revision.
#[derive(Debug, Clone)]
pub struct Draft {
    bytes: Vec<u8>,
    gap: usize,
    meta: Arc<Meta>,
}

/// The fields of metadata that come first, in the order in which people know them; the rest follow by name.
const BEFORE_VERSION: [&str; 4] = ["name", "generateName", "namespace", "uid"];
const AFTER_VERSION: [&str; 6] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
];

impl Draft {
    /// Encodes an object. `kind`, `apiVersion` and whatever `resourceVersion` it has are left out.
    pub fn encode(object: &Map<String, Value>, fields: Box<[Box<str>]>) -> Self {
        Self::encode_with(object, None, fields)
    }

    /// The same for an object whose `managedFields` are a text beside it.
    pub fn encode_with(object: &Map<String, Value>, managers: Option<&str>, fields: Box<[Box<str>]>) -> Self {
        let meta = Arc::new(Meta::of(object, fields));
        let mut bytes = Vec::with_capacity(4096 + managers.map_or(0, str::len));
        bytes.extend_from_slice(b"{\"metadata\":{");
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        for key in BEFORE_VERSION {
            if let Some(value) = metadata.get(key) {
                member(&mut bytes, key, value);
                bytes.push(b',');
            }
        }
        bytes.extend_from_slice(b"\"resourceVersion\":\"");
        let gap = bytes.len();
        bytes.push(b'"');
        let rest = metadata.iter().filter(|(k, _)| {
            let key = k.as_str();
            key != "resourceVersion" && !BEFORE_VERSION.contains(&key) && !AFTER_VERSION.contains(&key)
        });
        let known = AFTER_VERSION.iter().filter_map(|key| Some((*key, metadata.get(*key)?)));
        // In the place that they would have by their name.
        let mut managers = managers;
        let mut insert_managers = |bytes: &mut Vec<u8>| {
            if let Some(text) = managers.take() {
                bytes.extend_from_slice(b",\"managedFields\":");
                bytes.extend_from_slice(text.as_bytes());
            }
        };
        for (key, value) in known {
            bytes.push(b',');
            member(&mut bytes, key, value);
        }
        for (key, value) in rest {
            if key.as_str() > "managedFields" {
                insert_managers(&mut bytes);
            }
            bytes.push(b',');
            member(&mut bytes, key, value);
        }
        insert_managers(&mut bytes);
        bytes.push(b'}');
        for (key, value) in object {
            if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
                bytes.push(b',');
                member(&mut bytes, key, value);
            }
        }
        bytes.push(b'}');
        Self { bytes, gap, meta }
    }

    /// Notes by which version of its definition a custom resource was written.
    #[must_use]
    pub fn written(mut self, written: Written) -> Self {
        Arc::make_mut(&mut self.meta).written = Some(written);
        self
    }

    /// The encoded object around the gap.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes
    }

    /// Whose object it is, before all others.
    pub(super) fn owner(&self) -> Option<&str> {
        self.meta.owners.first().map(|owner| &**owner)
    }

    /// The finished object, written at `revision`.
    pub(super) fn finish(self, revision: u64) -> Object {
        let body = Body::Whole(self.whole(revision));
        Object { revision, size: self.bytes.len() + digits(revision), body, gap: self.gap, meta: self.meta }
    }

    /// The same in the form in which it is to be kept.
    pub(super) fn finish_as(self, revision: u64, form: Form, siblings: &Siblings) -> Object {
        let body = match form {
            Form::Whole => return self.finish(revision),
            Form::First(family) => {
                let base = Arc::new(Base::new(self.whole(revision)));
                siblings.lead(family, &base);
                Body::Base(base)
            }
            Form::Told(told) => Body::told(told),
        };
        Object { revision, size: self.bytes.len() + digits(revision), body, gap: self.gap, meta: self.meta }
    }

    fn whole(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len());
        bytes.extend_from_slice(&self.bytes[..self.gap]);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.bytes[self.gap..]);
        bytes.into()
    }

    /// The object as it would be stored, for a dry run: with the version that it has, or with none.
    pub fn preview(self, revision: Option<u64>) -> Object {
        let Some(revision) = revision else {
            const MEMBER: usize = "\"resourceVersion\":\"".len();
            let mut bytes = self.bytes;
            // With its member goes one of the two commas around it; metadata always has a name before it.
            let from = self.gap - MEMBER - usize::from(bytes[self.gap - MEMBER - 1] == b',');
            bytes.drain(from..=self.gap);
            let (size, body) = (bytes.len(), Body::Whole(bytes.into()));
            return Object { revision: 0, size, body, gap: 0, meta: self.meta };
        };
        self.finish(revision)
    }
}

fn member(bytes: &mut Vec<u8>, key: &str, value: &Value) {
    // Writing JSON values into memory cannot fail: keys are strings and Vec grows.
    let _ = serde_json::to_writer(&mut *bytes, key);
    bytes.push(b':');
    let _ = serde_json::to_writer(&mut *bytes, value);
}

/// How many digits a revision has.
fn digits(revision: u64) -> usize {
    revision.checked_ilog10().map_or(1, |more| more as usize + 1)
}

/// What is kept of an encoded object.
#[derive(Debug, Clone)]
enum Body {
    Whole(Bytes),
    /// The same, and others are told by it.
    Base(Arc<Base>),
    /// Without the digits of the revision.
    Told(Told, Arc<Mutex<Weak<Vec<u8>>>>),
}

impl Body {
    fn told(told: Told) -> Self {
        Self::Told(told, Arc::default())
    }
}

/// A text that several readers have in their hands.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A stored object. Cheap to share: the text and the metadata are reference counted.
#[derive(Debug, Clone)]
pub struct Object {
    /// The revision of the write that made it: its `resourceVersion`.
    pub revision: u64,
    size: usize,
    body: Body,
    gap: usize,
    /// What requests need of it without decoding.
    pub meta: Arc<Meta>,
}

impl Object {
    /// An object that was stored before; `None` when its parts do not belong together.
    pub(super) fn restore(revision: u64, bytes: Bytes, gap: usize, meta: Arc<Meta>) -> Option<Self> {
        let digits = format!("{revision}\"");
        let fits = bytes.get(gap..)?.starts_with(digits.as_bytes()) && bytes.ends_with(b"}");
        fits.then(|| Self { revision, size: bytes.len(), body: Body::Whole(bytes), gap, meta })
    }

    /// The same object as it is kept among its siblings; `None` where it stays as it is.
    pub(super) fn among(&self, resource: &str, siblings: &Siblings) -> Option<Self> {
        let Body::Whole(bytes) = &self.body else { return None };
        if self.meta.owners.is_empty() {
            return None;
        }
        let mut text = Vec::with_capacity(bytes.len());
        text.extend_from_slice(&bytes[..self.gap]);
        text.extend_from_slice(&bytes[self.gap + digits(self.revision)..]);
        let draft = Draft { bytes: text, gap: self.gap, meta: Arc::clone(&self.meta) };
        match siblings.form(resource, &draft) {
            Form::Whole => None,
            form => Some(draft.finish_as(self.revision, form, siblings)),
        }
    }

    /// Where the digits of its `resourceVersion` begin.
    pub(super) fn gap(&self) -> usize {
        self.gap
    }

    /// How long the encoded object is.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The encoded object, without `kind` and `apiVersion`. As long as somebody has it, others get the same.
    pub fn bytes(&self) -> Bytes {
        match &self.body {
            Body::Whole(bytes) => bytes.clone(),
            Body::Base(base) => base.text.clone(),
            Body::Told(_, shared) => {
                let mut shared = shared.lock();
                let text = shared.upgrade().unwrap_or_else(|| {
                    let mut text = Vec::with_capacity(self.size);
                    self.pieces(|piece| text.extend_from_slice(piece));
                    let text = Arc::new(text);
                    *shared = Arc::downgrade(&text);
                    text
                });
                Bytes::from_owner(Shared(text))
            }
        }
    }

    /// Hands out the encoded object piece by piece, for those who copy it anyway.
    pub fn pieces(&self, mut piece: impl FnMut(&[u8])) {
        let told = match &self.body {
            Body::Whole(bytes) => return piece(bytes),
            Body::Base(base) => return piece(&base.text),
            Body::Told(told, _) => told,
        };
        let mut passed = 0;
        told.pieces(|part| {
            // The digits stand inside the metadata: before them there is always something.
            let before = self.gap.saturating_sub(passed);
            if passed < self.gap && before <= part.len() {
                piece(&part[..before]);
                piece(self.revision.to_string().as_bytes());
                piece(&part[before..]);
            } else {
                piece(part);
            }
            passed += part.len();
        });
    }

    /// The same without the brace that it begins with: for those who put something in front.
    pub fn pieces_inside(&self, mut piece: impl FnMut(&[u8])) {
        let mut brace = 1;
        self.pieces(|part| {
            let cut = brace.min(part.len());
            brace -= cut;
            piece(&part[cut..]);
        });
    }

    /// The same content under another revision: what a deletion shows to watchers.
    #[must_use]
    pub fn at(&self, revision: u64) -> Self {
        let (old, new) = (self.revision.to_string(), revision.to_string());
        let bytes = match &self.body {
            Body::Told(told, _) => {
                let size = self.size - old.len() + new.len();
                let meta = Arc::clone(&self.meta);
                return Self { revision, size, body: Body::told(told.clone()), gap: self.gap, meta };
            }
            Body::Whole(bytes) => bytes,
            Body::Base(base) => &base.text,
        };
        let mut changed = Vec::with_capacity(bytes.len() - old.len() + new.len());
        changed.extend_from_slice(&bytes[..self.gap]);
        changed.extend_from_slice(new.as_bytes());
        changed.extend_from_slice(&bytes[self.gap + old.len()..]);
        let (size, body) = (changed.len(), Body::Whole(changed.into()));
        Self { revision, size, body, gap: self.gap, meta: Arc::clone(&self.meta) }
    }

    /// The decoded object, still without `kind` and `apiVersion`.
    pub fn decode(&self) -> Map<String, Value> {
        let bytes = self.bytes();
        let mut source = serde_json::Deserializer::from_slice(&bytes);
        // What was nested too deep was refused when it came, at more levels than the reader's own limit.
        source.disable_recursion_limit();
        // Only encoded objects are stored; an empty one is still an answer without a panic.
        serde::Deserialize::deserialize(&mut source).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
