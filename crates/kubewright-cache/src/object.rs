//! Cached objects: metadata available at once, the rest decoded on read.

use std::{
    any::Any,
    fmt,
    marker::PhantomData,
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
    wire::{hot::HotSet, meta::Meta, pack::Packed, path::path_at},
};
use kubewright_core::{KeyError, ObjectKey};

/// A handle to a cached object, decoded lazily.
///
/// Key, version, labels and owners are available at once. The object itself is decoded by
/// [`load`](Self::load), so an event that is not inspected costs no decode, and objects that are read
/// repeatedly stay decoded. Cloning costs one reference count.
///
/// A handle is a snapshot: it does not change with the cache.
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
    entry: Arc<Entry>,
    /// What [`load`](Self::load) decodes; nothing else depends on it.
    kind: PhantomData<fn() -> K>,
}

/// Marks handles to objects whose Rust type does not matter.
///
/// Informers are written for `Lazy<Untyped>`, from the wire to the handlers, so that this code is compiled once and not
/// once for every kind of a program. The typed API around them [casts](Lazy::cast), which costs nothing.
pub(crate) enum Untyped {}

/// A decoded object.
pub(crate) type Decoded = dyn Any + Send + Sync;

pub(crate) struct Entry {
    pub(crate) key: ObjectKey,
    pub(crate) meta: Meta,
    pub(crate) body: Body,
    /// The key of this entry in the hot set.
    pub(crate) number: u64,
    pub(crate) shared: Option<Arc<Shared>>,
    pub(crate) reported: AtomicBool,
}

pub(crate) enum Body {
    Packed(Packed),
    Decoded(Arc<Decoded>),
}

/// State shared by the objects of one cache.
pub(crate) struct Shared {
    pub(crate) kind: String,
    pub(crate) hot: HotSet<Decoded>,
    pub(crate) faults: Faults,
}

/// Error from decoding a cached object.
///
/// The message names the field and the expected type, never the value: it may be a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[error("cannot decode {kind} {key} at {path}: {reason}; correct the object or the type that reads it")]
pub struct DecodeError {
    /// The kind of the object.
    pub kind: String,
    /// The key of the object.
    pub key: ObjectKey,
    /// The path of the field.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// Error from [`Lazy::new`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The object has no name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A string in the metadata, or the number of labels or owners, exceeds 65,535.
    #[error(
        "the metadata of {kind} {key} is too long to be cached: a string, or the number of labels or owners, exceeds 65535"
    )]
    MetadataTooLong {
        /// The kind of the object.
        kind: String,
        /// The key of the object.
        key: ObjectKey,
    },
}

/// Labels and owners that are shared with no other object.
fn block(bytes: &[u8]) -> Arc<[u8]> {
    bytes.into()
}

impl<K> Lazy<K> {
    /// Creates a handle to a decoded object.
    ///
    /// Informers create their own handles; this one is for tests and synthetic events.
    pub fn new(object: K, dyntype: &K::DynamicType) -> Result<Self, ObjectError>
    where
        K: Resource + Send + Sync + 'static,
    {
        let key = ObjectKey::of(&object, dyntype)?;
        let meta = Meta::from_object(object.meta(), block).map_err(|_| ObjectError::MetadataTooLong {
            kind: K::kind(dyntype).into_owned(),
            key: key.clone(),
        })?;
        Ok(Self::from_entry(Entry {
            key,
            meta,
            body: Body::Decoded(Arc::new(object)),
            number: 0,
            shared: None,
            reported: AtomicBool::new(false),
        }))
    }

    pub(crate) fn from_entry(entry: Entry) -> Self {
        Self { entry: Arc::new(entry), kind: PhantomData }
    }

    /// The same handle for readers of another type.
    pub(crate) fn cast<L>(self) -> Lazy<L> {
        Lazy { entry: self.entry, kind: PhantomData }
    }

    /// Returns namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.entry.key
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.entry.key.name()
    }

    /// Returns the namespace; `None` for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.entry.key.namespace()
    }

    /// Returns the uid: an object that is deleted and created again under the same name has another.
    pub fn uid(&self) -> &str {
        self.entry.meta.uid()
    }

    /// Returns the resource version.
    pub fn resource_version(&self) -> &str {
        self.entry.meta.resource_version()
    }

    /// Returns the resource version as a number, to compare it with another of the same kind.
    ///
    /// `None` if it is not a number; it always is in Kubernetes.
    pub fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// Returns `metadata.generation`, which counts changes of the spec.
    pub fn generation(&self) -> Option<i64> {
        self.entry.meta.generation()
    }

    /// Returns whether the object has a `deletionTimestamp`.
    pub fn is_deleting(&self) -> bool {
        self.entry.meta.is_deleting()
    }

    /// Iterates over the labels, in the server's order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entry.meta.labels()
    }

    /// Returns the value of one label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().find_map(|(found, value)| (found == key).then_some(value))
    }

    /// Iterates over the owners.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        self.entry.meta.owners()
    }

    /// Returns the owner that controls this object, if one does.
    pub fn controller(&self) -> Option<Owner<'_>> {
        self.owners().find(|owner| owner.controller)
    }

    /// Returns whether both are handles to the same cache entry.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// Returns whether both are the same version of the same object.
    pub fn same_version(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
            || (self.is_version(other.uid().as_bytes(), other.resource_version().as_bytes())
                && self.key() == other.key())
    }

    /// Returns the stored text.
    #[cfg(test)]
    pub(crate) fn stored_text(&self) -> Option<Vec<u8>> {
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

    /// Returns the size of this entry on the heap: without labels and owners, which entries of a cache may
    /// share, and without a decoded object.
    pub fn heap_size(&self) -> usize {
        let body = match &self.entry.body {
            Body::Packed(packed) => packed.heap_size(),
            Body::Decoded(_) => 0,
        };
        size_of::<Entry>() + 16 + self.key().as_str().len() + 16 + self.entry.meta.heap_size() + body
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Lazy<K> {
    /// Returns the object: decoded now, unless it is in the hot set.
    ///
    /// An object that does not fit the type is an error on every call, and is reported once to the informer's
    /// fault handler.
    pub fn load(&self) -> Result<Arc<K>, DecodeError> {
        let object = self.entry.load(decode_any::<K>)?;
        object
            .downcast()
            .map_err(|_| self.entry.undecodable(".".to_owned(), "it is held as another type".to_owned()))
    }
}

impl Entry {
    fn load(&self, decode: Decode) -> Result<Arc<Decoded>, DecodeError> {
        let packed = match &self.body {
            Body::Decoded(object) => return Ok(Arc::clone(object)),
            Body::Packed(packed) => packed,
        };
        if let Some(object) = self.shared.as_ref().and_then(|shared| shared.hot.get(self.number)) {
            return Ok(object);
        }
        let decoded = packed
            .unpack(decode)
            .map_err(|error| self.undecodable(".".to_owned(), error.to_string()))
            .and_then(|decoded| decoded.map_err(|(path, reason)| self.undecodable(path, reason)));
        let Some(shared) = &self.shared else { return decoded };
        match &decoded {
            Ok(object) => shared.hot.read(self.number, object),
            Err(error) if !self.reported.swap(true, Ordering::Relaxed) => {
                shared.faults.report(&Fault::Undecodable(error.clone()));
            }
            Err(_) => {}
        }
        decoded
    }

    fn undecodable(&self, path: String, reason: String) -> DecodeError {
        let kind = self.shared.as_ref().map_or_else(|| "object".to_owned(), |shared| shared.kind.clone());
        DecodeError { kind, key: self.key.clone(), path, reason }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let (Body::Packed(_), Some(shared)) = (&self.body, &self.shared) {
            shared.hot.forget(self.number);
        }
    }
}

/// Where an object cannot be decoded, and why.
pub(crate) type Reason = (String, String);

/// Decodes the text of an object of one type.
pub(crate) type Decode = fn(&[u8]) -> Result<Arc<Decoded>, Reason>;

pub(crate) fn decode_any<K: DeserializeOwned + Send + Sync + 'static>(
    text: &[u8],
) -> Result<Arc<Decoded>, Reason> {
    Ok(Arc::new(decode_text::<K>(text)?))
}

pub(crate) fn decode_text<K: DeserializeOwned>(text: &[u8]) -> Result<K, Reason> {
    // Validating UTF-8 once and parsing a str is faster than from_slice, which validates every string by itself.
    let text = std::str::from_utf8(text).map_err(|error| (".".to_owned(), error.to_string()))?;
    serde_json::from_str(text).map_err(|error| (path_at(text, &error), without_values(&error.to_string())))
}

/// Removes values from a message: serde quotes them, and they must not reach a log.
fn without_values(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}…{}", &message[..=first], &message[last..])
        }
        _ => message.to_owned(),
    }
}

/// The same handles for readers of another type.
pub(crate) fn cast_all<K, L>(objects: Vec<Lazy<K>>) -> Vec<Lazy<L>> {
    objects.into_iter().map(Lazy::cast).collect()
}

impl<K> Clone for Lazy<K> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry), kind: PhantomData }
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
    fn metadata_that_is_too_long_is_reported_as_such_with_the_key() {
        let mut map = ConfigMap::default();
        assert!(matches!(Lazy::new(map.clone(), &()), Err(ObjectError::Key(KeyError::Nameless { .. }))));
        map.metadata.name = Some("settings".into());
        map.metadata.namespace = Some("shop".into());
        map.metadata.labels = Some([("app".to_owned(), "x".repeat(65_536))].into());
        let error = Lazy::new(map, &()).unwrap_err();
        let key = ObjectKey::namespaced("shop", "settings");
        assert_eq!(error, ObjectError::MetadataTooLong { kind: "ConfigMap".into(), key });
        assert!(error.to_string().contains("ConfigMap shop/settings is too long"), "{error}");
    }

    #[test]
    fn an_entry_and_its_counts_take_two_cache_lines() {
        assert_eq!(size_of::<Entry>() + 2 * size_of::<usize>(), 128, "there is one for every cached object");
    }

    #[test]
    fn the_same_version_requires_the_same_uid() {
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
        assert!(!object("a", "").same_version(&object("a", "")), "an empty version proves nothing");
    }
}
