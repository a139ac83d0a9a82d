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
    list_watch::{ListWatch, ListerWatcher},
    lister::Lister,
    object::{Lazy, Untyped},
    processor::{Processor, Registration, Subscription, UntypedSubscription},
    reflector::{Follower, Position},
    running::Running,
    store::{Indexer, UntypedStore},
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
pub struct SharedInformer<K> {
    inner: Arc<Inner>,
    store: Indexer<K>,
    /// The resync period of handlers that are registered through this handle.
    resync: Option<Duration>,
}

/// An informer, whatever kind it is of.
struct Inner {
    store: Arc<UntypedStore>,
    fifo: DeltaFifo<Lazy<Untyped>>,
    processor: Arc<Processor>,
    faults: Faults,
    /// Held while the cache changes and events are dispatched, so that handlers are added between two
    /// changes.
    dispatch_lock: Mutex<()>,
    started: AtomicBool,
    follower: Mutex<Option<Follower>>,
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
        let inner = Inner::new(list_watch.into_lister_watcher());
        Self { store: Indexer::viewing(Arc::clone(&inner.store)), inner, resync: None }
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
        self.configure_reflector(|follower| follower.backoff = backoff)
    }

    /// Sets the source of randomness for jitter and timeouts. Only before the start.
    #[must_use]
    pub fn random(self, random: Random) -> Self {
        self.configure_reflector(|follower| follower.random = random)
    }

    fn configure_reflector(self, tune: impl FnOnce(&mut Follower)) -> Self {
        self.inner.follower.lock().as_mut().map(tune);
        self
    }

    /// Adds an index; also while the informer runs.
    pub fn add_index(&self, index: IndexFn<Lazy<K>>) -> Result<(), StoreError> {
        self.store.add_index(index)
    }

    /// Returns the cache.
    pub fn store(&self) -> Indexer<K> {
        self.store.clone()
    }

    /// Returns a lister over the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.store())
    }

    /// Registers a handler, which runs on a task of its own. It first gets all cached objects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn on_event(&self, mut handler: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.inner.on_event(self.resync, Box::new(move |event| handler(event.cast())))
    }

    /// Returns the events as a stream, for asynchronous handlers.
    pub fn subscribe(&self) -> Subscription<K> {
        Subscription::new(self.inner.subscribe(self.resync))
    }

    /// Starts the informer on a task of its own. A second start does nothing and returns a guard without a
    /// task.
    pub fn start(&self) -> Running {
        self.inner.start()
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
                let held = self.store.get_by_key(key);
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

impl<K> SharedInformer<K> {
    /// Returns the version that the cache has reached; notified whenever the cache may have changed.
    pub(crate) fn applied(&self) -> watch::Receiver<u64> {
        self.inner.applied.subscribe()
    }

    /// How far the cache has come.
    pub(crate) fn reached(&self) -> u64 {
        *self.inner.applied.borrow()
    }
}

impl Inner {
    fn new(list_watch: ListerWatcher) -> Arc<Self> {
        let store = Arc::new(UntypedStore::new());
        // An empty store without indexes refuses neither the name nor an object.
        let _ = store.add_indexes([IndexFn::namespace()]);
        let fifo = DeltaFifo::with_known_objects(&Indexer::untyped(Arc::clone(&store)));
        let faults = list_watch.faults().clone();
        let follower = Follower::new(list_watch, Arc::new(fifo.clone()));
        Arc::new(Self {
            store,
            fifo,
            processor: Arc::new(Processor::new()),
            faults,
            dispatch_lock: Mutex::new(()),
            started: AtomicBool::new(false),
            position: follower.position.clone(),
            follower: Mutex::new(Some(follower)),
            has_synced: Arc::new(AtomicBool::new(false)),
            synced: watch::Sender::new(false),
            applied: watch::Sender::new(0),
        })
    }

    fn on_event(
        &self,
        resync: Option<Duration>,
        handler: Box<dyn FnMut(Event<Untyped>) + Send>,
    ) -> Registration {
        let (synced, faults) = (self.synced.subscribe(), self.faults.clone());
        Registration::spawn(self.subscribe(resync), synced, faults, handler)
    }

    fn subscribe(&self, resync: Option<Duration>) -> UntypedSubscription {
        let _dispatch = self.dispatch_lock.lock();
        let present =
            self.store.list().into_iter().map(|object| Event::Added { object, is_in_initial_list: true });
        let listener = self.processor.add_listener(resync, present);
        UntypedSubscription::new(listener, &self.processor, Arc::clone(&self.has_synced))
    }

    fn start(self: &Arc<Self>) -> Running {
        let Some(follower) = self.follower.lock().take() else { return Running::already_started() };
        self.started.store(true, Ordering::Release);
        let inner = Arc::clone(self);
        Running::spawn(|stopped| async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = together(follower.run(), inner.process()) => {}
            }
            inner.fifo.close();
            inner.processor.close();
        })
    }

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

    fn apply(&self, items: Vec<Queued<Lazy<Untyped>>>) {
        let _dispatch = self.dispatch_lock.lock();
        let (events, errors) = self.store.transaction(|cache| {
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
pub(super) fn apply_delta(
    cache: &mut Transaction<'_, Lazy<Untyped>>,
    delta: Delta<Lazy<Untyped>>,
    is_in_initial_list: bool,
    events: &mut Vec<Event<Untyped>>,
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

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), store: self.store.clone(), resync: self.resync }
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("store", &self.inner.store)
            .field("has_synced", &self.inner.has_synced)
            .finish_non_exhaustive()
    }
}
