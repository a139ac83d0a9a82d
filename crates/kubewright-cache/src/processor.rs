//! Distribution of events to the handlers of an informer.

use std::{
    marker::PhantomData,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubewright_core::panic_message;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, unconstrained},
    time::Instant,
};

use super::{
    buffer::{Buffer, Delivery},
    event::Event,
    fault::{Fault, Faults},
    object::Untyped,
    turns::Budget,
};

/// Minimum resync period, as in client-go.
const MIN_RESYNC: Duration = Duration::from_secs(1);

/// The handlers of one informer; client-go's `sharedProcessor`.
pub(super) struct Processor {
    listeners: Mutex<Vec<Arc<Listener>>>,
    /// Signals that a handler was added or removed, which may change the time of the next resync.
    changed: Notify,
}

/// The state of one handler; client-go's `processorListener`.
pub(super) struct Listener {
    buffer: Buffer<Untyped>,
    resync: Option<Mutex<Resync>>,
    progress: watch::Sender<()>,
}

struct Resync {
    every: Duration,
    due: Instant,
    /// Whether it takes part in the current resync.
    now: bool,
}

impl Listener {
    fn wants_sync(&self) -> bool {
        self.resync.as_ref().is_some_and(|resync| resync.lock().now)
    }
}

impl Processor {
    pub(super) fn new() -> Self {
        Self { listeners: Mutex::default(), changed: Notify::new() }
    }

    /// Adds a handler that first gets the events in `present`.
    ///
    /// The caller blocks changes meanwhile, so that the handler neither misses one nor gets one twice.
    pub(super) fn add_listener(
        &self,
        resync: Option<Duration>,
        present: impl IntoIterator<Item = Event<Untyped>>,
    ) -> Arc<Listener> {
        let resync = resync.filter(|every| !every.is_zero()).map(|every| {
            let every = every.max(MIN_RESYNC);
            Mutex::new(Resync { every, due: Instant::now() + every, now: false })
        });
        let listener = Arc::new(Listener { buffer: Buffer::new(), resync, progress: watch::Sender::new(()) });
        listener.buffer.push(present);
        self.listeners.lock().push(Arc::clone(&listener));
        self.changed.notify_one();
        listener
    }

    pub(super) fn remove_listener(&self, listener: &Arc<Listener>) {
        self.listeners.lock().retain(|held| !Arc::ptr_eq(held, listener));
        self.changed.notify_one();
    }

    pub(super) fn distribute(&self, events: &[Event<Untyped>]) {
        for listener in &*self.listeners.lock() {
            let sync = listener.wants_sync();
            listener.buffer.push(events.iter().filter(|event| sync || !event.is_sync()).cloned());
        }
    }

    /// Closes the buffers of all handlers.
    pub(super) fn close(&self) {
        self.listeners.lock().iter().for_each(|listener| listener.buffer.close());
    }

    pub(super) fn pending_events(&self) -> usize {
        self.listeners.lock().iter().map(|listener| listener.buffer.len()).sum()
    }

    /// Waits until a handler is due for a resync, and marks all that are.
    pub(super) async fn resync_due(&self) {
        loop {
            let changed = self.changed.notified();
            let next = self
                .listeners
                .lock()
                .iter()
                .filter_map(|listener| Some(listener.resync.as_ref()?.lock().due))
                .min();
            let Some(next) = next else {
                changed.await;
                continue;
            };
            tokio::select! {
                biased;
                () = changed => continue,
                () = tokio::time::sleep_until(next) => {}
            }
            let now = Instant::now();
            for resync in self.listeners.lock().iter().filter_map(|listener| listener.resync.as_ref()) {
                let mut resync = resync.lock();
                resync.now = resync.due <= now;
                if resync.now {
                    resync.due = now + resync.every;
                }
            }
            return;
        }
    }
}

/// Stream of the events of an informer.
///
/// While an event is handled, newer changes of an object are coalesced. Dropping the subscription ends it.
pub struct Subscription<K> {
    inner: UntypedSubscription,
    kind: PhantomData<fn() -> K>,
}

impl<K> Subscription<K> {
    pub(super) fn new(inner: UntypedSubscription) -> Self {
        Self { inner, kind: PhantomData }
    }

    /// The next event; None when the informer has stopped. Asking says that the previous one is done with.
    pub async fn next(&mut self) -> Option<Event<K>> {
        self.inner.next().await.map(Event::cast)
    }

    /// Whether everything that was there at the beginning has been taken and done with.
    pub fn has_synced(&self) -> bool {
        self.inner.has_synced()
    }
}

/// A subscription, whatever kind it is of.
pub(super) struct UntypedSubscription {
    listener: Arc<Listener>,
    processor: Weak<Processor>,
    informer_synced: Arc<AtomicBool>,
    current: Option<Delivery<Untyped>>,
}

impl UntypedSubscription {
    pub(super) fn new(
        listener: Arc<Listener>,
        processor: &Arc<Processor>,
        informer_synced: Arc<AtomicBool>,
    ) -> Self {
        Self { listener, processor: Arc::downgrade(processor), informer_synced, current: None }
    }

    async fn next(&mut self) -> Option<Event<Untyped>> {
        self.done();
        let delivery = self.listener.buffer.next().await?;
        Some(self.current.insert(delivery).event.clone())
    }

    fn has_synced(&self) -> bool {
        self.informer_synced.load(Ordering::Acquire) && self.listener.buffer.initial_done()
    }

    fn done(&mut self) {
        if let Some(delivery) = self.current.take() {
            self.listener.buffer.done(&delivery);
            self.listener.progress.send_replace(());
        }
    }
}

impl Drop for UntypedSubscription {
    fn drop(&mut self) {
        self.done();
        if let Some(processor) = self.processor.upgrade() {
            processor.remove_listener(&self.listener);
        }
    }
}

/// A registered handler; client-go's `ResourceEventHandlerRegistration`. Dropping it removes the handler.
#[must_use = "dropping a registration removes the handler"]
pub struct Registration {
    task: AbortHandle,
    synced: Arc<dyn Fn() -> bool + Send + Sync>,
    progress: watch::Receiver<()>,
    informer: watch::Receiver<bool>,
}

impl Registration {
    /// Spawns a task that runs the handler for every event.
    pub(super) fn spawn(
        mut subscription: UntypedSubscription,
        informer: watch::Receiver<bool>,
        faults: Faults,
        mut handler: Box<dyn FnMut(Event<Untyped>) + Send>,
    ) -> Self {
        let progress = subscription.listener.progress.subscribe();
        let (listener, ready) =
            (Arc::clone(&subscription.listener), Arc::clone(&subscription.informer_synced));
        let synced = Arc::new(move || ready.load(Ordering::Acquire) && listener.buffer.initial_done());
        // See `turns`: a handler that blocks its thread must not delay the others.
        let task = tokio::spawn(unconstrained(async move {
            let mut budget = Budget::default();
            while let Some(event) = subscription.next().await {
                let key = event.key();
                let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| handler(event)));
                if let Err(panic) = outcome {
                    faults.report(&Fault::HandlerPanicked { key, message: panic_message(&*panic) });
                }
                budget.spend().await;
            }
        }));
        Self { task: task.abort_handle(), synced, progress, informer }
    }

    /// Returns whether the informer has synced and the handler has handled the initial list.
    pub fn has_synced(&self) -> bool {
        (self.synced)()
    }

    /// Waits until [`has_synced`](Self::has_synced).
    pub async fn synced(&mut self) {
        self.when_synced().await;
    }

    /// Returns a future that resolves when [`has_synced`](Self::has_synced); it does not borrow the
    /// registration.
    pub fn when_synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let synced = Arc::clone(&self.synced);
        let (mut progress, mut informer) = (self.progress.clone(), self.informer.clone());
        async move {
            while !synced() {
                // An informer that has stopped never syncs.
                tokio::select! {
                    biased;
                    changed = progress.changed() => if changed.is_err() { return },
                    changed = informer.changed() => if changed.is_err() { return },
                }
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.task.abort();
    }
}
