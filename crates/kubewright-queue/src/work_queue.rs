//! The queue itself: adding, getting, shutting down.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    builder::QueueBuilder,
    get::Get,
    key::WorkKey,
    kind::{Kind, Plain},
    order::Order,
    shared::Shared,
    state::{How, Shutdown, State, saturating_nanos},
};

/// client-go's work queue, with its delays: every key at most once in the queue and at most once in a worker's hands.
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

/// A work queue; [`WorkQueue`], [`RateLimitingQueue`](super::RateLimitingQueue) and
/// [`PriorityQueue`](super::PriorityQueue) are this type with different abilities.
///
/// A handle: clones are the same queue.
pub struct Queue<T: WorkKey, K: Kind> {
    shared: Arc<Shared<T, K>>,
}

impl<T: WorkKey, K: Kind> Queue<T, K> {
    /// A queue without a name, and therefore without metrics.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A queue with a name for logs, measured in [`QueueMetrics::global`](super::QueueMetrics::global).
    pub fn named(name: &str) -> Self {
        Self::builder().name(name).build()
    }

    /// A queue with a limiter, a name or metrics of one's own choice.
    pub fn builder() -> QueueBuilder<T, K> {
        QueueBuilder::new()
    }

    pub(super) fn from_shared(shared: Arc<Shared<T, K>>) -> Self {
        Self { shared }
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T, K>> {
        &self.shared
    }

    /// Asks for work on a key.
    ///
    /// Does nothing if the key is in the queue already; a key that a worker has right now is handed out once more when
    /// the worker is done with it. After a shutdown it does nothing.
    pub fn add(&self, key: T) {
        self.shared.add(key, How::default());
    }

    /// Asks for work on a key once `delay` has passed; at once if there is no delay.
    ///
    /// A key that is waiting already keeps the earlier of the two times. The delay runs beside whatever else happens to
    /// the key: if it is added meanwhile, it is handed out now and then once more when the delay ends (in a
    /// [`PriorityQueue`](super::PriorityQueue) the delay is over when the key is added without one). A shutdown drops
    /// keys that are still waiting.
    pub fn add_after(&self, key: T, delay: Duration) {
        let retry = !K::Order::ONE_PLACE_PER_KEY || !delay.is_zero();
        self.shared.add(key, How { delay: saturating_nanos(delay), retry, ..How::default() });
    }

    /// The next key, as a guard; `None` once the queue is shut down and nothing is left.
    ///
    /// Dropping the future loses nothing, so it can stand in a `select!`. Delays are kept with `tokio::time`, which the
    /// runtime must have enabled if the queue is used with delays.
    pub fn get(&self) -> Get<'_, T, K> {
        Get::new(self)
    }

    /// How many keys are ready. Keys that wait for their time do not count, and those that were added while a worker has
    /// them only in a [`PriorityQueue`](super::PriorityQueue), in which they keep their place.
    pub fn len(&self) -> usize {
        self.shared.locked(State::len)
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes no more keys. Workers get what is left and then `None`.
    ///
    /// Ends a [`shut_down_with_drain`](Queue::shut_down_with_drain) that somebody is waiting for, as a second signal to
    /// a process usually should.
    pub fn shut_down(&self) {
        self.begin_shutdown(Shutdown::Begun);
        self.shared.drained.notify_waiters();
    }

    /// Takes no more keys and waits until no worker has one, so that whatever the workers need can be taken down.
    ///
    /// As in client-go, what counts is the keys in workers' hands: workers that go on calling [`get`](Queue::get) also
    /// empty the queue, and keys that nobody comes for are not waited for. Dropping the future stops the waiting but
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

    /// Whether the queue takes no more keys.
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
