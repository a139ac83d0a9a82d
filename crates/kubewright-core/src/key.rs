//! Keys of objects: namespace and name.

use std::{
    fmt,
    hash::{self, BuildHasher as _},
    str::FromStr,
    sync::Arc,
};

use foldhash::fast::FixedState;
use kube_core::Resource;

/// Key of an object within its kind: `namespace/name`, or `name` for a cluster-scoped object.
///
/// Caches, event handlers and work queues pass keys instead of objects. Cloning increments a reference count;
/// the text is stored once.
///
/// ```
/// use kubewright::ObjectKey;
///
/// let key: ObjectKey = "kube-system/coredns".parse()?;
/// assert_eq!(key.namespace(), Some("kube-system"));
/// assert_eq!(key.name(), "coredns");
///
/// let node = ObjectKey::cluster("node-1");
/// assert_eq!(node.namespace(), None);
/// assert_eq!(node.to_string(), "node-1");
/// # Ok::<(), kubewright::KeyError>(())
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    text: Arc<str>,
    /// Offset of the name in `text`: 0 without a namespace, otherwise one past the slash.
    name_at: u32,
    /// Hash of `text`. A key passes through half a dozen hash tables between server and worker, and its text
    /// is rarely in the processor's cache by then.
    hash: u32,
}

/// Error of parsing an [`ObjectKey`] or of taking it from an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not `name` or `namespace/name`.
    #[error("{0:?} is not an object key: write it as name or namespace/name")]
    Malformed(String),
    /// The object has no `metadata.name`.
    #[error("the {kind} has no metadata.name; only objects that the API server has answered with have a key")]
    Nameless {
        /// The kind of the object.
        kind: String,
    },
}

impl ObjectKey {
    fn from_text(text: Arc<str>, name_at: u32) -> Self {
        // The seed is fixed, so that hash tables have the same layout in every run.
        let hash = (FixedState::with_seed(0).hash_one(&*text) >> 32) as u32;
        Self { text, name_at, hash }
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        // Names are at most 253 characters and namespaces at most 63: the sum always fits.
        let name_at = u32::try_from(namespace.len() + 1).unwrap_or(u32::MAX);
        Self::from_text(text.into(), name_at)
    }

    /// Creates a key from a namespace, which may be empty, and a name, if they are UTF-8. Reusing `scratch`
    /// saves one of two allocations per key.
    pub fn of_parts(namespace: &[u8], name: &[u8], scratch: &mut Vec<u8>) -> Option<Self> {
        scratch.clear();
        scratch.extend_from_slice(namespace);
        if !namespace.is_empty() {
            scratch.push(b'/');
        }
        let name_at = u32::try_from(scratch.len()).ok()?;
        scratch.extend_from_slice(name);
        Some(Self::from_text(std::str::from_utf8(scratch).ok()?.into(), name_at))
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::from_text(name.into(), 0)
    }

    /// The key for a namespace that may be absent or empty.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of an object, from its metadata.
    pub fn of<K: Resource>(object: &K, dyntype: &K::DynamicType) -> Result<Self, KeyError> {
        let meta = object.meta();
        match meta.name.as_deref() {
            Some(name) if !name.is_empty() => Ok(Self::new(meta.namespace.as_deref(), name)),
            _ => Err(KeyError::Nameless { kind: K::kind(dyntype).into_owned() }),
        }
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        match self.name_at {
            0 => None,
            at => Some(&self.text[..at as usize - 1]),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }

    /// `namespace/name` or `name`, as client-go's `MetaNamespaceKeyFunc` writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let malformed = || KeyError::Malformed(text.to_owned());
        match text.split_once('/') {
            None if text.is_empty() => Err(malformed()),
            None => Ok(Self::cluster(text)),
            Some((namespace, name)) if namespace.is_empty() || name.is_empty() || name.contains('/') => {
                Err(malformed())
            }
            Some((namespace, name)) => Ok(Self::namespaced(namespace, name)),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl hash::Hash for ObjectKey {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_round_trips_through_its_text() {
        for text in ["default/web", "node-1", "a/b"] {
            assert_eq!(text.parse::<ObjectKey>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn malformed_keys_are_refused_with_the_expected_form() {
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            let error = text.parse::<ObjectKey>().unwrap_err();
            assert!(error.to_string().contains("namespace/name"), "{text:?}: {error}");
        }
    }

    #[test]
    fn keys_of_one_text_are_equal_however_they_were_made() {
        let keys =
            ["ns/x".parse().unwrap(), ObjectKey::namespaced("ns", "x"), ObjectKey::new(Some("ns"), "x")];
        let set: std::collections::HashSet<ObjectKey> = keys.into_iter().collect();
        assert_eq!(set.len(), 1);
        assert!(!set.contains(&ObjectKey::cluster("x")));
    }

    #[test]
    fn an_empty_namespace_is_no_namespace() {
        assert_eq!(ObjectKey::new(Some(""), "x"), ObjectKey::cluster("x"));
        assert_eq!(ObjectKey::new(Some("ns"), "x"), ObjectKey::namespaced("ns", "x"));
    }

    #[test]
    fn an_object_without_a_name_has_no_key() {
        let pod = k8s_openapi::api::core::v1::Pod::default();
        assert_eq!(ObjectKey::of(&pod, &()), Err(KeyError::Nameless { kind: "Pod".into() }));
    }
}
