//! What a reflector needs of the thing it fills.

use super::thread_safe_store::StoreError;
use kubewright_core::ObjectKey;

/// A place that a [`Reflector`](super::Reflector) keeps in step with the API server.
///
/// [`Store`](super::Store) follows directly; [`DeltaFifo`](super::DeltaFifo) turns what happens into deltas for a
/// consumer. Implement it to mirror a kind into something of your own.
pub trait ReflectorStore<T>: Send + Sync {
    /// An object appeared.
    fn add(&self, object: T) -> Result<(), StoreError>;
    /// An object changed.
    fn update(&self, object: T) -> Result<(), StoreError>;
    /// An object is gone; this is its last state.
    fn delete(&self, object: T) -> Result<(), StoreError>;
    /// A new list is coming in. Dropped without [`commit`](Replacement::commit), it never was complete.
    fn replacing(&self) -> Box<dyn Replacement<T>>;
    /// What is held under a key, so that an unchanged object need not be stored twice during a list.
    fn known(&self, key: &ObjectKey) -> Option<T>;
    /// Whether there is anything to ask [`known`](Self::known) for: the first list of all then asks for nothing.
    fn knows_any(&self) -> bool {
        true
    }
    /// The time for a periodic look at every object has come.
    fn resync(&self) -> Result<(), StoreError>;
    /// The store has now been told of everything up to this version.
    fn observed(&self, resource_version: &str) {
        let _ = resource_version;
    }
}

/// A list on its way into a store, page by page.
pub trait Replacement<T>: Send {
    /// Objects of the list, in order.
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError>;
    /// An object that was in an earlier page went away before the list was complete.
    fn remove(&mut self, object: T) -> Result<(), StoreError>;
    /// The list is complete: what was not in it is gone.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}
