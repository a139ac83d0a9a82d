//! Queue of the deltas of objects.
//!
//! A [`DeltaFifo`] connects a [`Reflector`](super::Reflector), which produces changes, and a consumer, which
//! keeps a store and notifies handlers. No deletion is lost: one that the watch missed is detected when the
//! next list lacks an object that the store still has, and is queued as a tombstone.
//!
//! Use it when you need every change of an object; use [`Fifo`](super::Fifo) when the latest state is enough.

mod delta;
mod replacing;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;

pub use self::delta::{Delta, Deltas};
use super::{
    reflector_store::ReflectorStore,
    store::{KeyFn, Store},
    thread_safe_store::StoreError,
};
use kubewright_core::{KeyError, ObjectKey};

/// A queue of [`Deltas`], one entry per object. Cheap to clone.
///
/// ```
/// use kubewright::{ObjectKey, cache::DeltaFifo};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fifo = DeltaFifo::new(|name: &&str| Ok(ObjectKey::cluster(name)));
/// fifo.add("pod1")?;
/// fifo.update("pod1")?;
/// fifo.delete("pod1")?;
/// let names = fifo.pop(|popped| popped.deltas.iter().map(|delta| delta.name()).collect::<Vec<_>>()).await;
/// assert_eq!(names.unwrap(), ["Added", "Updated", "Deleted"]);
/// # Ok(()) }
/// ```
pub struct DeltaFifo<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    key: KeyFn<T>,
    known: Option<Store<T>>,
    state: Mutex<State<T>>,
    changed: Notify,
}

struct State<T> {
    items: HashMap<ObjectKey, Item<T>, FixedState>,
    queue: VecDeque<ObjectKey>,
    /// Popped objects that the consumer has not finished: neither queued nor surely in the store.
    in_flight: Vec<InFlight<T>>,
    /// Number of batches so far.
    batches: u64,
    /// Number of objects of the first list that the consumer has not finished.
    initial: usize,
    populated: bool,
    closed: bool,
    progress: ReflectorProgress,
    /// Number of deltas so far.
    deltas: u64,
}

struct Item<T> {
    deltas: DeltaVec<T>,
    initial: bool,
}

/// Usually one delta, which needs no allocation.
type DeltaVec<T> = SmallVec<[Delta<T>; 1]>;

struct InFlight<T> {
    key: ObjectKey,
    object: T,
    batch: u64,
}

/// The progress of the reflector, passed on to the consumer.
#[derive(Default)]
struct ReflectorProgress {
    resource_version: Option<Arc<str>>,
    reported: bool,
}

impl<T: Clone> DeltaFifo<T> {
    /// Creates a queue with a key function.
    ///
    /// Without a store to compare with, deletions are detected from a list only for objects that are still
    /// queued.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self {
        Self::build(Arc::new(key), None)
    }

    /// Creates a queue whose consumer keeps this store up to date.
    ///
    /// The store is client-go's `KnownObjects`: an object of the store that a new list lacks was deleted.
    pub fn with_known_objects(known: &Store<T>) -> Self
    where
        T: Send + Sync + 'static,
    {
        let keys = known.clone();
        Self::build(Arc::new(move |object| keys.key_of(object)), Some(known.clone()))
    }

    fn build(key: KeyFn<T>, known: Option<Store<T>>) -> Self {
        let state = State {
            items: HashMap::default(),
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            batches: 0,
            initial: 0,
            populated: false,
            closed: false,
            progress: ReflectorProgress::default(),
            deltas: 0,
        };
        Self { inner: Arc::new(Inner { key, known, state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Queues an addition.
    pub fn add(&self, object: T) -> Result<(), StoreError> {
        self.upsert(object, Delta::Added)
    }

    /// Queues an update.
    pub fn update(&self, object: T) -> Result<(), StoreError> {
        self.upsert(object, Delta::Updated)
    }

    /// Queues a deletion, unless the object is unknown.
    pub fn delete(&self, object: T) -> Result<(), StoreError> {
        let key = (self.inner.key)(&object)?;
        let mut state = self.inner.state.lock();
        state.populated = true;
        let known = state.items.contains_key(&key)
            || state.in_flight.iter().any(|held| held.key == key)
            || self.inner.known.as_ref().is_some_and(|known| known.get_by_key(&key).is_some());
        if known {
            state.push(key, Delta::Deleted { object, final_state_unknown: false });
            drop(state);
            self.inner.changed.notify_one();
        }
        Ok(())
    }

    fn upsert(&self, object: T, delta: impl FnOnce(T) -> Delta<T>) -> Result<(), StoreError> {
        let key = (self.inner.key)(&object)?;
        let mut state = self.inner.state.lock();
        state.populated = true;
        state.push(key, delta(object));
        drop(state);
        self.inner.changed.notify_one();
        Ok(())
    }

    /// Queues a complete list: its objects are replaced, all others are deleted.
    pub fn replace(&self, objects: Vec<T>) -> Result<(), StoreError>
    where
        T: Send + Sync + 'static,
    {
        let mut replacement = self.begin_replace();
        replacement.page(objects)?;
        replacement.commit()
    }

    /// Queues a [`Delta::Sync`] for every object of the store that has nothing queued.
    pub fn resync(&self) {
        let Some(known) = &self.inner.known else { return };
        let objects = known.list();
        let mut state = self.inner.state.lock();
        for object in objects {
            if let Ok(key) = (self.inner.key)(&object)
                && !state.items.contains_key(&key)
            {
                state.push(key, Delta::Sync(object));
            }
        }
        drop(state);
        self.inner.changed.notify_one();
    }

    /// Returns whether the consumer has finished the first list; an empty one is finished at once.
    pub fn has_synced(&self) -> bool {
        self.inner.state.lock().has_synced()
    }

    /// Returns the latest object of every queued entry, oldest entry first.
    pub fn list(&self) -> Vec<T> {
        let state = self.inner.state.lock();
        let newest = |key| state.items.get(key)?.deltas.last().map(|delta| delta.object().clone());
        state.queue.iter().filter_map(newest).collect()
    }

    /// Returns the number of objects with queued deltas.
    pub fn len(&self) -> usize {
        self.inner.state.lock().queue.len()
    }

    /// Returns whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue: consumers get the remaining deltas and then `None`.
    pub fn close(&self) {
        self.inner.state.lock().closed = true;
        self.inner.changed.notify_waiters();
    }

    /// Waits for the next object and processes its deltas. `None` when the queue is closed and empty.
    ///
    /// The object counts as finished when `process` returns or panics. Cancel safe.
    pub async fn pop<R>(&self, process: impl FnOnce(Deltas<T>) -> R) -> Option<R> {
        loop {
            let mut batch = self.next_batch(1).await?;
            if let Some(deltas) = batch.items.pop() {
                return Some(process(deltas.into()));
            }
        }
    }

    /// Waits for up to `limit` objects, or for progress of the reflector.
    pub(super) async fn next_batch(&self, limit: usize) -> Option<Batch<T>> {
        loop {
            let changed = self.inner.changed.notified();
            {
                let mut state = self.inner.state.lock();
                if !state.queue.is_empty() || state.progress.is_unreported() {
                    return Some(self.take(&mut state, limit));
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    fn take(&self, state: &mut State<T>, limit: usize) -> Batch<T> {
        let count = limit.min(state.queue.len());
        let mut items = Vec::with_capacity(count);
        let mut initial = 0;
        state.batches += 1;
        let batch = state.batches;
        while items.len() < count
            && let Some(key) = state.queue.pop_front()
        {
            let Some((held, item)) = state.items.remove_entry(&key) else { continue };
            initial += usize::from(item.initial);
            if let Some(newest) = item.deltas.last() {
                state.in_flight.push(InFlight { key: held, object: newest.object().clone(), batch });
            }
            items.push(Queued { key, deltas: item.deltas, initial: item.initial });
        }
        let up_to = if state.queue.is_empty() { state.progress.take() } else { None };
        if !state.queue.is_empty() {
            // A permit covers one change; with more left, another consumer may continue.
            self.inner.changed.notify_one();
        }
        let guard = InFlightGuard { fifo: self.clone(), batch, objects: items.len(), initial };
        Batch { items, up_to, guard }
    }
}

/// All deltas of one object, oldest first.
pub(super) struct Queued<T> {
    key: ObjectKey,
    pub(super) deltas: DeltaVec<T>,
    /// Whether the object was part of the first list.
    pub(super) initial: bool,
}

impl<T> From<Queued<T>> for Deltas<T> {
    fn from(queued: Queued<T>) -> Self {
        Self { key: queued.key, deltas: queued.deltas.into_vec(), is_in_initial_list: queued.initial }
    }
}

/// Popped objects; they are in flight until the guard is dropped.
pub(super) struct Batch<T: Clone> {
    pub(super) items: Vec<Queued<T>>,
    /// The resource version that the consumer reaches with this batch.
    pub(super) up_to: Option<Arc<str>>,
    pub(super) guard: InFlightGuard<T>,
}

/// Keeps the objects of a batch in flight.
pub(super) struct InFlightGuard<T: Clone> {
    fifo: DeltaFifo<T>,
    batch: u64,
    objects: usize,
    initial: usize,
}

impl<T: Clone> Drop for InFlightGuard<T> {
    fn drop(&mut self) {
        if self.objects == 0 {
            return;
        }
        let mut state = self.fifo.inner.state.lock();
        state.initial -= self.initial;
        if state.in_flight.len() == self.objects {
            // One consumer, the usual case: everything in flight belongs to this batch.
            state.in_flight.clear();
        } else {
            state.in_flight.retain(|held| held.batch != self.batch);
        }
    }
}

impl ReflectorProgress {
    fn is_unreported(&self) -> bool {
        self.resource_version.is_some() && !self.reported
    }

    fn take(&mut self) -> Option<Arc<str>> {
        let unreported = self.is_unreported();
        self.reported = true;
        self.resource_version.clone().filter(|_| unreported)
    }
}

impl<T> State<T> {
    fn push(&mut self, key: ObjectKey, delta: Delta<T>) -> &mut Item<T> {
        self.deltas += 1;
        let queue = &mut self.queue;
        let item = self.items.entry(key).or_insert_with_key(|key| {
            queue.push_back(key.clone());
            Item { deltas: DeltaVec::new(), initial: false }
        });
        item.push(delta);
        item
    }

    /// Queues a delta of a list; those of the first list count for [`has_synced`](Self::has_synced).
    fn push_listed(&mut self, key: ObjectKey, delta: Delta<T>) {
        let first = !self.populated;
        let item = self.push(key, delta);
        if first && !item.initial {
            item.initial = true;
            self.initial += 1;
        }
    }

    fn has_synced(&self) -> bool {
        self.populated && self.initial == 0
    }
}

impl<T> Item<T> {
    /// Adds a delta. Two deletions in a row become one: the one with the final state.
    fn push(&mut self, delta: Delta<T>) {
        if let Some(last) = self.deltas.last_mut()
            && last.is_deleted()
            && delta.is_deleted()
        {
            if !matches!(delta, Delta::Deleted { final_state_unknown: true, .. }) {
                *last = delta;
            }
            return;
        }
        self.deltas.push(delta);
    }
}

impl<T> Clone for DeltaFifo<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo").field("queued", &self.inner.state.lock().queue.len()).finish()
    }
}
