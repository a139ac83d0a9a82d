//! One stored object: its encoded bytes and what selectors, owners and finalizers need of it.
//!
//! The bytes are the object as a list item shows it: JSON without `kind` and `apiVersion`, which are the same for
//! every object of a type and are put in front when an object travels alone. The digits of `resourceVersion` are only
//! known when the writer has the revision, so an object is encoded around a gap ([`Draft`]) which the writer fills.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

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
        let meta = Arc::new(Meta::of(object, fields));
        let mut bytes = Vec::with_capacity(1024);
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
        for (key, value) in known.chain(rest.map(|(k, v)| (k.as_str(), v))) {
            bytes.push(b',');
            member(&mut bytes, key, value);
        }
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

    /// The finished object, written at `revision`.
    pub(super) fn finish(self, revision: u64) -> Object {
        let digits = revision.to_string();
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len());
        bytes.extend_from_slice(&self.bytes[..self.gap]);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.bytes[self.gap..]);
        Object { revision, bytes: bytes.into(), gap: self.gap, meta: self.meta }
    }

    /// The object as it would be stored, for a dry run: with the version that it has, or with none.
    pub fn preview(self, revision: Option<u64>) -> Object {
        let Some(revision) = revision else {
            const MEMBER: usize = "\"resourceVersion\":\"".len();
            let mut bytes = self.bytes;
            // With its member goes one of the two commas around it; metadata always has a name before it.
            let from = self.gap - MEMBER - usize::from(bytes[self.gap - MEMBER - 1] == b',');
            bytes.drain(from..=self.gap);
            return Object { revision: 0, bytes: bytes.into(), gap: 0, meta: self.meta };
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

/// A stored object. Cheap to share: the bytes and the metadata are reference counted.
#[derive(Debug, Clone)]
pub struct Object {
    /// The revision of the write that made it: its `resourceVersion`.
    pub revision: u64,
    /// The encoded object, without `kind` and `apiVersion`.
    pub bytes: Bytes,
    gap: usize,
    /// What requests need of it without decoding.
    pub meta: Arc<Meta>,
}

impl Object {
    /// An object that was stored before; `None` when its parts do not belong together.
    pub(super) fn restore(revision: u64, bytes: Bytes, gap: usize, meta: Arc<Meta>) -> Option<Self> {
        let digits = format!("{revision}\"");
        let fits = bytes.get(gap..)?.starts_with(digits.as_bytes()) && bytes.ends_with(b"}");
        fits.then_some(Self { revision, bytes, gap, meta })
    }

    /// Where the digits of its `resourceVersion` begin.
    pub(super) fn gap(&self) -> usize {
        self.gap
    }

    /// The same content under another revision: what a deletion shows to watchers.
    #[must_use]
    pub fn at(&self, revision: u64) -> Self {
        let old = self.revision.to_string();
        let new = revision.to_string();
        let mut bytes = Vec::with_capacity(self.bytes.len() - old.len() + new.len());
        bytes.extend_from_slice(&self.bytes[..self.gap]);
        bytes.extend_from_slice(new.as_bytes());
        bytes.extend_from_slice(&self.bytes[self.gap + old.len()..]);
        Self { revision, bytes: bytes.into(), gap: self.gap, meta: Arc::clone(&self.meta) }
    }

    /// The decoded object, still without `kind` and `apiVersion`.
    pub fn decode(&self) -> Map<String, Value> {
        let mut source = serde_json::Deserializer::from_slice(&self.bytes);
        // What was nested too deep was refused when it came, at more levels than the reader's own limit.
        source.disable_recursion_limit();
        // Only encoded objects are stored; an empty one is still an answer without a panic.
        serde::Deserialize::deserialize(&mut source).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_object_keeps_everything_but_type_and_gets_its_revision() {
        let object = map(&json!({
            "kind": "Secret", "apiVersion": "v1", "type": "Opaque",
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "9", "labels": {"z": "1", "a": "2"}},
        }));
        let stored = Draft::encode(&object, Box::default()).finish(1234);
        assert_eq!(
            Value::Object(stored.decode()),
            json!({
                "type": "Opaque",
                "metadata": {"name": "a", "uid": "u", "resourceVersion": "1234", "labels": {"z": "1", "a": "2"}},
            })
        );
        assert_eq!(stored.meta.label("a"), Some("2"));
        assert_eq!(stored.meta.label("b"), None);
        let later = stored.at(99_999);
        assert_eq!(later.decode()["metadata"]["resourceVersion"], "99999");
        assert_eq!(later.at(1234).bytes, stored.bytes);
    }

    #[test]
    fn an_object_that_nests_as_deep_as_bodies_may_comes_back() {
        let mut deep = json!(1);
        for _ in 0..crate::schema::body::MAX_DEPTH {
            deep = json!({ "a": deep });
        }
        let object = map(&json!({"metadata": {"name": "a"}, "deep": deep}));
        assert_eq!(Draft::encode(&object, Box::default()).finish(1).decode()["deep"], object["deep"]);
    }

    #[test]
    fn a_dry_run_shows_the_object_without_a_version() {
        for object in
            [json!({"metadata": {"name": "a"}, "x": 1}), json!({"metadata": {"name": "a", "labels": {}}})]
        {
            let shown = Draft::encode(&map(&object), Box::default()).preview(None);
            assert_eq!(Value::Object(shown.decode()), object);
        }
    }
}
