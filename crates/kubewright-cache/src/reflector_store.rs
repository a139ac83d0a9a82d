//! Interface between a reflector and its store.

use std::marker::PhantomData;

use super::{
    object::{Lazy, Untyped, cast_all},
    thread_safe_store::StoreError,
};
use kubewright_core::ObjectKey;

/// A store that a [`Reflector`](super::Reflector) keeps in sync with the API server.
///
/// [`Store`](super::Store) holds the objects; [`DeltaFifo`](super::DeltaFifo) queues deltas for a consumer.
/// Implement it to mirror a kind into another store.
pub trait ReflectorStore<T>: Send + Sync {
    /// Adds an object.
    fn add(&self, object: T) -> Result<(), StoreError>;
    /// Updates an object.
    fn update(&self, object: T) -> Result<(), StoreError>;
    /// Deletes an object; this is its last state.
    fn delete(&self, object: T) -> Result<(), StoreError>;
    /// Begins a new list. Dropped without [`commit`](Replacement::commit), the list was incomplete.
    fn begin_replace(&self) -> Box<dyn Replacement<T>>;
    /// Returns the object with a key, so that unchanged objects are not stored again during a list.
    fn known(&self, key: &ObjectKey) -> Option<T>;
    /// Returns whether [`known`](Self::known) may return anything; `false` saves the calls during the first
    /// list.
    fn has_known(&self) -> bool {
        true
    }
    /// Resyncs all objects.
    fn resync(&self) -> Result<(), StoreError>;
    /// Called when everything up to this version has been passed to the store.
    fn update_resource_version(&self, resource_version: &str) {
        let _ = resource_version;
    }
}

/// A list in progress, page by page.
pub trait Replacement<T>: Send {
    /// Adds objects of the list, in order.
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError>;
    /// Removes an object of an earlier page that was deleted before the list was complete.
    fn remove(&mut self, object: T) -> Result<(), StoreError>;
    /// Completes the list: objects that it lacks are deleted.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// A store of one kind as a reflector fills it.
pub(super) struct Typed<K, S> {
    inner: S,
    kind: PhantomData<fn() -> K>,
}

impl<K, S> Typed<K, S> {
    pub(super) fn of(inner: S) -> Self {
        Self { inner, kind: PhantomData }
    }
}

impl<K: 'static, S: ReflectorStore<Lazy<K>>> ReflectorStore<Lazy<Untyped>> for Typed<K, S> {
    fn add(&self, object: Lazy<Untyped>) -> Result<(), StoreError> {
        self.inner.add(object.cast())
    }

    fn update(&self, object: Lazy<Untyped>) -> Result<(), StoreError> {
        self.inner.update(object.cast())
    }

    fn delete(&self, object: Lazy<Untyped>) -> Result<(), StoreError> {
        self.inner.delete(object.cast())
    }

    fn begin_replace(&self) -> Box<dyn Replacement<Lazy<Untyped>>> {
        Box::new(Typed::<K, _>::of(self.inner.begin_replace()))
    }

    fn known(&self, key: &ObjectKey) -> Option<Lazy<Untyped>> {
        self.inner.known(key).map(Lazy::cast)
    }

    fn has_known(&self) -> bool {
        self.inner.has_known()
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.inner.resync()
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.inner.update_resource_version(resource_version);
    }
}

impl<K: 'static> Replacement<Lazy<Untyped>> for Typed<K, Box<dyn Replacement<Lazy<K>>>> {
    fn page(&mut self, objects: Vec<Lazy<Untyped>>) -> Result<(), StoreError> {
        self.inner.page(cast_all(objects))
    }

    fn remove(&mut self, object: Lazy<Untyped>) -> Result<(), StoreError> {
        self.inner.remove(object.cast())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.inner.commit()
    }
}
