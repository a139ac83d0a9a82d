//! Snapshot of all objects at one revision.

use std::{ops::Bound, sync::Arc};

use imbl::OrdMap;
use kubewright_core::ObjectKey;

use super::{object::Object, siblings::Bases};

/// Objects of one resource, in etcd's key order: by namespace, then by name.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    pub(super) objects: OrdMap<ObjectKey, Arc<Object>>,
}

impl Collection {
    /// Returns an object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// Returns the number of objects in all namespaces.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the objects of a namespace, or of all, after the key `after`.
    pub fn range<'a>(
        &'a self,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Object>)> + use<'a> {
        // Skips formatting the key for an empty collection.
        let namespace = namespace.filter(|_| !self.is_empty());
        // '0' follows '/' in ASCII: the keys of the namespace are exactly those between the two.
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

/// State of the storage at one revision. A clone costs two reference counts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The revision of the last write.
    pub revision: u64,
    pub(super) resources: OrdMap<Arc<str>, Collection>,
}

impl Snapshot {
    /// Returns the objects of a resource; empty if there never were any.
    pub fn collection(&self, resource: &str) -> Collection {
        self.resources.get(resource).cloned().unwrap_or_default()
    }

    /// Returns an object.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.resources.get(resource)?.get(key).cloned()
    }

    /// Inserts an object during recovery.
    pub(super) fn insert(&mut self, resource: &str, key: ObjectKey, object: Arc<Object>) {
        if let Some(collection) = self.resources.get_mut(resource) {
            collection.objects.insert(key, object);
        } else {
            self.resources.insert(resource.into(), Collection { objects: OrdMap::unit(key, object) });
        }
    }

    /// Removes an object during recovery; returns whether it existed.
    pub(super) fn remove(&mut self, resource: &str, key: &ObjectKey) -> bool {
        self.resources.get_mut(resource).is_some_and(|c| c.objects.remove(key).is_some())
    }

    /// Delta-encodes the objects of each owner, as if they had been written one after the other.
    pub(super) fn delta_encode(&mut self, bases: &Bases) {
        let resources: Vec<Arc<str>> = self.resources().cloned().collect();
        for resource in resources {
            let objects = self.collection(&resource).objects;
            for (key, object) in objects {
                if let Some(object) = object.delta_encoded(&resource, bases) {
                    self.insert(&resource, key, Arc::new(object));
                }
            }
        }
    }

    /// Returns the names of all resources that have or had objects.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.resources.keys()
    }
}
