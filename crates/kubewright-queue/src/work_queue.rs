//! Work queue.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    builder::QueueBuilder,
    get::Get,
    key::WorkKey,
    kind::{Kind, Plain},
    order::Order,
    shared::Shared,
    state::{How, Shutdown, saturating_nanos},
};

/// client-go's work queue with delays: a key is in the queue at most once, and in flight at most once.
///
/// ```
/// use std::time::Duration;
/// use kubewright::queue::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let queue = WorkQueue::new();
/// queue.add_after("later", Duration::from_millis(1));
/// queue.add("now");
/// queue.add("now");
///
/// let item = queue.get().await.unwrap();
/// assert_eq!(item.key(), &"now");
/// queue.add("now"); // while we work on it
/// drop(item);
///
/// assert_eq!(queue.get().await.unwrap().key(), &"now");
/// assert_eq!(queue.get().await.unwrap().key(), &"later");
///
/// queue.shut_down();
/// assert!(queue.get().await.is_none());
/// # }
/// ```
pub type WorkQueue<T> = Queue<T, Plain>;

/// Work queue; [`WorkQueue`], [`RateLimitingQueue`](super::RateLimitingQueue) and
/// [`PriorityQueue`](super::PriorityQueue) are this type with different abilities.
///
/// A handle: clones are the same queue.
pub struct Queue<T: WorkKey, K: Kind> {
    shared: Arc<Shared<T, K>>,
}

impl<T: WorkKey, K: Kind> Queue<T, K> {
    /// Creates a queue without a name, and therefore without metrics.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a queue with a name for logs and metrics in [`QueueMetrics::global`](super::QueueMetrics::global).
    pub fn named(name: &str) -> Self {
        Self::builder().name(name).build()
    }

    /// Creates a builder.
    pub fn builder() -> QueueBuilder<T, K> {
        QueueBuilder::new()
    }

    pub(super) fn from_shared(shared: Arc<Shared<T, K>>) -> Self {
        Self { shared }
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T, K>> {
        &self.shared
    }

    /// Adds a key.
    ///
    /// Does nothing if the key is in the queue already; a key in flight is handed out once more when its worker
    /// is done. After a shutdown it does nothing.
    pub fn add(&self, key: T) {
        self.shared.add(key, How::default());
    }

    /// Adds a key once `delay` has passed.
    ///
    /// A key that is waiting already keeps the earlier of the two times. The delay is independent of additions: if the
    /// key is added meanwhile, it is handed out now and then once more when the delay ends (in a
    /// [`PriorityQueue`](super::PriorityQueue) the delay is over when the key is added without one). A shutdown drops
    /// keys that are still waiting.
    pub fn add_after(&self, key: T, delay: Duration) {
        let retry = !K::Order::ONE_PLACE_PER_KEY || !delay.is_zero();
        self.shared.add(key, How { delay: saturating_nanos(delay), retry, ..How::default() });
    }

    /// Waits for the next key. Returns `None` once the queue is shut down and empty.
    ///
    /// The future is cancel safe. Delays are kept with `tokio::time`, which the
    /// runtime must have enabled if the queue is used with delays.
    pub fn get(&self) -> Get<'_, T, K> {
        Get::new(self)
    }

    /// Returns the number of ready keys. Keys that wait for their time do not count, and those that were added while a worker has
    /// them only in a [`PriorityQueue`](super::PriorityQueue), in which they keep their place.
    pub fn len(&self) -> usize {
        self.shared.locked(|state, _| state.len())
    }

    /// Returns whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shuts the queue down: it takes no more keys, and workers get the remaining keys and then `None`.
    ///
    /// Ends a [`shut_down_with_drain`](Queue::shut_down_with_drain) that is being awaited, as a second signal to a
    /// process usually should.
    pub fn shut_down(&self) {
        self.begin_shutdown(Shutdown::Begun);
        self.shared.drained.notify_waiters();
    }

    /// Shuts the queue down and waits until no key is in flight.
    ///
    /// As in client-go, only keys in flight are waited for: workers that go on calling [`get`](Queue::get) also empty the queue,
    /// and without workers the remaining keys are not waited for. Dropping the future stops the waiting but
    /// not the shutdown.
    pub async fn shut_down_with_drain(&self) {
        self.begin_shutdown(Shutdown::Draining);
        loop {
            let drained = self.shared.drained.notified();
            let waits = self
                .shared
                .locked(|state, _| state.in_flight() > 0 && state.shutdown() == Shutdown::Draining);
            if !waits {
                return;
            }
            drained.await;
        }
    }

    /// Returns whether the queue takes no more keys.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.locked(|state, _| state.shutdown() != Shutdown::No)
    }

    fn begin_shutdown(&self, how: Shutdown) {
        self.shared.locked(|state, after| state.shut_down(how, after));
    }
}

impl<T: WorkKey, K: Kind> Default for Queue<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: WorkKey, K: Kind> Clone for Queue<T, K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: WorkKey, K: Kind> fmt::Debug for Queue<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.shared.name()).finish_non_exhaustive()
    }
}
