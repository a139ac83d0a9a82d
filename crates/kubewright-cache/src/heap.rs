//! A queue of objects that hands out the smallest first.
//!
//! [`Heap`] is what a scheduler needs: objects by priority, found and changed by their key while they wait. Objects
//! of the same rank come out in the order in which they came in.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// Why a heap did not take an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// The heap was closed; nothing can be added any more.
    #[error("the heap is closed; nothing can be added to it")]
    Closed,
    /// The object has no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A priority queue of objects with keys. A clone is a handle to the same heap.
///
/// ```
/// use kubewright::{ObjectKey, cache::Heap};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::cache::HeapError> {
/// type Job = (&'static str, u32);
/// let heap = Heap::new(|job: &Job| job.0.parse::<ObjectKey>(), |one: &Job, other: &Job| one.1 < other.1);
/// heap.bulk_add([("default/slow", 30), ("default/fast", 1), ("default/medium", 5)])?;
/// heap.update(("default/slow", 2))?;          // moves up
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
    /// When the object came, to keep equals in order.
    arrival: u64,
    /// Where `State::order` names this entry.
    position: usize,
}

impl<T: Clone> Heap<T> {
    /// An empty heap. `less` says whether the first object comes out before the second; it must be consistent and
    /// must not use the heap.
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

    /// Adds an object, or replaces the one under its key and moves it to its new place.
    pub fn add(&self, object: T) -> Result<(), HeapError> {
        self.put([object], true)
    }

    /// Adds objects all at once: nobody who waits sees the first of them before the last is in. Nothing changes if
    /// one of them has no key.
    pub fn bulk_add(&self, objects: impl IntoIterator<Item = T>) -> Result<(), HeapError> {
        self.put(objects, true)
    }

    /// Adds an object unless there is one under its key: for putting back what could not be processed, without
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

    /// Takes out the object under the key of this one and returns it; `None` if there is none.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        let Some(entry) = state.entries.get(&key) else { return Ok(None) };
        let position = entry.position;
        Ok(state.take(position, &*self.shared.less))
    }

    /// Takes the smallest object out, waiting until there is one. `None` once the heap is closed and empty.
    ///
    /// A caller that stops waiting loses nothing: an object leaves the heap only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        loop {
            // Registered before the look at the heap, so that an arrival in between is not missed.
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

    /// The object with the same key as this one.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// The object under a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.shared.state.lock().entries.get(key).map(|entry| entry.object.clone())
    }

    /// All objects in the order in which they came in, which is not the order in which they will come out.
    pub fn list(&self) -> Vec<T> {
        self.collect(|_, entry| entry.object.clone())
    }

    /// The keys of all objects in the order in which they came in.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.collect(|key, _| key.clone())
    }

    fn collect<R>(&self, show: impl Fn(&ObjectKey, &Entry<T>) -> R) -> Vec<R> {
        let state = self.shared.state.lock();
        let mut entries: Vec<_> = state.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.arrival);
        entries.into_iter().map(|(key, entry)| show(key, entry)).collect()
    }

    /// How many objects are in the heap.
    pub fn len(&self) -> usize {
        self.shared.state.lock().order.len()
    }

    /// Whether the heap is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the heap: nothing can be added, what is in it can still be popped, then `pop` returns `None`.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Whether the heap was closed.
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

    /// Takes out the entry at a position; `None` if there is no such position.
    fn take(&mut self, position: usize, less: &LessFn<T>) -> Option<T> {
        if position >= self.order.len() {
            return None;
        }
        let last = self.order.len() - 1;
        self.swap(position, last);
        let index = self.order.pop()?;
        let (_, entry) = self.entries.swap_remove_index(index)?;
        // The last entry has moved to the free index; its position must name it there.
        if let Some((_, moved)) = self.entries.get_index(index) {
            self.order[moved.position] = index;
        }
        if position < self.order.len() {
            self.restore(position, less);
        }
        Some(entry.object)
    }

    /// Moves the entry at a position to where it belongs, when all others are in order.
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

    /// Whether the entry at one position comes out before the one at another.
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
