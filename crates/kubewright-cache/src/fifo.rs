//! Queue of objects in their latest state; client-go's `FIFO`.
//!
//! [`Fifo`] is for a consumer that processes every object once, in its current state, and ignores deleted
//! objects: an object that changes while queued is replaced in place, and one that is deleted leaves the
//! queue. A consumer that needs deletions, or every intermediate state, uses a `DeltaFifo`; one that works on
//! keys and may fail uses a work queue.
//!
//! Stricter than client-go's: objects are popped in insertion order, after [`Fifo::replace`] too; an object
//! that is deleted and added again goes to the end; and a deletion counts towards [`Fifo::has_synced`] at
//! once instead of with the next pop.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// A queue in which every object is queued once, in its latest state. Cheap to clone.
///
/// ```
/// use kubewright::{ObjectKey, cache::Fifo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::KeyError> {
/// let fifo = Fifo::new(|line: &(&str, u32)| line.0.parse::<ObjectKey>());
/// fifo.add(("default/a", 1))?;
/// fifo.add(("default/b", 1))?;
/// fifo.add(("default/a", 2))?;               // replaces the first one in place
/// fifo.delete(&("default/b", 0))?;           // b is never popped
///
/// assert_eq!(fifo.pop().await, Some(("default/a", 2)));
/// fifo.close();
/// assert_eq!(fifo.pop().await, None);
/// # Ok(())
/// # }
/// ```
pub struct Fifo<T> {
    shared: Arc<Shared<T>>,
}

/// Result of the function of [`Fifo::pop_process`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popped<R> {
    /// The object is finished.
    Done(R),
    /// The object is queued again at the end, unless a newer state was queued meanwhile.
    Requeue(R),
}

struct Shared<T> {
    key: KeyFn<T>,
    state: Mutex<State<T>>,
    arrivals: Notify,
}

struct State<T> {
    /// The objects in the order of the queue.
    queue: BTreeMap<u64, Waiting<T>>,
    places: HashMap<ObjectKey, u64>,
    next_place: u64,
    /// Whether anything was ever queued; the first `replace` is the initial list only before that.
    populated: bool,
    /// Number of objects of the initial list that are queued or being processed.
    initial_left: usize,
    closed: bool,
}

struct Waiting<T> {
    key: ObjectKey,
    object: T,
    initial: bool,
}

impl<T: Clone> Fifo<T> {
    /// Creates an empty queue with a key function; for a `Fifo<Arc<Pod>>` that is `|pod|
    /// ObjectKey::of(&**pod, &())`.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self {
        let state = State {
            queue: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
            populated: false,
            initial_left: 0,
            closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                key: Arc::new(key),
                state: Mutex::new(state),
                arrivals: Notify::new(),
            }),
        }
    }

    /// Queues an object, or replaces the queued one with the same key.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        self.put(object, true)
    }

    /// Queues an object unless one with its key is queued: for objects that could not be processed, without
    /// overwriting a newer state.
    pub fn add_if_not_present(&self, object: T) -> Result<(), KeyError> {
        self.put(object, false)
    }

    fn put(&self, object: T, overwrite: bool) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        state.put(key, object, overwrite);
        drop(state);
        self.shared.arrivals.notify_one();
        Ok(())
    }

    /// The same as [`Fifo::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Removes an object from the queue and returns it.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        Ok(state.remove(&key))
    }

    /// Replaces all queued objects, in the given order; of several with one key the last one counts. Nothing
    /// changes if one of them has no key.
    ///
    /// The first `replace` of an unused queue is its initial list; see [`Fifo::has_synced`].
    pub fn replace(&self, objects: impl IntoIterator<Item = T>) -> Result<(), KeyError> {
        let keyed = objects
            .into_iter()
            .map(|object| (self.shared.key)(&object).map(|key| (key, object)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        let first = !std::mem::replace(&mut state.populated, true);
        let old = std::mem::take(&mut state.queue);
        state.places.clear();
        // An object of the initial list that is in the new list still counts as initial.
        let initial: HashMap<_, _> =
            old.into_values().map(|waiting| (waiting.key, waiting.initial)).collect();
        let waited_for = initial.values().filter(|initial| **initial).count();
        state.initial_left -= waited_for;
        for (key, object) in keyed {
            let initial = first || initial.get(&key).copied().unwrap_or(false);
            if !state.places.contains_key(&key) {
                state.initial_left += usize::from(initial);
            }
            state.put(key.clone(), object, true);
            state.mark_initial(&key, initial);
        }
        self.shared.arrivals.notify_waiters();
        Ok(())
    }

    /// Does nothing: everything in the queue will be popped. Part of client-go's `Queue` interface.
    pub fn resync(&self) {}

    /// Returns whether the initial list is finished: every object of the first [`Fifo::replace`] was
    /// processed or deleted. A queue that starts with anything else than a `replace` has no initial list and
    /// is synced at once.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().has_synced()
    }

    /// Pops the next object, waiting until there is one. `None` once the queue is closed and empty.
    ///
    /// Cancel safe: an object leaves the queue only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        let (waiting, _) = self.next().await?;
        drop(Counted { shared: &self.shared, initial: waiting.initial });
        Some(waiting.object)
    }

    /// Pops the next object and passes it to a function, with whether the initial list is unfinished. The
    /// function decides whether the object is queued again.
    ///
    /// [`Fifo::has_synced`] counts the object only after the function has returned. The queue is not locked
    /// meanwhile: the function may use it.
    ///
    /// ```
    /// # use kubewright::{ObjectKey, cache::{Fifo, Popped}};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kubewright::KeyError> {
    /// let fifo = Fifo::new(|name: &String| name.parse::<ObjectKey>());
    /// fifo.replace(["default/a".to_owned()])?;
    /// let failed = fifo.pop_process(|_, initial| Popped::Requeue(initial)).await;
    /// assert_eq!(failed, Some(true));
    /// assert_eq!(fifo.pop().await.as_deref(), Some("default/a"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pop_process<R>(&self, process: impl FnOnce(&T, bool) -> Popped<R>) -> Option<R> {
        let (waiting, in_initial_list) = self.next().await?;
        // Counts the object even if the function panics.
        let _counted = Counted { shared: &self.shared, initial: waiting.initial };
        match process(&waiting.object, in_initial_list) {
            Popped::Done(result) => Some(result),
            Popped::Requeue(result) => {
                self.shared.state.lock().put(waiting.key, waiting.object, false);
                self.shared.arrivals.notify_one();
                Some(result)
            }
        }
    }

    async fn next(&self) -> Option<(Waiting<T>, bool)> {
        loop {
            // Registered before the queue is checked, so that no notification is missed.
            let mut arrival = std::pin::pin!(self.shared.arrivals.notified());
            arrival.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                let in_initial_list = !state.has_synced();
                if let Some((_, waiting)) = state.queue.pop_first() {
                    state.places.remove(&waiting.key);
                    return Some((waiting, in_initial_list));
                }
                if state.closed {
                    return None;
                }
            }
            arrival.await;
        }
    }

    /// Returns the queued object with a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        let state = self.shared.state.lock();
        state.places.get(key).and_then(|place| state.queue.get(place)).map(|waiting| waiting.object.clone())
    }

    /// Returns all queued objects, the next one first.
    pub fn list(&self) -> Vec<T> {
        self.shared.state.lock().queue.values().map(|waiting| waiting.object.clone()).collect()
    }

    /// Returns the number of queued objects.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue: queued objects can still be popped, then `pop` returns `None`. Objects can still be
    /// added.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Returns whether the queue is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }
}

impl<T> State<T> {
    /// Queues an object. One with the same key keeps its place, and is replaced if `overwrite`.
    fn put(&mut self, key: ObjectKey, object: T, overwrite: bool) {
        if let Some(waiting) = self.places.get(&key).and_then(|place| self.queue.get_mut(place)) {
            if overwrite {
                waiting.object = object;
            }
            return;
        }
        self.places.insert(key.clone(), self.next_place);
        self.queue.insert(self.next_place, Waiting { key, object, initial: false });
        self.next_place += 1;
    }

    fn mark_initial(&mut self, key: &ObjectKey, initial: bool) {
        if let Some(waiting) = self.places.get(key).and_then(|place| self.queue.get_mut(place)) {
            waiting.initial = initial;
        }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        let place = self.places.remove(key)?;
        let waiting = self.queue.remove(&place)?;
        self.initial_left -= usize::from(waiting.initial);
        Some(waiting.object)
    }

    fn has_synced(&self) -> bool {
        self.populated && self.initial_left == 0
    }
}

/// Counts an object of the initial list as processed on drop.
struct Counted<'a, T> {
    shared: &'a Shared<T>,
    initial: bool,
}

impl<T> Drop for Counted<'_, T> {
    fn drop(&mut self) {
        if self.initial {
            self.shared.state.lock().initial_left -= 1;
        }
    }
}

impl<T> Clone for Fifo<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Fifo").field("waiting", &state.queue.len()).field("closed", &state.closed).finish()
    }
}

#[cfg(test)]
#[path = "fifo_tests.rs"]
mod tests;
