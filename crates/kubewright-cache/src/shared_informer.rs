//! Shared informer: one watch, one cache, any number of handlers.
//!
//! A [`SharedInformer`] is what most programs need: it reflects a kind into an indexed cache, and dispatches
//! events to its handlers. It is client-go's `SharedIndexInformer`; there is no variant without indexes,
//! since unused indexes cost nothing.
//!
//! - Handlers can be added and removed while it runs. A new one first gets all cached objects.
//! - Each handler runs on a task of its own, one event at a time, and never blocks the cache or another
//!   handler. Its pending events are coalesced by object, so a slow handler costs at most one entry per
//!   object.
//! - An object that was deleted and recreated under the same name between two events is reported as a
//!   deletion and an addition; client-go reports an update, and every handler has to compare uids.
//!
//! Pitfall: the cache is behind the server by the latency of events. To read its own write, a worker uses
//! [`get_at_least`](SharedInformer::get_at_least).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::{
    delta_fifo::{Delta, DeltaFifo, Queued},
    event::Event,
    fault::{Fault, Faults},
    index::IndexFn,
    list_watch::ListWatch,
    lister::Lister,
    object::Lazy,
    processor::{Processor, Registration, Subscription},
    reflector::{Position, Reflector},
    running::Running,
    store::Indexer,
    thread_safe_store::{StoreError, Transaction},
    together::together,
    turns::Budget,
};
use kubewright_core::{Backoff, ObjectKey, Random};

/// Maximum number of objects that are applied to the cache under one lock, as in client-go.
const MAX_BATCH: usize = 1000;

/// A cache of one kind with handlers. Cheap to clone.
///
/// ```no_run
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::cache::{IndexFn, ListWatch, SharedInformer};
/// use kubewright::k8s_openapi::api::core::v1::Service;
///
/// let services = SharedInformer::new(ListWatch::<Service>::new(client));
/// services.add_index(IndexFn::label("by-app", "app"))?;
/// let _handler = services.on_event(|event| println!("{:?}", event.object()));
/// let _running = services.start();
/// services.synced().await;
/// for service in services.store().by_index("by-app", "front")? {
///     println!("{}", service.key());
/// }
/// # Ok(()) }
/// ```
pub struct SharedInformer<K: Resource> {
    inner: Arc<Inner<K>>,
    /// The resync period of handlers that are registered through this handle.
    resync: Option<Duration>,
}

struct Inner<K: Resource> {
    store: Indexer<K>,
    fifo: DeltaFifo<Lazy<K>>,
    processor: Arc<Processor<K>>,
    faults: Faults,
    /// Held while the cache changes and events are dispatched, so that handlers are added between two
    /// changes.
    dispatch_lock: Mutex<()>,
    started: AtomicBool,
    reflector: Mutex<Option<Reflector<K>>>,
    position: Position,
    has_synced: Arc<AtomicBool>,
    synced: watch::Sender<bool>,
    applied: watch::Sender<u64>,
}

/// Error of [`SharedInformer::get_at_least`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The cache has not observed the version in time.
    #[error(
        "the cache has not seen version {resource_version} of {key} after {waited:?}; read it from the server, or wait longer"
    )]
    Timeout {
        /// The key of the object.
        key: ObjectKey,
        /// The version.
        resource_version: String,
        /// The timeout.
        waited: Duration,
    },
    /// The version is not a number and cannot be compared.
    #[error(
        "{0:?} is not a version that can be compared; pass the resourceVersion of the object that the write returned"
    )]
    InvalidVersion(String),
}

impl<K> SharedInformer<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Send + Sync,
{
    /// Creates an informer. It does nothing until it is started.
    pub fn new(list_watch: ListWatch<K>) -> Self {
        let store = Indexer::<K>::with_metadata_key();
        let fifo = DeltaFifo::with_known_objects(&store);
        let faults = list_watch.faults().clone();
        let reflector = Reflector::new(list_watch, fifo.clone());
        let inner = Inner {
            store,
            fifo,
            processor: Arc::new(Processor::new()),
            faults,
            dispatch_lock: Mutex::new(()),
            started: AtomicBool::new(false),
            position: reflector.position(),
            reflector: Mutex::new(Some(reflector)),
            has_synced: Arc::new(AtomicBool::new(false)),
            synced: watch::Sender::new(false),
            applied: watch::Sender::new(0),
        };
        let informer = Self { inner: Arc::new(inner), resync: None };
        // Cannot fail on an empty store without indexes.
        let _ = informer.inner.store.add_index(IndexFn::namespace());
        informer
    }

    /// Sets the resync period of handlers that are registered through this handle; at least a second.
    ///
    /// It belongs to the handle: `informer.clone().resync(period).on_event(…)` is the period of one handler.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Sets the back-off after failures. Only before the start.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.configure_reflector(|reflector| reflector.backoff(backoff))
    }

    /// Sets the source of randomness for jitter and timeouts. Only before the start.
    #[must_use]
    pub fn random(self, random: Random) -> Self {
        self.configure_reflector(|reflector| reflector.random(random))
    }

    fn configure_reflector(self, tune: impl FnOnce(Reflector<K>) -> Reflector<K>) -> Self {
        let mut held = self.inner.reflector.lock();
        *held = held.take().map(tune);
        drop(held);
        self
    }

    /// Adds an index; also while the informer runs.
    pub fn add_index(&self, index: IndexFn<Lazy<K>>) -> Result<(), StoreError> {
        self.inner.store.add_index(index)
    }

    /// Returns the cache.
    pub fn store(&self) -> Indexer<K> {
        self.inner.store.clone()
    }

    /// Returns a lister over the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.store())
    }

    /// Registers a handler, which runs on a task of its own. It first gets all cached objects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn on_event(&self, handler: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        let (synced, faults) = (self.inner.synced.subscribe(), self.inner.faults.clone());
        Registration::spawn(self.subscribe(), synced, faults, handler)
    }

    /// Returns the events as a stream, for asynchronous handlers.
    pub fn subscribe(&self) -> Subscription<K> {
        let inner = &self.inner;
        let _dispatch = inner.dispatch_lock.lock();
        let present =
            inner.store.list().into_iter().map(|object| Event::Added { object, is_in_initial_list: true });
        let listener = inner.processor.add_listener(self.resync, present);
        Subscription::new(listener, &inner.processor, Arc::clone(&inner.has_synced))
    }

    /// Starts the informer on a task of its own. A second start does nothing and returns a guard without a
    /// task.
    pub fn start(&self) -> Running {
        let Some(reflector) = self.inner.reflector.lock().take() else { return Running::already_started() };
        self.inner.started.store(true, Ordering::Release);
        let inner = Arc::clone(&self.inner);
        Running::spawn(|stopped| async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = together(reflector.run(), inner.process()) => {}
            }
            inner.fifo.close();
            inner.processor.close();
        })
    }

    /// Returns whether two handles belong to the same informer.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns whether the informer was started.
    pub fn has_started(&self) -> bool {
        self.inner.started.load(Ordering::Acquire)
    }

    /// Returns whether the cache holds at least the state of the server at the start.
    pub fn has_synced(&self) -> bool {
        self.inner.has_synced.load(Ordering::Acquire)
    }

    /// Waits until the cache [has synced](Self::has_synced).
    pub async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Returns the last resource version received.
    pub fn last_sync_resource_version(&self) -> String {
        self.inner.position.resource_version()
    }

    /// Returns the number of pending events of all handlers: at most one entry per handler and object.
    pub fn pending_events(&self) -> usize {
        self.inner.processor.pending_events()
    }

    /// Returns the object once the cache has observed this version: the caller's own write, or a newer one.
    ///
    /// `None` if it is deleted by then. Pass the `resourceVersion` that the write returned.
    pub async fn get_at_least(
        &self,
        key: &ObjectKey,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<Option<Lazy<K>>, ReadError> {
        let wanted: u64 =
            resource_version.parse().map_err(|_| ReadError::InvalidVersion(resource_version.to_owned()))?;
        let mut applied = self.inner.applied.subscribe();
        let seen = async {
            loop {
                let reached = *applied.borrow_and_update();
                let held = self.inner.store.get_by_key(key);
                let newer = held.as_ref().and_then(Lazy::version).is_some_and(|version| version >= wanted);
                if newer || reached >= wanted {
                    return held;
                }
                if applied.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::time::timeout(timeout, seen).await.map_err(|_| ReadError::Timeout {
            key: key.clone(),
            resource_version: resource_version.to_owned(),
            waited: timeout,
        })
    }
}

impl<K: Resource> SharedInformer<K> {
    /// Returns the version that the cache has reached; notified whenever the cache may have changed.
    pub(crate) fn applied(&self) -> watch::Receiver<u64> {
        self.inner.applied.subscribe()
    }
}

impl<K: Resource + Send + Sync + 'static> Inner<K> {
    /// Runs everything but the reflector.
    async fn process(&self) {
        tokio::select! {
            biased;
            () = self.consume() => {}
            () = self.resync() => {}
        }
    }

    /// Applies queued deltas to the cache and dispatches the events.
    async fn consume(&self) {
        let mut budget = Budget::default();
        while let Some(batch) = self.fifo.next_batch(MAX_BATCH).await {
            self.apply(batch.items);
            drop(batch.guard);
            if let Some(version) = batch.up_to.and_then(|version| version.parse().ok()) {
                self.applied.send_replace(version);
            } else {
                // Wakes readers that wait for a single object.
                self.applied.send_modify(|_| ());
            }
            if !self.has_synced.load(Ordering::Relaxed) && self.fifo.has_synced() {
                self.has_synced.store(true, Ordering::Release);
                self.synced.send_replace(true);
            }
            budget.spend().await;
        }
    }

    fn apply(&self, items: Vec<Queued<Lazy<K>>>) {
        let _dispatch = self.dispatch_lock.lock();
        let (events, errors) = self.store.objects().transaction(|cache| {
            let mut events = Vec::with_capacity(items.len());
            for item in items {
                for delta in item.deltas {
                    apply_delta(cache, delta, item.initial, &mut events);
                }
            }
            events
        });
        for error in errors {
            self.faults.report(&Fault::Index(error));
        }
        self.processor.distribute(&events);
    }

    async fn resync(&self) {
        loop {
            self.processor.resync_due().await;
            self.fifo.resync();
        }
    }
}

/// Applies one delta to the cache and appends the resulting events.
pub(super) fn apply_delta<K>(
    cache: &mut Transaction<'_, Lazy<K>>,
    delta: Delta<Lazy<K>>,
    is_in_initial_list: bool,
    events: &mut Vec<Event<K>>,
) {
    match delta {
        Delta::Deleted { object, final_state_unknown } => {
            if cache.delete(object.key()).is_some() {
                events.push(Event::Deleted { object, final_state_unknown });
            }
        }
        // A resync must not bring back an object that was deleted meanwhile.
        Delta::Sync(object) => {
            if let Some(held) = cache.get(object.key()) {
                events.push(Event::Updated { old: held.clone(), new: held.clone() });
            }
        }
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) => {
            match cache.put(new.key().clone(), new.clone()) {
                None => events.push(Event::Added { object: new, is_in_initial_list }),
                Some(old) if old.uid() == new.uid() || old.uid().is_empty() => {
                    events.push(Event::Updated { old, new });
                }
                Some(old) => {
                    events.push(Event::Deleted { object: old, final_state_unknown: true });
                    events.push(Event::Added { object: new, is_in_initial_list: false });
                }
            }
        }
    }
}

impl<K: Resource> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), resync: self.resync }
    }
}

impl<K: Resource> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("store", &self.inner.store)
            .field("has_synced", &self.inner.has_synced)
            .finish_non_exhaustive()
    }
}
