//! A queue of objects that holds each object once, in its latest state.
//!
//! [`Fifo`] is for a consumer that wants to see every object once, as it is now, and does not care about objects
//! that are gone: an object that changes while it waits is replaced in its place, and one that is deleted leaves the
//! queue. A consumer that must hear of deletions, or of every step in between, wants a `DeltaFifo`; one that works on
//! keys and may fail wants a work queue.
//!
//! Where this queue is stricter than client-go's: objects come out in the order in which they came in, after
//! [`Fifo::replace`] too; an object that is deleted and added again goes to the end; and a deletion counts towards
//! [`Fifo::has_synced`] at once instead of with the next pop.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// A queue in which every object waits once, in its latest state. A clone is a handle to the same queue.
///
/// ```
/// use kubewright::{ObjectKey, cache::Fifo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::KeyError> {
/// let fifo = Fifo::new(|line: &(&str, u32)| line.0.parse::<ObjectKey>());
/// fifo.add(("default/a", 1))?;
/// fifo.add(("default/b", 1))?;
/// fifo.add(("default/a", 2))?;               // replaces the first one, which keeps its place
/// fifo.delete(&("default/b", 0))?;           // b will never be seen
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

/// What [`Fifo::pop_process`] does with the object after the function has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popped<R> {
    /// The object is done with.
    Done(R),
    /// The object goes back to the end of the queue, unless a newer state of it has come in the meantime.
    Requeue(R),
}

struct Shared<T> {
    key: KeyFn<T>,
    state: Mutex<State<T>>,
    arrivals: Notify,
}

struct State<T> {
    /// The objects by the order in which they wait.
    queue: BTreeMap<u64, Waiting<T>>,
    places: HashMap<ObjectKey, u64>,
    next_place: u64,
    /// Whether anything was ever put in; the first `replace` counts as the initial list only before that.
    populated: bool,
    /// Objects of the initial list that still wait or are being processed.
    initial_left: usize,
    closed: bool,
}

struct Waiting<T> {
    key: ObjectKey,
    object: T,
    initial: bool,
}

impl<T: Clone> Fifo<T> {
    /// An empty queue of objects whose key the function tells; for a `Fifo<Arc<Pod>>` that is
    /// `|pod| ObjectKey::of(&**pod, &())`.
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

    /// Queues an object, or replaces the state of the one that waits under the same key.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        state.put(key, object, true);
        drop(state);
        self.shared.arrivals.notify_one();
        Ok(())
    }

    /// Queues an object unless one waits under its key: for putting back what could not be processed, without
    /// overwriting a newer state.
    pub fn add_if_not_present(&self, object: T) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        state.put(key, object, false);
        drop(state);
        self.shared.arrivals.notify_one();
        Ok(())
    }

    /// The same as [`Fifo::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Takes an object out of the queue; nobody will see it. Returns what waited under its key.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        Ok(state.remove(&key))
    }

    /// Puts these objects in the place of all that wait, in the given order; the last of several under one key
    /// counts. Nothing changes if one of them has no key.
    ///
    /// The first `replace` of a queue that was never touched is its initial list; see [`Fifo::has_synced`].
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
        // An object of the initial list that is still in the new list is still to be waited for.
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

    /// Does nothing: whatever is in the queue waits to be popped. It is here because every queue of a reflector has
    /// it.
    pub fn resync(&self) {}

    /// Whether the initial list has been worked off: every object of the first [`Fifo::replace`] was popped and
    /// processed, or is gone. A queue that begins with anything else than a `replace` has no initial list and is in
    /// sync at once.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().has_synced()
    }

    /// Takes the next object out, waiting until there is one. `None` once the queue is closed and empty.
    ///
    /// A caller that stops waiting loses nothing: an object leaves the queue only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        let (waiting, _) = self.next().await?;
        drop(Counted { shared: &self.shared, initial: waiting.initial });
        Some(waiting.object)
    }

    /// Takes the next object out and hands it to a function, together with whether it is part of the initial list
    /// that is not worked off yet. The function says whether the object goes back.
    ///
    /// [`Fifo::has_synced`] counts the object only after the function has returned. The queue is not locked in the
    /// meantime: the function may use it.
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
            // Registered before the look at the queue, so that an arrival in between is not missed.
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

    /// The object that waits under a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        let state = self.shared.state.lock();
        state.places.get(key).and_then(|place| state.queue.get(place)).map(|waiting| waiting.object.clone())
    }

    /// All objects that wait, the next one first.
    pub fn list(&self) -> Vec<T> {
        self.shared.state.lock().queue.values().map(|waiting| waiting.object.clone()).collect()
    }

    /// How many objects wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: what waits can still be popped, then `pop` returns `None`. Objects can still be added.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }
}

impl<T> State<T> {
    /// Queues an object. If one waits under the key it keeps its place, and its state is replaced if `overwrite`.
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

/// An object of the initial list on its way through a process function.
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
