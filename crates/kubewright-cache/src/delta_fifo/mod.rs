//! What happened to each object since a consumer last looked, in order.
//!
//! A [`DeltaFifo`] stands between a [`Reflector`](super::Reflector), which knows what the server said, and a
//! consumer, which keeps a store and tells handlers. It never forgets a deletion: one that the watch missed is
//! found when the next list lacks an object that the store still has, and comes as a tombstone.
//!
//! Use it when you want every change of an object; use [`Fifo`](super::Fifo) when the latest state will do.

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

/// A queue of [`Deltas`], one entry per object.
///
/// All handles share one queue.
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
    /// Objects with a consumer that has not finished with them: neither queued nor sure to be known.
    in_flight: Vec<InFlight<T>>,
    /// How many batches there have been.
    batches: u64,
    /// Objects of the first list that a consumer has not finished with.
    initial: usize,
    populated: bool,
    closed: bool,
    observed: Observed,
    /// How many there have been.
    deltas: u64,
}

struct Item<T> {
    deltas: FewDeltas<T>,
    initial: bool,
}

/// Nearly always there is one, and then it takes no allocation.
type FewDeltas<T> = SmallVec<[Delta<T>; 1]>;

struct InFlight<T> {
    key: ObjectKey,
    object: T,
    batch: u64,
}

/// How far the reflector has come, for whoever wants to know when the consumer has come as far.
#[derive(Default)]
struct Observed {
    resource_version: Option<Arc<str>>,
    told: bool,
}

impl<T: Clone> DeltaFifo<T> {
    /// A queue of objects that this function finds the key of.
    ///
    /// Without a store to compare with, deletions that a list reveals are found only for objects still queued.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self {
        Self::build(Arc::new(key), None)
    }

    /// A queue whose consumer keeps this store up to date.
    ///
    /// client-go calls the store `KnownObjects`: what a new list lacks and this store has was deleted.
    pub fn of(known: &Store<T>) -> Self
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
            observed: Observed::default(),
            deltas: 0,
        };
        Self { inner: Arc::new(Inner { key, known, state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// An object appeared.
    pub fn add(&self, object: T) -> Result<(), StoreError> {
        self.upsert(object, Delta::Added)
    }

    /// An object changed.
    pub fn update(&self, object: T) -> Result<(), StoreError> {
        self.upsert(object, Delta::Updated)
    }

    /// An object is gone. One that nobody knows of is not worth a delta.
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

    /// A list in one piece: what it has is replaced, what it lacks is gone.
    pub fn replace(&self, objects: Vec<T>) -> Result<(), StoreError>
    where
        T: Send + Sync + 'static,
    {
        let mut replacement = self.replacing();
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

    /// Whether the first list has gone through the queue and its consumer; an empty one has at once.
    pub fn has_synced(&self) -> bool {
        self.inner.state.lock().has_synced()
    }

    /// The latest object of every queued entry, oldest entry first.
    pub fn list(&self) -> Vec<T> {
        let state = self.inner.state.lock();
        let newest = |key| state.items.get(key)?.deltas.last().map(|delta| delta.object().clone());
        state.queue.iter().filter_map(newest).collect()
    }

    /// How many objects have deltas queued.
    pub fn len(&self) -> usize {
        self.inner.state.lock().queue.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: consumers get what is left and then nothing.
    pub fn close(&self) {
        self.inner.state.lock().closed = true;
        self.inner.changed.notify_waiters();
    }

    /// Waits for the next object and has its deltas processed. None when the queue is closed and empty.
    ///
    /// The object counts as done when `process` returns or panics. Dropping the future loses nothing.
    pub async fn pop<R>(&self, process: impl FnOnce(Deltas<T>) -> R) -> Option<R> {
        loop {
            let mut batch = self.next_batch(1).await?;
            if let Some(deltas) = batch.items.pop() {
                return Some(process(deltas.into()));
            }
        }
    }

    /// Waits for up to `limit` objects, or for news of how far the reflector has come.
    pub(super) async fn next_batch(&self, limit: usize) -> Option<Batch<T>> {
        loop {
            let changed = self.inner.changed.notified();
            {
                let mut state = self.inner.state.lock();
                if !state.queue.is_empty() || state.observed.is_news() {
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
        let up_to = if state.queue.is_empty() { state.observed.tell() } else { None };
        if !state.queue.is_empty() {
            // A permit covers one change; with more left, another consumer may go on.
            self.inner.changed.notify_one();
        }
        let claim = Claim { fifo: self.clone(), batch, objects: items.len(), initial };
        Batch { items, up_to, claim }
    }
}

/// All deltas of one object, oldest first.
pub(super) struct Queued<T> {
    key: ObjectKey,
    pub(super) deltas: FewDeltas<T>,
    /// Whether the object was part of the first list.
    pub(super) initial: bool,
}

impl<T> From<Queued<T>> for Deltas<T> {
    fn from(queued: Queued<T>) -> Self {
        Self { key: queued.key, deltas: queued.deltas.into_vec(), is_in_initial_list: queued.initial }
    }
}

/// Objects on their way through a consumer; dropping it says that they have arrived.
pub(super) struct Batch<T: Clone> {
    pub(super) items: Vec<Queued<T>>,
    /// With this batch, the consumer has seen everything up to this version.
    pub(super) up_to: Option<Arc<str>>,
    pub(super) claim: Claim<T>,
}

/// Holds the objects of a batch as in flight.
pub(super) struct Claim<T: Clone> {
    fifo: DeltaFifo<T>,
    batch: u64,
    objects: usize,
    initial: usize,
}

impl<T: Clone> Drop for Claim<T> {
    fn drop(&mut self) {
        if self.objects == 0 {
            return;
        }
        let mut state = self.fifo.inner.state.lock();
        state.initial -= self.initial;
        if state.in_flight.len() == self.objects {
            // One consumer, the usual case: everything in flight was its own.
            state.in_flight.clear();
        } else {
            state.in_flight.retain(|held| held.batch != self.batch);
        }
    }
}

impl Observed {
    fn is_news(&self) -> bool {
        self.resource_version.is_some() && !self.told
    }

    fn tell(&mut self) -> Option<Arc<str>> {
        let news = self.is_news();
        self.told = true;
        self.resource_version.clone().filter(|_| news)
    }
}

impl<T> State<T> {
    fn push(&mut self, key: ObjectKey, delta: Delta<T>) -> &mut Item<T> {
        self.deltas += 1;
        let queue = &mut self.queue;
        let item = self.items.entry(key).or_insert_with_key(|key| {
            queue.push_back(key.clone());
            Item { deltas: FewDeltas::new(), initial: false }
        });
        item.push(delta);
        item
    }

    fn has_synced(&self) -> bool {
        self.populated && self.initial == 0
    }
}

impl<T> Item<T> {
    /// Two deletions in a row are one: the one that saw the final state.
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
