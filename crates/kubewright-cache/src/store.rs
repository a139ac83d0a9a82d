//! The cache itself: objects by their own key, with indexes.
//!
//! In client-go's words: `cache.NewStore` is [`Store::new`], `cache.NewIndexer` is a `Store` with indexes, and
//! [`Indexer`] is the store that informers fill. All handles to a store share its content.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;

use super::{
    delta_fifo::Delta,
    index::IndexFn,
    object::Lazy,
    reflector_store::{ReflectorStore, Replacement},
    thread_safe_store::{StoreError, ThreadSafeStore},
};
use kubewright_core::{KeyError, ObjectKey};

/// Finds the key of an object.
pub type KeyFn<T> = Arc<dyn Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync>;

/// The store that an informer of `K` keeps up to date.
pub type Indexer<K> = Store<Lazy<K>>;

/// Objects by key, where the key is a function of the object.
///
/// ```
/// use kubewright::{ObjectKey, cache::Store};
///
/// let store = Store::new(|name: &&str| Ok(ObjectKey::cluster(name)));
/// store.add("one")?;
/// assert_eq!(store.get_by_key(&"one".parse()?), Some("one"));
/// store.delete(&"one")?;
/// assert!(store.list().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    key: KeyFn<T>,
    objects: ThreadSafeStore<T>,
}

impl<T: Clone> Store<T> {
    /// An empty store of objects that this function finds the key of.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { key: Arc::new(key), objects: ThreadSafeStore::new() }) }
    }

    /// The key that this store has for an object.
    pub fn key_of(&self, object: &T) -> Result<ObjectKey, KeyError> {
        (self.inner.key)(object)
    }

    /// Adds an object, or replaces the one with its key.
    pub fn add(&self, object: T) -> Result<(), StoreError> {
        self.inner.objects.add(self.key_of(&object)?, object)
    }

    /// The same as [`add`](Self::add): the name says what the caller knows.
    pub fn update(&self, object: T) -> Result<(), StoreError> {
        self.add(object)
    }

    /// Takes the object with this object's key out, and returns it.
    pub fn delete(&self, object: &T) -> Result<Option<T>, StoreError> {
        Ok(self.delete_key(&self.key_of(object)?))
    }

    /// Takes the object with this key out, and returns it.
    pub fn delete_key(&self, key: &ObjectKey) -> Option<T> {
        self.inner.objects.delete(key)
    }

    /// The stored object with this object's key.
    pub fn get(&self, object: &T) -> Result<Option<T>, StoreError> {
        Ok(self.get_by_key(&self.key_of(object)?))
    }

    /// The object with this key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.inner.objects.get(key)
    }

    /// All objects.
    pub fn list(&self) -> Vec<T> {
        self.inner.objects.list()
    }

    /// The keys of all objects.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.inner.objects.list_keys()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.inner.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.inner.objects.is_empty()
    }

    /// Makes the store hold just these objects. An object without a key refuses all of them.
    pub fn replace(&self, objects: Vec<T>) -> Result<(), StoreError> {
        let keyed: Vec<_> = objects
            .into_iter()
            .map(|object| Ok((self.key_of(&object)?, object)))
            .collect::<Result<_, KeyError>>()?;
        self.inner.objects.replace(keyed)
    }

    /// Does what a delta says, for programs that empty a [`DeltaFifo`](super::DeltaFifo) themselves.
    ///
    /// A [`Delta::Sync`] changes nothing: the object is as it was.
    pub fn apply(&self, delta: &Delta<T>) -> Result<(), StoreError> {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                self.add(object.clone())
            }
            Delta::Deleted { object, .. } => self.delete(object).map(drop),
            Delta::Sync(_) => Ok(()),
        }
    }

    /// Adds an index; also later, when there are objects.
    pub fn add_index(&self, function: IndexFn<T>) -> Result<(), StoreError> {
        self.inner.objects.add_indexes([function])
    }

    /// Adds several indexes, or none if one of the names is taken.
    pub fn add_indexes(&self, functions: impl IntoIterator<Item = IndexFn<T>>) -> Result<(), StoreError> {
        self.inner.objects.add_indexes(functions)
    }

    /// The names of the indexes.
    pub fn index_names(&self) -> Vec<String> {
        self.inner.objects.index_names()
    }

    /// The objects that share a value of the index with this object.
    pub fn index(&self, index: &str, object: &T) -> Result<Vec<T>, StoreError> {
        self.inner.objects.index(index, object)
    }

    /// The objects that have this value in the index: handles, no copies.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, StoreError> {
        self.inner.objects.by_index(index, value)
    }

    /// How many objects have this value in the index.
    pub fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError> {
        self.inner.objects.count_by_index(index, value)
    }

    /// The keys of the objects that have this value in the index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError> {
        self.inner.objects.index_keys(index, value)
    }

    /// All values of the index that some object has.
    pub fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError> {
        self.inner.objects.list_index_values(index)
    }

    pub(super) fn objects(&self) -> &ThreadSafeStore<T> {
        &self.inner.objects
    }
}

impl<K: 'static> Indexer<K> {
    /// An empty store of cached objects, by namespace and name.
    pub fn keyed() -> Self {
        Self::new(|object: &Lazy<K>| Ok(object.key().clone()))
    }
}

impl<T: Clone + Send + Sync + 'static> ReflectorStore<T> for Store<T> {
    fn add(&self, object: T) -> Result<(), StoreError> {
        Store::add(self, object)
    }

    fn update(&self, object: T) -> Result<(), StoreError> {
        Store::update(self, object)
    }

    fn delete(&self, object: T) -> Result<(), StoreError> {
        Store::delete(self, &object).map(drop)
    }

    fn replacing(&self) -> Box<dyn Replacement<T>> {
        Box::new(Replacing { store: self.clone(), objects: IndexMap::new() })
    }

    fn known(&self, key: &ObjectKey) -> Option<T> {
        self.get_by_key(key)
    }

    fn resync(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A store changes in one step, so the pages of a list wait here for the last one.
struct Replacing<T> {
    store: Store<T>,
    objects: IndexMap<ObjectKey, T>,
}

impl<T: Clone + Send + Sync> Replacement<T> for Replacing<T> {
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError> {
        for object in objects {
            self.objects.insert(self.store.key_of(&object)?, object);
        }
        Ok(())
    }

    fn remove(&mut self, object: T) -> Result<(), StoreError> {
        self.objects.shift_remove(&self.store.key_of(&object)?);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.store.inner.objects.replace(self.objects)
    }
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.objects.fmt(f)
    }
}
