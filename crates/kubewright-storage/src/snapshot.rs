//! Everything that is stored, at one revision.

use std::{ops::Bound, sync::Arc};

use imbl::OrdMap;
use kubewright_core::ObjectKey;

use super::{object::Object, siblings::Siblings};

/// The objects of one resource, ordered as etcd orders their keys: by namespace, then by name.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    pub(super) objects: OrdMap<ObjectKey, Arc<Object>>,
}

impl Collection {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// How many there are in all namespaces.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects of a namespace, or of all, from a key on (`after` itself is left out).
    pub fn range<'a>(
        &'a self,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Object>)> + use<'a> {
        // Of nothing there is nothing to find, and no key to look for it.
        let namespace = namespace.filter(|_| !self.is_empty());
        // '0' is the character after '/': no key of the namespace lies behind it, no other between the two.
        let first = namespace.map(|ns| ObjectKey::cluster(&format!("{ns}/")));
        let last = namespace.map(|ns| ObjectKey::cluster(&format!("{ns}0")));
        let from = match (after, first) {
            (Some(after), Some(first)) if *after < first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let to = last.map_or(Bound::Unbounded, Bound::Excluded);
        let inverted =
            matches!((&from, &to), (Bound::Excluded(f) | Bound::Included(f), Bound::Excluded(t)) if f >= t);
        (!inverted).then(|| self.objects.range((from, to))).into_iter().flatten()
    }
}

/// Everything that is stored, at one revision. A clone costs two reference counts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The revision of the last write in it.
    pub revision: u64,
    pub(super) resources: OrdMap<Arc<str>, Collection>,
}

impl Snapshot {
    /// The objects of a resource; empty when nothing was ever stored.
    pub fn collection(&self, resource: &str) -> Collection {
        self.resources.get(resource).cloned().unwrap_or_default()
    }

    /// One object.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.resources.get(resource)?.get(key).cloned()
    }

    /// Stores an object that was stored before.
    pub(super) fn insert(&mut self, resource: &str, key: ObjectKey, object: Arc<Object>) {
        if let Some(collection) = self.resources.get_mut(resource) {
            collection.objects.insert(key, object);
        } else {
            self.resources.insert(resource.into(), Collection { objects: OrdMap::unit(key, object) });
        }
    }

    /// Removes an object that was removed before; whether it was there.
    pub(super) fn remove(&mut self, resource: &str, key: &ObjectKey) -> bool {
        self.resources.get_mut(resource).is_some_and(|c| c.objects.remove(key).is_some())
    }

    /// Keeps the objects of one owner by what differs, as if they had been written one after the other.
    pub(super) fn gather(&mut self, siblings: &Siblings) {
        let resources: Vec<Arc<str>> = self.resources().cloned().collect();
        for resource in resources {
            let objects = self.collection(&resource).objects;
            for (key, object) in objects {
                if let Some(object) = object.among(&resource, siblings) {
                    self.insert(&resource, key, Arc::new(object));
                }
            }
        }
    }

    /// The names of all resources that hold or held objects.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.resources.keys()
    }
}
