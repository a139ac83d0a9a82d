//! Stored object: its encoded bytes and the metadata that selectors, owners and finalizers need.
//!
//! The bytes are the JSON of a list item: without `kind` and `apiVersion`, which are equal for all objects of
//! a type and are prepended when an object is sent alone. The digits of `resourceVersion` are known only
//! under the write lock, so an object is encoded without them ([`Draft`]) and the writer inserts them.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::siblings::{Base, Bases, Delta, Encoding};

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
    /// `metadata.deletionTimestamp`, unparsed.
    pub deletion: Option<Box<str>>,
    /// The values of the type's selectable fields, in the order of its descriptor.
    pub fields: Box<[Box<str>]>,
    /// For custom resources: the version and schema of the encoded object.
    pub stored_version: Option<StoredVersion>,
}

/// Version and schema of a CRD under which a custom resource was stored.
///
/// CRDs change under their objects: a read must know by which schema the object was pruned and defaulted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// The version's name, such as `v1beta1`.
    pub version: Box<str>,
    /// The number of the schema of that version.
    pub schema: u64,
}

impl Meta {
    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Extracts the metadata of an object; `fields` are the values of its selectable fields.
    pub fn from_object(object: &Map<String, Value>, fields: Box<[Box<str>]>) -> Self {
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
            stored_version: None,
        }
    }
}

/// Encoded object without a revision.
#[derive(Debug, Clone)]
pub struct Draft {
    bytes: Vec<u8>,
    revision_offset: usize,
    meta: Arc<Meta>,
}

/// Metadata fields in their customary order; the others follow by name.
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
    /// Encodes an object without its `kind`, `apiVersion` and `resourceVersion`.
    pub fn encode(object: &Map<String, Value>, fields: Box<[Box<str>]>) -> Self {
        Self::encode_with(object, None, fields)
    }

    /// Encodes an object whose `managedFields` are given as JSON text.
    pub fn encode_with(object: &Map<String, Value>, managers: Option<&str>, fields: Box<[Box<str>]>) -> Self {
        let meta = Arc::new(Meta::from_object(object, fields));
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
        let revision_offset = bytes.len();
        bytes.push(b'"');
        let rest = metadata.iter().filter(|(k, _)| {
            let key = k.as_str();
            key != "resourceVersion" && !BEFORE_VERSION.contains(&key) && !AFTER_VERSION.contains(&key)
        });
        let known = AFTER_VERSION.iter().filter_map(|key| Some((*key, metadata.get(*key)?)));
        // `managedFields` are inserted at their position by name.
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
        Self { bytes, revision_offset, meta }
    }

    /// Sets the CRD version and schema of a custom resource.
    #[must_use]
    pub fn with_stored_version(mut self, stored: StoredVersion) -> Self {
        Arc::make_mut(&mut self.meta).stored_version = Some(stored);
        self
    }

    /// Returns the encoded object without the revision.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the uid of the first owner.
    pub(super) fn owner(&self) -> Option<&str> {
        self.meta.owners.first().map(|owner| &**owner)
    }

    /// Returns the object with its revision, stored whole.
    pub(super) fn finish(self, revision: u64) -> Object {
        let body = Body::Whole(self.whole(revision));
        self.into_object(revision, body)
    }

    /// Returns the object with its revision, stored in the given encoding.
    pub(super) fn finish_encoded(self, revision: u64, encoding: Encoding, bases: &Bases) -> Object {
        let body = match encoding {
            Encoding::Whole => return self.finish(revision),
            Encoding::NewBase(owner) => {
                let base = Arc::new(Base::new(self.whole(revision)));
                bases.set_base(owner, &base);
                Body::Base(base)
            }
            Encoding::Delta(delta) => Body::delta(delta),
        };
        self.into_object(revision, body)
    }

    fn into_object(self, revision: u64, body: Body) -> Object {
        Object {
            revision,
            size: self.bytes.len() + digits(revision),
            body,
            revision_offset: self.revision_offset,
            meta: self.meta,
        }
    }

    fn whole(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len());
        bytes.extend_from_slice(&self.bytes[..self.revision_offset]);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.bytes[self.revision_offset..]);
        bytes.into()
    }

    /// Returns the object as it would be stored, for a dry run: with its current revision, or with none.
    pub fn preview(self, revision: Option<u64>) -> Object {
        let Some(revision) = revision else {
            const MEMBER: usize = "\"resourceVersion\":\"".len();
            let mut bytes = self.bytes;
            // Also remove one of the adjacent commas; metadata always has a name before it.
            let from =
                self.revision_offset - MEMBER - usize::from(bytes[self.revision_offset - MEMBER - 1] == b',');
            bytes.drain(from..=self.revision_offset);
            let (size, body) = (bytes.len(), Body::Whole(bytes.into()));
            return Object { revision: 0, size, body, revision_offset: 0, meta: self.meta };
        };
        self.finish(revision)
    }
}

fn member(bytes: &mut Vec<u8>, key: &str, value: &Value) {
    // Writing JSON to a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut *bytes, key);
    bytes.push(b':');
    let _ = serde_json::to_writer(&mut *bytes, value);
}

/// Returns the number of digits of a revision.
fn digits(revision: u64) -> usize {
    revision.checked_ilog10().map_or(1, |more| more as usize + 1)
}

/// Stored form of an encoded object.
#[derive(Debug, Clone)]
enum Body {
    Whole(Bytes),
    /// Stored whole, and the base of deltas.
    Base(Arc<Base>),
    /// Delta without the digits of the revision, with a weak reference to the decoded text.
    Delta(Delta, Arc<Mutex<Weak<Vec<u8>>>>),
}

impl Body {
    fn delta(delta: Delta) -> Self {
        Self::Delta(delta, Arc::default())
    }
}

/// Decoded text shared by concurrent readers.
struct SharedText(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Stored object. Cheap to clone: the text and the metadata are reference-counted.
#[derive(Debug, Clone)]
pub struct Object {
    /// The revision of the last write: its `resourceVersion`.
    pub revision: u64,
    size: usize,
    body: Body,
    revision_offset: usize,
    /// Metadata available without decoding.
    pub meta: Arc<Meta>,
}

impl Object {
    /// Restores an object from the data directory; `None` if text and revision do not match.
    pub(super) fn restore(
        revision: u64,
        bytes: Bytes,
        revision_offset: usize,
        meta: Arc<Meta>,
    ) -> Option<Self> {
        let digits = format!("{revision}\"");
        let fits = bytes.get(revision_offset..)?.starts_with(digits.as_bytes()) && bytes.ends_with(b"}");
        fits.then(|| Self { revision, size: bytes.len(), body: Body::Whole(bytes), revision_offset, meta })
    }

    /// Returns the object delta-encoded against its siblings; `None` if it stays as it is.
    pub(super) fn delta_encoded(&self, resource: &str, bases: &Bases) -> Option<Self> {
        let Body::Whole(bytes) = &self.body else { return None };
        if self.meta.owners.is_empty() {
            return None;
        }
        let mut text = Vec::with_capacity(bytes.len());
        text.extend_from_slice(&bytes[..self.revision_offset]);
        text.extend_from_slice(&bytes[self.revision_offset + digits(self.revision)..]);
        let draft =
            Draft { bytes: text, revision_offset: self.revision_offset, meta: Arc::clone(&self.meta) };
        match bases.encoding(resource, &draft) {
            Encoding::Whole => None,
            encoding => Some(draft.finish_encoded(self.revision, encoding, bases)),
        }
    }

    /// Returns the offset of the digits of `resourceVersion`.
    pub(super) fn revision_offset(&self) -> usize {
        self.revision_offset
    }

    /// Returns the length of the encoded object.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the encoded object, without `kind` and `apiVersion`. Concurrent readers share one copy.
    pub fn bytes(&self) -> Bytes {
        match &self.body {
            Body::Whole(bytes) => bytes.clone(),
            Body::Base(base) => base.text.clone(),
            Body::Delta(_, shared) => {
                let mut shared = shared.lock();
                let text = shared.upgrade().unwrap_or_else(|| {
                    let mut text = Vec::with_capacity(self.size);
                    self.for_each_chunk(|chunk| text.extend_from_slice(chunk));
                    let text = Arc::new(text);
                    *shared = Arc::downgrade(&text);
                    text
                });
                Bytes::from_owner(SharedText(text))
            }
        }
    }

    /// Calls `chunk` with consecutive parts of the encoded object, which saves a copy if the caller copies
    /// anyway.
    pub fn for_each_chunk(&self, mut chunk: impl FnMut(&[u8])) {
        let delta = match &self.body {
            Body::Whole(bytes) => return chunk(bytes),
            Body::Base(base) => return chunk(&base.text),
            Body::Delta(delta, _) => delta,
        };
        let mut passed = 0;
        delta.for_each_chunk(|part| {
            // The revision is within the metadata, never at offset 0.
            let before = self.revision_offset.saturating_sub(passed);
            if passed < self.revision_offset && before <= part.len() {
                chunk(&part[..before]);
                chunk(self.revision.to_string().as_bytes());
                chunk(&part[before..]);
            } else {
                chunk(part);
            }
            passed += part.len();
        });
    }

    /// Like [`Self::for_each_chunk`] without the opening brace, for callers that prepend members.
    pub fn for_each_member_chunk(&self, mut chunk: impl FnMut(&[u8])) {
        let mut brace = 1;
        self.for_each_chunk(|part| {
            let cut = brace.min(part.len());
            brace -= cut;
            chunk(&part[cut..]);
        });
    }

    /// Returns the object with another revision, as in the watch event of a deletion.
    #[must_use]
    pub fn with_revision(&self, revision: u64) -> Self {
        let (old, new) = (self.revision.to_string(), revision.to_string());
        let bytes = match &self.body {
            Body::Delta(delta, _) => {
                let size = self.size - old.len() + new.len();
                let meta = Arc::clone(&self.meta);
                return Self {
                    revision,
                    size,
                    body: Body::delta(delta.clone()),
                    revision_offset: self.revision_offset,
                    meta,
                };
            }
            Body::Whole(bytes) => bytes,
            Body::Base(base) => &base.text,
        };
        let mut changed = Vec::with_capacity(bytes.len() - old.len() + new.len());
        changed.extend_from_slice(&bytes[..self.revision_offset]);
        changed.extend_from_slice(new.as_bytes());
        changed.extend_from_slice(&bytes[self.revision_offset + old.len()..]);
        let (size, body) = (changed.len(), Body::Whole(changed.into()));
        Self { revision, size, body, revision_offset: self.revision_offset, meta: Arc::clone(&self.meta) }
    }

    /// Decodes the object, still without `kind` and `apiVersion`.
    pub fn decode(&self) -> Map<String, Value> {
        let bytes = self.bytes();
        let mut source = serde_json::Deserializer::from_slice(&bytes);
        // The nesting was limited when the object was written, at a larger depth than the default limit here.
        source.disable_recursion_limit();
        // Only valid JSON is stored; an empty object avoids a panic.
        serde::Deserialize::deserialize(&mut source).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
