//! One cache, many handlers: who is told what, and when.

use std::{
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
    turns::Turns,
};

/// Anything below is raised to this, as in client-go.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// The handlers of one informer.
pub(super) struct Processor<K> {
    listeners: Mutex<Vec<Arc<Listener<K>>>>,
    /// A handler came or went, so the next resync may be due at another time.
    changed: Notify,
}

/// One handler's side of an informer.
pub(super) struct Listener<K> {
    buffer: Buffer<K>,
    resync: Option<Mutex<Resync>>,
    progress: watch::Sender<()>,
}

struct Resync {
    every: Duration,
    due: Instant,
    /// Takes part in the resync that is under way.
    now: bool,
}

impl<K> Listener<K> {
    fn wants_sync(&self) -> bool {
        self.resync.as_ref().is_some_and(|resync| resync.lock().now)
    }
}

impl<K> Processor<K> {
    pub(super) fn new() -> Self {
        Self { listeners: Mutex::default(), changed: Notify::new() }
    }

    /// Adds a handler that is first told of everything in `present`.
    ///
    /// The caller holds back changes meanwhile, so the handler neither misses one nor hears of one twice.
    pub(super) fn join(
        &self,
        resync: Option<Duration>,
        present: impl IntoIterator<Item = Event<K>>,
    ) -> Arc<Listener<K>> {
        let resync = resync.filter(|every| !every.is_zero()).map(|every| {
            let every = every.max(SHORTEST_RESYNC);
            Mutex::new(Resync { every, due: Instant::now() + every, now: false })
        });
        let listener = Arc::new(Listener { buffer: Buffer::new(), resync, progress: watch::Sender::new(()) });
        listener.buffer.push(present);
        self.listeners.lock().push(Arc::clone(&listener));
        self.changed.notify_one();
        listener
    }

    pub(super) fn leave(&self, listener: &Arc<Listener<K>>) {
        self.listeners.lock().retain(|held| !Arc::ptr_eq(held, listener));
        self.changed.notify_one();
    }

    pub(super) fn distribute(&self, events: &[Event<K>]) {
        for listener in &*self.listeners.lock() {
            let sync = listener.wants_sync();
            listener.buffer.push(events.iter().filter(|event| sync || !event.is_sync()).cloned());
        }
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.listeners.lock().iter().for_each(|listener| listener.buffer.close());
    }

    pub(super) fn waiting(&self) -> usize {
        self.listeners.lock().iter().map(|listener| listener.buffer.len()).sum()
    }

    /// Waits until some handler is due for a resync, and marks those that are.
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

/// The events of an informer, taken one by one.
///
/// While one is being looked at, newer changes of the same object merge into one. Dropping the subscription ends it.
pub struct Subscription<K> {
    listener: Arc<Listener<K>>,
    processor: Weak<Processor<K>>,
    informer_synced: Arc<AtomicBool>,
    current: Option<Delivery<K>>,
}

impl<K> Subscription<K> {
    pub(super) fn new(
        listener: Arc<Listener<K>>,
        processor: &Arc<Processor<K>>,
        informer_synced: Arc<AtomicBool>,
    ) -> Self {
        Self { listener, processor: Arc::downgrade(processor), informer_synced, current: None }
    }

    /// The next event; None when the informer has stopped. Asking says that the previous one is done with.
    pub async fn next(&mut self) -> Option<Event<K>> {
        self.done();
        let delivery = self.listener.buffer.next().await?;
        Some(self.current.insert(delivery).event.clone())
    }

    /// Whether everything that was there at the beginning has been taken and done with.
    pub fn has_synced(&self) -> bool {
        self.informer_synced.load(Ordering::Acquire) && self.listener.buffer.initial_done()
    }

    fn done(&mut self) {
        if let Some(delivery) = self.current.take() {
            self.listener.buffer.done(&delivery);
            self.listener.progress.send_replace(());
        }
    }
}

impl<K> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.done();
        if let Some(processor) = self.processor.upgrade() {
            processor.leave(&self.listener);
        }
    }
}

/// A handler that is registered with an informer. Dropping this removes it.
#[must_use = "dropping a registration removes the handler"]
pub struct Registration {
    task: AbortHandle,
    synced: Arc<dyn Fn() -> bool + Send + Sync>,
    progress: watch::Receiver<()>,
    informer: watch::Receiver<bool>,
}

impl Registration {
    /// Runs the handler for every event, on a task of its own.
    pub(super) fn spawn<K>(
        mut subscription: Subscription<K>,
        informer: watch::Receiver<bool>,
        faults: Faults,
        mut handler: impl FnMut(Event<K>) + Send + 'static,
    ) -> Self
    where
        K: Send + Sync + 'static,
    {
        let progress = subscription.listener.progress.subscribe();
        let (listener, ready) =
            (Arc::clone(&subscription.listener), Arc::clone(&subscription.informer_synced));
        let synced = Arc::new(move || ready.load(Ordering::Acquire) && listener.buffer.initial_done());
        // See `turns`: neither this handler nor the others may be held up by one that blocks its thread.
        let task = tokio::spawn(unconstrained(async move {
            let mut turns = Turns::default();
            while let Some(event) = subscription.next().await {
                let key = event.key();
                let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| handler(event)));
                if let Err(panic) = outcome {
                    faults.report(&Fault::HandlerPanicked { key, message: panic_message(&*panic) });
                }
                turns.end().await;
            }
        }));
        Self { task: task.abort_handle(), synced, progress, informer }
    }

    /// Whether the informer has synced and the handler is done with everything that was there at its beginning.
    pub fn has_synced(&self) -> bool {
        (self.synced)()
    }

    /// Waits until [`has_synced`](Self::has_synced).
    pub async fn synced(&mut self) {
        self.when_synced().await;
    }

    /// A future that is over when [`has_synced`](Self::has_synced); it does not hold on to the registration.
    pub fn when_synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let synced = Arc::clone(&self.synced);
        let (mut progress, mut informer) = (self.progress.clone(), self.informer.clone());
        async move {
            while !synced() {
                // An informer that has stopped will tell nothing new; neither will it sync any more.
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
