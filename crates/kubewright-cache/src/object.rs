//! Cached objects: metadata at hand, the rest decoded when touched.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::Resource;
use serde::de::DeserializeOwned;

pub use super::wire::meta::Owner;
use super::{
    fault::{Fault, Faults},
    wire::{hot::HotSet, meta::Meta, pack::Packed},
};
use kubewright_core::{KeyError, ObjectKey};

/// A handle to an object in a cache.
///
/// Its key, version, labels and owners are there at once. The object itself is decoded by [`load`](Self::load), so an
/// event that nobody looks into never pays for a decode, and what is read repeatedly is kept decoded. A clone costs one
/// reference count.
///
/// A handle stays what it is when the cache moves on: it is the object as it was seen, not a view of the present.
///
/// ```
/// use kubewright::{cache::Lazy, k8s_openapi::api::core::v1::Pod};
///
/// let pod: Pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "labels": {"app": "web"}},
/// }))?;
/// let object = Lazy::new(pod, &())?;
/// assert_eq!(object.key().to_string(), "shop/web");
/// assert_eq!(object.label("app"), Some("web"));
/// assert_eq!(object.load()?.metadata.name.as_deref(), Some("web"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lazy<K> {
    entry: Arc<Entry<K>>,
}

pub(crate) struct Entry<K> {
    pub(crate) key: ObjectKey,
    pub(crate) meta: Meta,
    pub(crate) body: Body<K>,
    /// The number of this entry in the hot set.
    pub(crate) number: u64,
    pub(crate) shared: Option<Arc<Shared<K>>>,
    pub(crate) reported: AtomicBool,
}

pub(crate) enum Body<K> {
    Packed(Packed),
    Decoded(Arc<K>),
}

/// What the objects of one cache have in common.
pub(crate) struct Shared<K> {
    pub(crate) kind: String,
    pub(crate) hot: HotSet<K>,
    pub(crate) faults: Faults,
}

/// An object in the cache cannot be decoded into the type that was asked for.
///
/// The message names the field and what was expected there, never the value: it may be a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot decode {kind} {key} at {path}: {reason}; correct the object or the type that reads it")]
pub struct DecodeError {
    /// The kind of the object.
    pub kind: String,
    /// Which object.
    pub key: ObjectKey,
    /// The field at which decoding stopped.
    pub path: String,
    /// What was wrong there.
    pub reason: String,
}

impl<K> Lazy<K> {
    /// A handle to an object that is decoded already.
    ///
    /// Informers make their own handles; this one is for tests and for events that a program makes up itself.
    pub fn new(object: K, dyntype: &K::DynamicType) -> Result<Self, KeyError>
    where
        K: Resource,
    {
        let key = ObjectKey::of(&object, dyntype)?;
        let kind = || K::kind(dyntype).into_owned();
        let meta = Meta::from_object(object.meta(), |bytes| bytes.into())
            .map_err(|_| KeyError::Nameless { kind: kind() })?;
        Ok(Self::from_entry(Entry {
            key,
            meta,
            body: Body::Decoded(Arc::new(object)),
            number: 0,
            shared: None,
            reported: AtomicBool::new(false),
        }))
    }

    pub(crate) fn from_entry(entry: Entry<K>) -> Self {
        Self { entry: Arc::new(entry) }
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.entry.key
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.entry.key.name()
    }

    /// The namespace, unless the kind has none.
    pub fn namespace(&self) -> Option<&str> {
        self.entry.key.namespace()
    }

    /// The identity: an object that is deleted and created anew under the same name has another.
    pub fn uid(&self) -> &str {
        self.entry.meta.uid()
    }

    /// The version as the API server wrote it.
    pub fn resource_version(&self) -> &str {
        self.entry.meta.resource_version()
    }

    /// The version as a number, to compare it with another of the same kind.
    ///
    /// None where the server does not use numbers; Kubernetes itself always does.
    pub fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// `metadata.generation`: counts changes of what is wanted, not of status.
    pub fn generation(&self) -> Option<i64> {
        self.entry.meta.generation()
    }

    /// Whether deletion was asked for and finalizers hold the object back.
    pub fn is_deleting(&self) -> bool {
        self.entry.meta.is_deleting()
    }

    /// The labels, in the order in which the server wrote them.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entry.meta.labels()
    }

    /// The value of one label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().find_map(|(found, value)| (found == key).then_some(value))
    }

    /// The owners.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        self.entry.meta.owners()
    }

    /// The owner that controls this object, if one does.
    pub fn controller(&self) -> Option<Owner<'_>> {
        self.owners().find(|owner| owner.controller)
    }

    /// Whether the two are the very same object in memory.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// Whether the two are the same version of the same object.
    pub fn same_version(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
            || (self.is_version(other.uid().as_bytes(), other.resource_version().as_bytes())
                && self.key() == other.key())
    }

    /// The text that it is kept as.
    #[cfg(test)]
    pub(crate) fn kept_text(&self) -> Option<Vec<u8>> {
        match &self.entry.body {
            Body::Packed(packed) => packed.unpack(<[u8]>::to_vec).ok(),
            Body::Decoded(_) => None,
        }
    }

    pub(crate) fn is_version(&self, uid: &[u8], resource_version: &[u8]) -> bool {
        !resource_version.is_empty()
            && self.resource_version().as_bytes() == resource_version
            && self.uid().as_bytes() == uid
    }

    /// Bytes that this object holds on the heap while it is at rest: without labels and owners, which it may share with
    /// others of its cache, and for decoded objects without the object.
    pub fn heap_size(&self) -> usize {
        let body = match &self.entry.body {
            Body::Packed(packed) => packed.heap_size(),
            Body::Decoded(_) => 0,
        };
        size_of::<Entry<K>>() + 16 + self.key().as_str().len() + 16 + self.entry.meta.heap_size() + body
    }
}

impl<K: DeserializeOwned> Lazy<K> {
    /// The object itself: decoded now, unless it is among those that are kept decoded.
    ///
    /// An object that does not fit the type gives an error here, on every call, and is reported once to the
    /// informer's fault handler. Others are not affected.
    pub fn load(&self) -> Result<Arc<K>, DecodeError> {
        let entry = &*self.entry;
        let packed = match &entry.body {
            Body::Decoded(object) => return Ok(Arc::clone(object)),
            Body::Packed(packed) => packed,
        };
        let Some(shared) = &entry.shared else { return decode(entry, packed).map(Arc::new) };
        if let Some(object) = shared.hot.get(entry.number) {
            return Ok(object);
        }
        match decode(entry, packed) {
            Ok(object) => {
                let object = Arc::new(object);
                shared.hot.read(entry.number, &object);
                Ok(object)
            }
            Err(error) => {
                if !entry.reported.swap(true, Ordering::Relaxed) {
                    shared.faults.report(&Fault::Undecodable(error.clone()));
                }
                Err(error)
            }
        }
    }
}

impl<K> Drop for Entry<K> {
    fn drop(&mut self) {
        if let (Body::Packed(_), Some(shared)) = (&self.body, &self.shared) {
            shared.hot.forget(self.number);
        }
    }
}

fn decode<K: DeserializeOwned>(entry: &Entry<K>, packed: &Packed) -> Result<K, DecodeError> {
    let failed = |path: String, reason: String| DecodeError {
        kind: entry.shared.as_ref().map_or_else(|| "object".to_owned(), |shared| shared.kind.clone()),
        key: entry.key.clone(),
        path,
        reason,
    };
    packed
        .unpack(|text| decode_text(text))
        .map_err(|error| failed(".".to_owned(), error.to_string()))?
        .map_err(|(path, reason)| failed(path, reason))
}

/// Decodes, and on failure decodes once more to find out where: the path costs nothing while all is well.
pub(crate) fn decode_text<K: DeserializeOwned>(text: &[u8]) -> Result<K, (String, String)> {
    // Validating UTF-8 once and parsing a str is faster than from_slice, which validates every string by itself.
    let text = std::str::from_utf8(text).map_err(|error| (".".to_owned(), error.to_string()))?;
    serde_json::from_str(text).map_err(|error| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, K>(&mut deserializer) {
            Err(error) => (format!(".{}", error.path()), without_values(&error.inner().to_string())),
            Ok(_) => (".".to_owned(), without_values(&error.to_string())),
        }
    })
}

/// serde quotes the offending value in its messages; a cache must not let it reach a log.
fn without_values(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}…{}", &message[..=first], &message[last..])
        }
        _ => message.to_owned(),
    }
}

impl<K> Clone for Lazy<K> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry) }
    }
}

impl<K> fmt::Debug for Lazy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};

    use super::*;

    #[test]
    fn a_decode_error_names_the_field_and_not_the_value() {
        let text = br#"{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","ports":[{"containerPort":"hunter2"}]}]}}"#;
        let (path, reason) = decode_text::<Pod>(text).unwrap_err();
        assert_eq!(path, ".spec.containers[0].ports[0].containerPort");
        assert!(!reason.contains("hunter2"), "{reason}");
        assert!(reason.contains("expected"), "{reason}");
    }

    #[test]
    fn an_entry_and_its_counts_take_two_cache_lines() {
        assert_eq!(
            size_of::<Entry<Pod>>() + 2 * size_of::<usize>(),
            128,
            "there is one for every cached object"
        );
    }

    #[test]
    fn the_same_version_needs_the_same_identity() {
        let object = |uid: &str, version: &str| {
            let mut map = ConfigMap::default();
            map.metadata.name = Some("x".into());
            map.metadata.uid = Some(uid.into());
            map.metadata.resource_version = Some(version.into());
            Lazy::new(map, &()).unwrap()
        };
        assert!(object("a", "1").same_version(&object("a", "1")));
        assert!(!object("a", "1").same_version(&object("b", "1")));
        assert!(!object("a", "1").same_version(&object("a", "2")));
        assert!(!object("a", "").same_version(&object("a", "")), "no version is no evidence");
    }
}
