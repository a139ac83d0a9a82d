//! Priority queue with keys; client-go's `Heap`.
//!
//! [`Heap`] is what a scheduler needs: objects by priority, found and changed by key while queued. Objects of
//! equal priority are popped in insertion order.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// Error from adding an object to a heap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeapError {
    /// The heap is closed.
    #[error("the heap is closed; nothing can be added to it")]
    Closed,
    /// The object has no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A priority queue of objects with keys. Cheap to clone.
///
/// ```
/// use kubewright::{ObjectKey, cache::Heap};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::cache::HeapError> {
/// type Job = (&'static str, u32);
/// let heap = Heap::new(|job: &Job| job.0.parse::<ObjectKey>(), |one: &Job, other: &Job| one.1 < other.1);
/// heap.bulk_add([("default/slow", 30), ("default/fast", 1), ("default/medium", 5)])?;
/// heap.update(("default/slow", 2))?;          // moves forward
///
/// assert_eq!(heap.pop().await, Some(("default/fast", 1)));
/// assert_eq!(heap.pop().await, Some(("default/slow", 2)));
/// # Ok(())
/// # }
/// ```
pub struct Heap<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    key: KeyFn<T>,
    less: Box<LessFn<T>>,
    state: Mutex<State<T>>,
    arrivals: Notify,
}

type LessFn<T> = dyn Fn(&T, &T) -> bool + Send + Sync;

struct State<T> {
    entries: IndexMap<ObjectKey, Entry<T>>,
    /// Indexes into `entries`, each parent before its children.
    order: Vec<usize>,
    next_arrival: u64,
    closed: bool,
}

struct Entry<T> {
    object: T,
    /// The insertion number, to keep equal objects in order.
    arrival: u64,
    /// The position in `State::order`.
    position: usize,
}

impl<T: Clone> Heap<T> {
    /// Creates an empty heap. `less` returns whether the first object is popped before the second; it must be
    /// a strict weak order and must not use the heap.
    pub fn new(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        less: impl Fn(&T, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let state = State { entries: IndexMap::new(), order: Vec::new(), next_arrival: 0, closed: false };
        Self {
            shared: Arc::new(Shared {
                key: Arc::new(key),
                less: Box::new(less),
                state: Mutex::new(state),
                arrivals: Notify::new(),
            }),
        }
    }

    /// Adds an object, or replaces the one with its key and moves it to its new place.
    pub fn add(&self, object: T) -> Result<(), HeapError> {
        self.put([object], true)
    }

    /// Adds objects at once: waiters do not see the first of them before the last is added. Nothing changes
    /// if one of them has no key.
    pub fn bulk_add(&self, objects: impl IntoIterator<Item = T>) -> Result<(), HeapError> {
        self.put(objects, true)
    }

    /// Adds an object unless there is one with its key: for objects that could not be processed, without
    /// overwriting a newer state. This is client-go's `AddIfNotPresent`.
    pub fn add_if_absent(&self, object: T) -> Result<(), HeapError> {
        self.put([object], false)
    }

    /// The same as [`Heap::add`].
    pub fn update(&self, object: T) -> Result<(), HeapError> {
        self.add(object)
    }

    fn put(&self, objects: impl IntoIterator<Item = T>, overwrite: bool) -> Result<(), HeapError> {
        let keyed = objects
            .into_iter()
            .map(|object| (self.shared.key)(&object).map(|key| (key, object)))
            .collect::<Result<Vec<_>, _>>()?;
        let several = keyed.len() > 1;
        let mut state = self.shared.state.lock();
        if state.closed {
            return Err(HeapError::Closed);
        }
        for (key, object) in keyed {
            state.put(key, object, overwrite, &*self.shared.less);
        }
        drop(state);
        if several {
            self.shared.arrivals.notify_waiters();
        } else {
            self.shared.arrivals.notify_one();
        }
        Ok(())
    }

    /// Removes the object with the same key and returns it; `None` if there is none.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        let Some(entry) = state.entries.get(&key) else { return Ok(None) };
        let position = entry.position;
        Ok(state.take(position, &*self.shared.less))
    }

    /// Pops the smallest object, waiting until there is one. `None` once the heap is closed and empty.
    ///
    /// Cancel safe: an object leaves the heap only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        loop {
            // Registered before the heap is checked, so that no notification is missed.
            let mut arrival = std::pin::pin!(self.shared.arrivals.notified());
            arrival.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                if let Some(object) = state.take(0, &*self.shared.less) {
                    return Some(object);
                }
                if state.closed {
                    return None;
                }
            }
            arrival.await;
        }
    }

    /// Returns the object with the same key.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// Returns the object with a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.shared.state.lock().entries.get(key).map(|entry| entry.object.clone())
    }

    /// Returns all objects in insertion order, not in the order of priority.
    pub fn list(&self) -> Vec<T> {
        self.collect(|_, entry| entry.object.clone())
    }

    /// Returns the keys of all objects in insertion order.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.collect(|key, _| key.clone())
    }

    fn collect<R>(&self, show: impl Fn(&ObjectKey, &Entry<T>) -> R) -> Vec<R> {
        let state = self.shared.state.lock();
        let mut entries: Vec<_> = state.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.arrival);
        entries.into_iter().map(|(key, entry)| show(key, entry)).collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.lock().order.len()
    }

    /// Returns whether the heap is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the heap: nothing can be added, the remaining objects can still be popped, then `pop` returns
    /// `None`.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Returns whether the heap is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }
}

impl<T> State<T> {
    fn put(&mut self, key: ObjectKey, object: T, overwrite: bool, less: &LessFn<T>) {
        if let Some(entry) = self.entries.get_mut(&key) {
            if overwrite {
                entry.object = object;
                let position = entry.position;
                self.restore(position, less);
            }
            return;
        }
        let position = self.order.len();
        let (index, _) =
            self.entries.insert_full(key, Entry { object, arrival: self.next_arrival, position });
        self.next_arrival += 1;
        self.order.push(index);
        self.up(position, less);
    }

    /// Removes the entry at a position; `None` if there is no such position.
    fn take(&mut self, position: usize, less: &LessFn<T>) -> Option<T> {
        if position >= self.order.len() {
            return None;
        }
        let last = self.order.len() - 1;
        self.swap(position, last);
        let index = self.order.pop()?;
        let (_, entry) = self.entries.swap_remove_index(index)?;
        // `swap_remove_index` has moved the last entry to this index: correct its position.
        if let Some((_, moved)) = self.entries.get_index(index) {
            self.order[moved.position] = index;
        }
        if position < self.order.len() {
            self.restore(position, less);
        }
        Some(entry.object)
    }

    /// Restores the heap order after the entry at a position has changed.
    fn restore(&mut self, position: usize, less: &LessFn<T>) {
        if self.up(position, less) == position {
            self.down(position, less);
        }
    }

    fn up(&mut self, mut position: usize, less: &LessFn<T>) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if !self.before(position, parent, less) {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
        position
    }

    fn down(&mut self, mut position: usize, less: &LessFn<T>) {
        loop {
            let children = [2 * position + 1, 2 * position + 2];
            let mut smallest = position;
            for child in children {
                if child < self.order.len() && self.before(child, smallest, less) {
                    smallest = child;
                }
            }
            if smallest == position {
                return;
            }
            self.swap(position, smallest);
            position = smallest;
        }
    }

    /// Returns whether the entry at one position is popped before the one at another.
    fn before(&self, one: usize, other: usize, less: &LessFn<T>) -> bool {
        let (one, other) = (&self.entries[self.order[one]], &self.entries[self.order[other]]);
        less(&one.object, &other.object) || (one.arrival < other.arrival && !less(&other.object, &one.object))
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.order.swap(one, other);
        for position in [one, other] {
            self.entries[self.order[position]].position = position;
        }
    }
}

impl<T> Clone for Heap<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Heap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Heap").field("objects", &state.order.len()).field("closed", &state.closed).finish()
    }
}

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
