//! One watch, one cache, any number of handlers.
//!
//! A [`SharedInformer`] is what most programs want: it follows a kind, keeps an indexed cache of it, and tells every
//! handler what changed. In client-go's words it is the `SharedIndexInformer`; the one without indexes does not exist
//! here, since an index that nobody adds costs nothing.
//!
//! - Handlers come and go while it runs. A late one is first told of everything that is there.
//! - Each handler runs on a task of its own, one event at a time, and never holds up the cache or another handler.
//!   What it has not taken yet merges by object, so a slow handler costs at most one entry per object.
//! - An object that was deleted and created anew under the same name, unseen, comes as a deletion and an addition;
//!   client-go makes an update of it, and every handler has to compare identities.
//!
//! Pitfall: the cache is behind the server by the time an event takes. A worker that reads what it has just written
//! asks [`get_at_least`](SharedInformer::get_at_least) for it.

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
    turns::Turns,
};
use kubewright_core::{Backoff, ObjectKey, Random};

/// Objects that go from the queue into the cache under one lock, as in client-go.
const BATCH: usize = 1000;

/// A cache of one kind with handlers. Handles are cheap to clone and share everything.
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
    /// Held while the cache changes and handlers are told, so that a handler joins between two changes.
    turn: Mutex<()>,
    started: AtomicBool,
    reflector: Mutex<Option<Reflector<K>>>,
    position: Position,
    has_synced: Arc<AtomicBool>,
    synced: watch::Sender<bool>,
    applied: watch::Sender<u64>,
}

/// The cache has not seen a write in time.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Time is up.
    #[error(
        "the cache has not seen version {resource_version} of {key} after {waited:?}; read it from the server, or wait longer"
    )]
    NotSeen {
        /// Which object.
        key: ObjectKey,
        /// The version that was waited for.
        resource_version: String,
        /// How long.
        waited: Duration,
    },
    /// The version is not a number, so nothing can be said of what comes after it.
    #[error(
        "{0:?} is not a version that can be compared; pass the resourceVersion of the object that the write returned"
    )]
    NotAVersion(String),
}

impl<K> SharedInformer<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Send + Sync,
{
    /// An informer of what `list_watch` asks for. It does nothing until it is started.
    pub fn new(list_watch: ListWatch<K>) -> Self {
        let store = Indexer::<K>::keyed();
        let fifo = DeltaFifo::of(&store);
        let faults = list_watch.faults().clone();
        let reflector = Reflector::new(list_watch, fifo.clone());
        let inner = Inner {
            store,
            fifo,
            processor: Arc::new(Processor::new()),
            faults,
            turn: Mutex::new(()),
            started: AtomicBool::new(false),
            position: reflector.position(),
            reflector: Mutex::new(Some(reflector)),
            has_synced: Arc::new(AtomicBool::new(false)),
            synced: watch::Sender::new(false),
            applied: watch::Sender::new(0),
        };
        let informer = Self { inner: Arc::new(inner), resync: None };
        // An empty store without indexes refuses neither the name nor an object.
        let _ = informer.inner.store.add_index(IndexFn::namespace());
        informer
    }

    /// A handle whose handlers look at every object again in this period; at least a second.
    ///
    /// It goes with the handle: `informer.clone().resync(period).on_event(…)` is one handler's own period.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// How long to wait after failures. Only before the start.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.tuned(|reflector| reflector.backoff(backoff))
    }

    /// Where jitter and time-outs come from. Only before the start.
    #[must_use]
    pub fn random(self, random: Random) -> Self {
        self.tuned(|reflector| reflector.random(random))
    }

    fn tuned(self, tune: impl FnOnce(Reflector<K>) -> Reflector<K>) -> Self {
        let mut held = self.inner.reflector.lock();
        *held = held.take().map(tune);
        drop(held);
        self
    }

    /// Adds an index; also while the informer runs.
    pub fn add_index(&self, index: IndexFn<Lazy<K>>) -> Result<(), StoreError> {
        self.inner.store.add_index(index)
    }

    /// The cache.
    pub fn store(&self) -> Indexer<K> {
        self.inner.store.clone()
    }

    /// The cache as lists by namespace and by selector.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.store())
    }

    /// Calls `handler` for every change, on a task of its own. It is first told of everything that is there.
    ///
    /// Must be called inside a tokio runtime.
    pub fn on_event(&self, handler: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        let (synced, faults) = (self.inner.synced.subscribe(), self.inner.faults.clone());
        Registration::spawn(self.subscribe(), synced, faults, handler)
    }

    /// The changes, to be taken one by one: for handlers that are asynchronous.
    pub fn subscribe(&self) -> Subscription<K> {
        let inner = &self.inner;
        let _turn = inner.turn.lock();
        let present =
            inner.store.list().into_iter().map(|object| Event::Added { object, is_in_initial_list: true });
        let listener = inner.processor.join(self.resync, present);
        Subscription::new(listener, &inner.processor, Arc::clone(&inner.has_synced))
    }

    /// Starts to follow the server, on a task of its own. A second start does nothing and returns a guard of nothing.
    pub fn start(&self) -> Running {
        let Some(reflector) = self.inner.reflector.lock().take() else { return Running::nothing() };
        self.inner.started.store(true, Ordering::Release);
        let inner = Arc::clone(&self.inner);
        Running::spawn(|stopped| async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = together(reflector.run(), inner.take_in()) => {}
            }
            inner.fifo.close();
            inner.processor.close();
        })
    }

    /// Whether two handles are of the same informer.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether it was started.
    pub fn has_started(&self) -> bool {
        self.inner.started.load(Ordering::Acquire)
    }

    /// Whether the cache holds at least what the server held when the informer started.
    pub fn has_synced(&self) -> bool {
        self.inner.has_synced.load(Ordering::Acquire)
    }

    /// Waits until the cache [has synced](Self::has_synced).
    pub async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// The last version that the server has told of.
    pub fn last_sync_resource_version(&self) -> String {
        self.inner.position.resource_version()
    }

    /// How many events wait for handlers, over all handlers: at most one entry per handler and object.
    pub fn waiting_events(&self) -> usize {
        self.inner.processor.waiting()
    }

    /// The object as it is in the cache once the cache has seen this version: one's own write, or something newer.
    ///
    /// None when it is gone by then. Pass the `resourceVersion` that the write returned.
    pub async fn get_at_least(
        &self,
        key: &ObjectKey,
        resource_version: &str,
        patience: Duration,
    ) -> Result<Option<Lazy<K>>, ReadError> {
        let wanted: u64 =
            resource_version.parse().map_err(|_| ReadError::NotAVersion(resource_version.to_owned()))?;
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
        tokio::time::timeout(patience, seen).await.map_err(|_| ReadError::NotSeen {
            key: key.clone(),
            resource_version: resource_version.to_owned(),
            waited: patience,
        })
    }
}

impl<K: Resource> SharedInformer<K> {
    /// How far the cache has come; changes whenever the cache may have.
    pub(crate) fn applied(&self) -> watch::Receiver<u64> {
        self.inner.applied.subscribe()
    }

    /// How far the cache has come.
    pub(crate) fn reached(&self) -> u64 {
        *self.inner.applied.borrow()
    }
}

impl<K: Resource + Send + Sync + 'static> Inner<K> {
    /// Everything but the reflector.
    async fn take_in(&self) {
        tokio::select! {
            biased;
            () = self.consume() => {}
            () = self.resync() => {}
        }
    }

    /// Moves what the reflector found into the cache and tells the handlers.
    async fn consume(&self) {
        let mut turns = Turns::default();
        while let Some(batch) = self.fifo.next_batch(BATCH).await {
            self.apply(batch.items);
            drop(batch.claim);
            if let Some(version) = batch.up_to.and_then(|version| version.parse().ok()) {
                self.applied.send_replace(version);
            } else {
                // Waiting readers look at their own object.
                self.applied.send_modify(|_| ());
            }
            if !self.has_synced.load(Ordering::Relaxed) && self.fifo.has_synced() {
                self.has_synced.store(true, Ordering::Release);
                self.synced.send_replace(true);
            }
            turns.end().await;
        }
    }

    fn apply(&self, items: Vec<Queued<Lazy<K>>>) {
        let _turn = self.turn.lock();
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

/// Brings one delta into the cache and says what changed.
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
        // The periodic look must not bring back what has gone meanwhile.
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
