//! The name of an object inside its kind.

use std::{
    fmt,
    hash::{self, BuildHasher as _},
    str::FromStr,
    sync::Arc,
};

use foldhash::fast::FixedState;
use kube_core::Resource;

/// `namespace/name` of an object, or just `name` for an object without a namespace.
///
/// This is what travels through caches, event handlers and work queues instead of the object itself. A clone
/// costs one reference count; the text is stored once.
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
    /// Where the name begins: 0 without a namespace, otherwise one past the slash.
    name_at: u32,
    /// Of the text. A key passes through half a dozen tables on its way from the server to a worker, and its text is
    /// rarely in the processor's cache by then.
    hash: u32,
}

/// Why a text or an object has no [`ObjectKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is not `name` or `namespace/name`.
    #[error("{0:?} is not an object key: write it as name or namespace/name")]
    Malformed(String),
    /// The object has no `metadata.name`, so no cache can hold it.
    #[error("the {kind} has no metadata.name; only objects that the API server has answered with have a key")]
    Nameless {
        /// The kind of the object.
        kind: String,
    },
}

impl ObjectKey {
    fn of_text(text: Arc<str>, name_at: u32) -> Self {
        // The seed is fixed, so that equal runs lay their tables out equally; all bits are equally good.
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
        Self::of_text(text.into(), name_at)
    }

    /// The key for a namespace that may be absent or empty and a name, if that is text. `scratch` is reused from key to key, which
    /// saves one allocation of two.
    pub fn of_parts(namespace: &[u8], name: &[u8], scratch: &mut Vec<u8>) -> Option<Self> {
        scratch.clear();
        scratch.extend_from_slice(namespace);
        if !namespace.is_empty() {
            scratch.push(b'/');
        }
        let name_at = u32::try_from(scratch.len()).ok()?;
        scratch.extend_from_slice(name);
        Some(Self::of_text(std::str::from_utf8(scratch).ok()?.into(), name_at))
    }

    /// The key of an object that lives in no namespace.
    pub fn cluster(name: &str) -> Self {
        Self::of_text(name.into(), 0)
    }

    /// The key for a namespace that may be absent or empty, as object metadata has it.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of a typed object.
    pub fn of<K: Resource>(object: &K, dyntype: &K::DynamicType) -> Result<Self, KeyError> {
        let meta = object.meta();
        match meta.name.as_deref() {
            Some(name) if !name.is_empty() => Ok(Self::new(meta.namespace.as_deref(), name)),
            _ => Err(KeyError::Nameless { kind: K::kind(dyntype).into_owned() }),
        }
    }

    /// The namespace, unless the object lives in none.
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
    fn a_key_reads_back_what_it_prints() {
        for text in ["default/web", "node-1", "a/b"] {
            assert_eq!(text.parse::<ObjectKey>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn texts_that_are_no_key_are_refused_with_the_form_that_is() {
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            let error = text.parse::<ObjectKey>().unwrap_err();
            assert!(error.to_string().contains("namespace/name"), "{text:?}: {error}");
        }
    }

    #[test]
    fn keys_of_one_text_are_one_key_however_they_came_about() {
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
