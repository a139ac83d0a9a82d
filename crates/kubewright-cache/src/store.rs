//! Store of objects by key, with indexes.
//!
//! client-go's `cache.NewStore` is [`Store::new`], `cache.NewIndexer` is a `Store` with indexes, and
//! [`Indexer`] is the store of informers. Clones share the content.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;

use super::{
    delta_fifo::Delta,
    index::IndexFn,
    object::{Lazy, Untyped, cast_all},
    reflector_store::{ReflectorStore, Replacement},
    thread_safe_store::{StoreError, ThreadSafeStore},
};
use kubewright_core::{KeyError, ObjectKey};

/// Key function; client-go's `KeyFunc`.
pub type KeyFn<T> = Arc<dyn Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync>;

/// The store of an informer of `K`.
pub type Indexer<K> = Store<Lazy<K>>;

/// Objects by key, with a key function.
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
    objects: Box<dyn Objects<T>>,
}

/// Where the objects of a store are: in a store of their own type, or behind a typed view of the one of an informer.
trait Objects<T>: Send + Sync + fmt::Debug {
    fn add(&self, key: ObjectKey, object: T) -> Result<(), StoreError>;
    fn delete(&self, key: &ObjectKey) -> Option<T>;
    fn get(&self, key: &ObjectKey) -> Option<T>;
    fn list(&self) -> Vec<T>;
    fn list_keys(&self) -> Vec<ObjectKey>;
    fn len(&self) -> usize;
    fn replace(&self, objects: Vec<(ObjectKey, T)>) -> Result<(), StoreError>;
    fn add_indexes(&self, functions: Vec<IndexFn<T>>) -> Result<(), StoreError>;
    fn index_names(&self) -> Vec<String>;
    fn index(&self, index: &str, object: &T) -> Result<Vec<T>, StoreError>;
    fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, StoreError>;
    fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError>;
    fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError>;
    fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError>;
}

impl<T: Clone> Store<T> {
    /// Creates an empty store with a key function.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
    {
        Self::over(Arc::new(ThreadSafeStore::new()), Arc::new(key))
    }

    fn over(objects: impl Objects<T> + 'static, key: KeyFn<T>) -> Self {
        Self { inner: Arc::new(Inner { key, objects: Box::new(objects) }) }
    }

    /// Returns the key of an object.
    pub fn key_of(&self, object: &T) -> Result<ObjectKey, KeyError> {
        (self.inner.key)(object)
    }

    /// Adds an object, or replaces the one with its key.
    pub fn add(&self, object: T) -> Result<(), StoreError> {
        self.inner.objects.add(self.key_of(&object)?, object)
    }

    /// The same as [`add`](Self::add).
    pub fn update(&self, object: T) -> Result<(), StoreError> {
        self.add(object)
    }

    /// Removes the object with the same key and returns it.
    pub fn delete(&self, object: &T) -> Result<Option<T>, StoreError> {
        Ok(self.delete_key(&self.key_of(object)?))
    }

    /// Removes the object with this key and returns it.
    pub fn delete_key(&self, key: &ObjectKey) -> Option<T> {
        self.inner.objects.delete(key)
    }

    /// Returns the stored object with the same key.
    pub fn get(&self, object: &T) -> Result<Option<T>, StoreError> {
        Ok(self.get_by_key(&self.key_of(object)?))
    }

    /// Returns the object with this key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.inner.objects.get(key)
    }

    /// Returns all objects.
    pub fn list(&self) -> Vec<T> {
        self.inner.objects.list()
    }

    /// Returns the keys of all objects.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.inner.objects.list_keys()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.inner.objects.len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces all objects. Nothing changes if one of them has no key.
    pub fn replace(&self, objects: Vec<T>) -> Result<(), StoreError> {
        let keyed: Vec<_> = objects
            .into_iter()
            .map(|object| Ok((self.key_of(&object)?, object)))
            .collect::<Result<_, KeyError>>()?;
        self.inner.objects.replace(keyed)
    }

    /// Applies a delta, for programs that pop a [`DeltaFifo`](super::DeltaFifo) themselves.
    ///
    /// A [`Delta::Sync`] changes nothing.
    pub fn apply(&self, delta: &Delta<T>) -> Result<(), StoreError> {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                self.add(object.clone())
            }
            Delta::Deleted { object, .. } => self.delete(object).map(drop),
            Delta::Sync(_) => Ok(()),
        }
    }

    /// Adds an index, also to a store with objects.
    pub fn add_index(&self, function: IndexFn<T>) -> Result<(), StoreError> {
        self.inner.objects.add_indexes(vec![function])
    }

    /// Adds several indexes, or none if one of the names exists.
    pub fn add_indexes(&self, functions: impl IntoIterator<Item = IndexFn<T>>) -> Result<(), StoreError> {
        self.inner.objects.add_indexes(functions.into_iter().collect())
    }

    /// Returns the names of the indexes.
    pub fn index_names(&self) -> Vec<String> {
        self.inner.objects.index_names()
    }

    /// Returns the objects that share a value of the index with this object.
    pub fn index(&self, index: &str, object: &T) -> Result<Vec<T>, StoreError> {
        self.inner.objects.index(index, object)
    }

    /// Returns the objects that have this value in the index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, StoreError> {
        self.inner.objects.by_index(index, value)
    }

    /// Returns the number of objects that have this value in the index.
    pub fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError> {
        self.inner.objects.count_by_index(index, value)
    }

    /// Returns the keys of the objects that have this value in the index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError> {
        self.inner.objects.index_keys(index, value)
    }

    /// Returns all values of the index.
    pub fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError> {
        self.inner.objects.list_index_values(index)
    }
}

impl<K: 'static> Indexer<K> {
    /// Creates an empty store of cached objects, keyed by namespace and name; client-go's
    /// `MetaNamespaceKeyFunc`.
    pub fn with_metadata_key() -> Self {
        Self::viewing(Arc::new(ThreadSafeStore::new()))
    }

    /// A typed view of the store of an informer.
    pub(super) fn viewing(objects: Arc<UntypedStore>) -> Self {
        Self::over(View(objects), Arc::new(|object: &Lazy<K>| Ok(object.key().clone())))
    }
}

/// The store of an informer, whatever kind it is of.
pub(super) type UntypedStore = ThreadSafeStore<Lazy<Untyped>>;

impl Indexer<Untyped> {
    /// The store of an informer as what a queue of deltas compares with.
    pub(super) fn untyped(objects: Arc<UntypedStore>) -> Self {
        Self::over(objects, Arc::new(|object: &Lazy<Untyped>| Ok(object.key().clone())))
    }
}

impl<T: Clone + Send + Sync> Objects<T> for Arc<ThreadSafeStore<T>> {
    fn add(&self, key: ObjectKey, object: T) -> Result<(), StoreError> {
        ThreadSafeStore::add(self, key, object)
    }

    fn delete(&self, key: &ObjectKey) -> Option<T> {
        ThreadSafeStore::delete(self, key)
    }

    fn get(&self, key: &ObjectKey) -> Option<T> {
        ThreadSafeStore::get(self, key)
    }

    fn list(&self) -> Vec<T> {
        ThreadSafeStore::list(self)
    }

    fn list_keys(&self) -> Vec<ObjectKey> {
        ThreadSafeStore::list_keys(self)
    }

    fn len(&self) -> usize {
        ThreadSafeStore::len(self)
    }

    fn replace(&self, objects: Vec<(ObjectKey, T)>) -> Result<(), StoreError> {
        ThreadSafeStore::replace(self, objects)
    }

    fn add_indexes(&self, functions: Vec<IndexFn<T>>) -> Result<(), StoreError> {
        ThreadSafeStore::add_indexes(self, functions)
    }

    fn index_names(&self) -> Vec<String> {
        ThreadSafeStore::index_names(self)
    }

    fn index(&self, index: &str, object: &T) -> Result<Vec<T>, StoreError> {
        ThreadSafeStore::index(self, index, object)
    }

    fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, StoreError> {
        ThreadSafeStore::by_index(self, index, value)
    }

    fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError> {
        ThreadSafeStore::count_by_index(self, index, value)
    }

    fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError> {
        ThreadSafeStore::index_keys(self, index, value)
    }

    fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError> {
        ThreadSafeStore::list_index_values(self, index)
    }
}

/// Objects of any kind as objects of one.
#[derive(Debug)]
struct View(Arc<UntypedStore>);

impl<K: 'static> Objects<Lazy<K>> for View {
    fn add(&self, key: ObjectKey, object: Lazy<K>) -> Result<(), StoreError> {
        self.0.add(key, object.cast())
    }

    fn delete(&self, key: &ObjectKey) -> Option<Lazy<K>> {
        self.0.delete(key).map(Lazy::cast)
    }

    fn get(&self, key: &ObjectKey) -> Option<Lazy<K>> {
        self.0.get(key).map(Lazy::cast)
    }

    fn list(&self) -> Vec<Lazy<K>> {
        cast_all(self.0.list())
    }

    fn list_keys(&self) -> Vec<ObjectKey> {
        self.0.list_keys()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn replace(&self, objects: Vec<(ObjectKey, Lazy<K>)>) -> Result<(), StoreError> {
        self.0.replace(objects.into_iter().map(|(key, object)| (key, object.cast())).collect::<Vec<_>>())
    }

    fn add_indexes(&self, functions: Vec<IndexFn<Lazy<K>>>) -> Result<(), StoreError> {
        self.0.add_indexes(functions.into_iter().map(IndexFn::untyped).collect::<Vec<_>>())
    }

    fn index_names(&self) -> Vec<String> {
        self.0.index_names()
    }

    fn index(&self, index: &str, object: &Lazy<K>) -> Result<Vec<Lazy<K>>, StoreError> {
        self.0.index(index, &object.clone().cast()).map(cast_all)
    }

    fn by_index(&self, index: &str, value: &str) -> Result<Vec<Lazy<K>>, StoreError> {
        self.0.by_index(index, value).map(cast_all)
    }

    fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError> {
        self.0.count_by_index(index, value)
    }

    fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError> {
        self.0.index_keys(index, value)
    }

    fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError> {
        self.0.list_index_values(index)
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

    fn begin_replace(&self) -> Box<dyn Replacement<T>> {
        Box::new(ListReplacement { store: self.clone(), objects: IndexMap::new() })
    }

    fn known(&self, key: &ObjectKey) -> Option<T> {
        self.get_by_key(key)
    }

    fn resync(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A list in progress. The store is replaced in one step, so pages are collected here.
struct ListReplacement<T> {
    store: Store<T>,
    objects: IndexMap<ObjectKey, T>,
}

impl<T: Clone + Send + Sync> Replacement<T> for ListReplacement<T> {
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
        self.store.inner.objects.replace(self.objects.into_iter().collect())
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
