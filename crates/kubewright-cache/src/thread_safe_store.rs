//! Objects by key, with indexes, behind one lock.
//!
//! This is client-go's `ThreadSafeStore`: the map under every cache. [`Store`](super::Store) adds the key
//! function. Use this one directly only with explicit keys.

use std::{fmt, hash::BuildHasher};

use foldhash::fast::FixedState;
use hashbrown::{HashTable, hash_table::Entry};
use parking_lot::RwLock;

use super::index::{Index, IndexError, IndexFn, Moved, Postings};
use kubewright_core::ObjectKey;

/// A map of objects with indexes.
///
/// Values are cheap handles (an `Arc`, a [`Lazy`](super::Lazy)): reads return clones of them and never copies
/// of the objects. Readers do not block each other. Objects are listed in insertion order, except that new
/// objects reuse the slots of deleted ones.
///
/// If an index function fails for an object, the object is stored but not in that index, and the error is
/// returned.
///
/// ```
/// use kubewright::cache::{IndexFn, ThreadSafeStore};
///
/// let store = ThreadSafeStore::new();
/// store.add_indexes([IndexFn::new("length", |text: &&str| text.len().to_string())])?;
/// store.add("a".parse()?, "one")?;
/// store.add("b".parse()?, "two")?;
/// store.add("c".parse()?, "three")?;
/// assert_eq!(store.by_index("length", "3")?, ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ThreadSafeStore<T> {
    inner: RwLock<Inner<T>>,
}

/// Error of a store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The index does not exist.
    #[error("there is no index {requested:?}; the store has {known:?}")]
    NoSuchIndex {
        /// The requested name.
        requested: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// An index of this name exists already.
    #[error("there is already an index {0:?}; give the new one another name")]
    IndexExists(String),
    /// An index function failed for an object; the object is stored, but not in that index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The object has no key.
    #[error(transparent)]
    Key(#[from] kubewright_core::KeyError),
}

struct Inner<T> {
    table: HashTable<u32>,
    slots: Vec<Option<Slot<T>>>,
    free: Vec<u32>,
    indexes: Vec<Index<T>>,
    moved: Vec<Moved>,
}

struct Slot<T> {
    key: ObjectKey,
    value: T,
    postings: Postings,
}

/// Hashes with a fixed seed, so that table layouts are deterministic.
fn hash(key: &ObjectKey) -> u64 {
    FixedState::default().hash_one(key)
}

impl<T> Default for ThreadSafeStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ThreadSafeStore<T> {
    /// Creates an empty store without indexes.
    pub fn new() -> Self {
        Self {
            inner: RwLock::new(Inner {
                table: HashTable::new(),
                slots: Vec::new(),
                free: Vec::new(),
                indexes: Vec::new(),
                moved: Vec::new(),
            }),
        }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.inner.read().table.len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of all objects.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.inner.read().occupied().map(|slot| slot.key.clone()).collect()
    }

    /// Returns the names of the indexes.
    pub fn index_names(&self) -> Vec<String> {
        self.inner.read().index_names()
    }
}

impl<T: Clone> ThreadSafeStore<T> {
    /// Adds an object, or replaces the one with its key.
    pub fn add(&self, key: ObjectKey, value: T) -> Result<(), StoreError> {
        let (_replaced, errors) = self.inner.write().put(key, value);
        first_error(errors)
    }

    /// The same as [`add`](Self::add).
    pub fn update(&self, key: ObjectKey, value: T) -> Result<(), StoreError> {
        self.add(key, value)
    }

    /// Removes an object and returns it.
    pub fn delete(&self, key: &ObjectKey) -> Option<T> {
        self.inner.write().take(key)
    }

    /// Returns the object with a key.
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        let inner = self.inner.read();
        inner.find(key).map(|slot| inner.value(slot).clone())
    }

    /// Returns all objects.
    pub fn list(&self) -> Vec<T> {
        self.inner.read().occupied().map(|slot| slot.value.clone()).collect()
    }

    /// Replaces all objects atomically.
    pub fn replace(&self, objects: impl IntoIterator<Item = (ObjectKey, T)>) -> Result<(), StoreError> {
        let mut inner = self.inner.write();
        let mut keep = vec![false; inner.slots.len()];
        let mut errors = Vec::new();
        for (key, value) in objects {
            let slot = inner.put(key, value);
            errors.extend(slot.1);
            let at = slot.0.0 as usize;
            if keep.len() <= at {
                keep.resize(at + 1, false);
            }
            keep[at] = true;
        }
        let gone: Vec<ObjectKey> = inner
            .slots
            .iter()
            .zip(&keep)
            .filter_map(|(slot, keep)| slot.as_ref().filter(|_| !keep).map(|slot| slot.key.clone()))
            .collect();
        for key in gone {
            inner.take(&key);
        }
        drop(inner);
        first_error(errors)
    }

    /// Runs several changes under one lock. Returns the errors of index functions.
    pub(super) fn transaction<R>(
        &self,
        change: impl FnOnce(&mut Transaction<'_, T>) -> R,
    ) -> (R, Vec<IndexError>) {
        let mut inner = self.inner.write();
        let mut transaction = Transaction { inner: &mut inner, errors: Vec::new() };
        let result = change(&mut transaction);
        (result, transaction.errors)
    }

    /// Adds indexes, also to a store with objects.
    ///
    /// If one of the names exists, none is added. A function that fails for an object is an error too, but
    /// the indexes are added and hold all other objects.
    pub fn add_indexes(&self, functions: impl IntoIterator<Item = IndexFn<T>>) -> Result<(), StoreError> {
        let mut inner = self.inner.write();
        let functions: Vec<_> = functions.into_iter().collect();
        for (at, function) in functions.iter().enumerate() {
            let name = function.name();
            if inner.index_number(name).is_ok() || functions[..at].iter().any(|other| other.name() == name) {
                return Err(StoreError::IndexExists(name.to_owned()));
            }
        }
        let mut errors = Vec::new();
        for function in functions {
            errors.extend(inner.add_index(function));
        }
        drop(inner);
        first_error(errors)
    }

    /// Returns the objects that share at least one value of the index with this object, whether it is stored
    /// or not.
    pub fn index(&self, index: &str, object: &T) -> Result<Vec<T>, StoreError> {
        let function = {
            let inner = self.inner.read();
            inner.indexes[inner.index_number(index)?].function().clone()
        };
        let probe = ThreadSafeStore::new();
        let key = ObjectKey::cluster("probe");
        probe.add_indexes([function])?;
        probe.add(key, object.clone())?;
        let values = probe.list_index_values(index)?;
        let inner = self.inner.read();
        let index = &inner.indexes[inner.index_number(index)?];
        let mut slots: Vec<u32> = values.iter().flat_map(|value| index.slots(value)).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        Ok(slots.into_iter().map(|slot| inner.value(slot).clone()).collect())
    }

    /// Returns the objects that have this value in the index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, StoreError> {
        let inner = self.inner.read();
        let index = &inner.indexes[inner.index_number(index)?];
        Ok(index.slots(value).iter().map(|slot| inner.value(*slot).clone()).collect())
    }

    /// Returns the number of objects that have this value in the index.
    pub fn count_by_index(&self, index: &str, value: &str) -> Result<usize, StoreError> {
        let inner = self.inner.read();
        Ok(inner.indexes[inner.index_number(index)?].slots(value).len())
    }

    /// Returns the keys of the objects that have this value in the index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, StoreError> {
        let inner = self.inner.read();
        let index = &inner.indexes[inner.index_number(index)?];
        Ok(index.slots(value).iter().map(|slot| inner.slot(*slot).key.clone()).collect())
    }

    /// Returns all values of the index.
    pub fn list_index_values(&self, index: &str) -> Result<Vec<String>, StoreError> {
        let inner = self.inner.read();
        let index = &inner.indexes[inner.index_number(index)?];
        Ok(index.values().map(str::to_owned).collect())
    }
}

fn first_error(errors: Vec<IndexError>) -> Result<(), StoreError> {
    errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
}

/// Changes under one lock.
pub(super) struct Transaction<'a, T> {
    inner: &'a mut Inner<T>,
    errors: Vec<IndexError>,
}

impl<T: Clone> Transaction<'_, T> {
    /// Adds an object and returns the one that it replaced.
    pub(super) fn put(&mut self, key: ObjectKey, value: T) -> Option<T> {
        let ((_, replaced), errors) = self.inner.put(key, value);
        self.errors.extend(errors);
        replaced
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.inner.find(key).map(|slot| self.inner.value(slot))
    }

    pub(super) fn delete(&mut self, key: &ObjectKey) -> Option<T> {
        self.inner.take(key)
    }
}

impl<T> Inner<T> {
    fn occupied(&self) -> impl Iterator<Item = &Slot<T>> {
        self.slots.iter().flatten()
    }

    fn find(&self, key: &ObjectKey) -> Option<u32> {
        self.table.find(hash(key), |slot| self.slot(*slot).key == *key).copied()
    }

    fn slot(&self, slot: u32) -> &Slot<T> {
        self.slots[slot as usize].as_ref().expect("the table and the indexes name only occupied slots")
    }

    fn value(&self, slot: u32) -> &T {
        &self.slot(slot).value
    }

    /// Stores an object. Returns its slot, the object that it replaced, and the errors of index functions.
    fn put(&mut self, key: ObjectKey, value: T) -> ((u32, Option<T>), Vec<IndexError>) {
        let slots = &self.slots;
        let held = |slot: &u32| slots[*slot as usize].as_ref();
        let entry = self.table.entry(
            hash(&key),
            |slot| held(slot).is_some_and(|held| held.key == key),
            |slot| held(slot).map_or(0, |held| hash(&held.key)),
        );
        let (slot, replaced) = match entry {
            Entry::Occupied(entry) => {
                let slot = *entry.get();
                let held = self.slots[slot as usize].as_mut().expect("the table names only occupied slots");
                (slot, Some(std::mem::replace(&mut held.value, value)))
            }
            Entry::Vacant(entry) => {
                let free = self.free.pop();
                let slot = free.unwrap_or_else(|| {
                    u32::try_from(slots.len()).expect("a cache holds fewer objects than 32 bits count")
                });
                entry.insert(slot);
                let content = Some(Slot { key, value, postings: Postings::new() });
                match free {
                    Some(slot) => self.slots[slot as usize] = content,
                    None => self.slots.push(content),
                }
                (slot, None)
            }
        };
        let errors = self.reindex(slot, 0);
        ((slot, replaced), errors)
    }

    fn take(&mut self, key: &ObjectKey) -> Option<T> {
        let entry = {
            let slots = &self.slots;
            self.table
                .find_entry(hash(key), |slot| {
                    slots[*slot as usize].as_ref().is_some_and(|slot| slot.key == *key)
                })
                .ok()?
        };
        let (slot, _) = entry.remove();
        let content = self.slots[slot as usize].take()?;
        self.free.push(slot);
        for posting in content.postings {
            self.indexes[posting.index as usize].remove(posting, &mut self.moved);
        }
        self.apply_moves();
        Some(content.value)
    }

    /// Updates the indexes from number `from` on for one object.
    fn reindex(&mut self, slot: u32, from: usize) -> Vec<IndexError> {
        let held = self.slots[slot as usize].as_mut().expect("the object was put there just now");
        let mut postings = std::mem::take(&mut held.postings);
        let mut errors = Vec::new();
        for (number, index) in (0u32..).zip(self.indexes.iter_mut()).skip(from) {
            let held = self.slots[slot as usize].as_ref().expect("the object was put there just now");
            let result = index.update(number, slot, &held.key, &held.value, &mut postings, &mut self.moved);
            errors.extend(result.err());
        }
        if let Some(held) = self.slots[slot as usize].as_mut() {
            held.postings = postings;
        }
        self.apply_moves();
        errors
    }

    fn apply_moves(&mut self) {
        for moved in self.moved.drain(..) {
            if let Some(slot) = &mut self.slots[moved.slot as usize] {
                moved.apply(&mut slot.postings);
            }
        }
    }

    fn add_index(&mut self, function: IndexFn<T>) -> Vec<IndexError> {
        self.indexes.push(Index::new(function));
        let from = self.indexes.len() - 1;
        let slots = u32::try_from(self.slots.len()).expect("a cache holds fewer objects than 32 bits count");
        (0..slots)
            .filter(|slot| self.slots[*slot as usize].is_some())
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|slot| self.reindex(slot, from))
            .collect()
    }

    fn index_number(&self, name: &str) -> Result<usize, StoreError> {
        self.indexes
            .iter()
            .position(|index| index.function().name() == name)
            .ok_or_else(|| StoreError::NoSuchIndex { requested: name.to_owned(), known: self.index_names() })
    }

    fn index_names(&self) -> Vec<String> {
        self.indexes.iter().map(|index| index.function().name().to_owned()).collect()
    }
}

impl<T> fmt::Debug for ThreadSafeStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadSafeStore")
            .field("objects", &self.len())
            .field("indexes", &self.index_names())
            .finish()
    }
}

#[cfg(test)]
#[path = "thread_safe_store_tests.rs"]
mod tests;
