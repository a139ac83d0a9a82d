//! Priorities: the important keys first.

use std::time::Duration;

use super::{
    key::WorkKey,
    kind::Prioritised,
    state::{How, saturating_nanos},
    work_queue::Queue,
};

/// controller-runtime's priority queue: higher priorities first, first in, first out among equals by the time at which
/// keys became ready.
///
/// A key has one place. Adding a key that is queued or waiting gives it the higher of the two priorities and the earlier
/// of the two times; it goes to the end of its new priority. A key that a worker has keeps its place and is passed over
/// until the worker is done.
///
/// Built without a limiter, retries back off per key from 5 ms to 1000 s.
///
/// ```
/// use kubewright::queue::{AddOptions, LOW_PRIORITY, PriorityQueue};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = PriorityQueue::new();
/// queue.add_with("seen at start", AddOptions::new().priority(LOW_PRIORITY));
/// queue.add("changed just now");
///
/// assert_eq!(queue.get().await.unwrap().key(), &"changed just now");
/// let item = queue.get().await.unwrap();
/// assert_eq!((*item.key(), item.priority()), ("seen at start", LOW_PRIORITY));
/// # }
/// ```
pub type PriorityQueue<T> = Queue<T, Prioritised>;

/// For what is not news: objects of an initial list and resyncs. A restart then does not make live changes wait behind
/// every object there is.
pub const LOW_PRIORITY: i32 = -100;

/// How to add a key to a [`PriorityQueue`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddOptions {
    priority: i32,
    after: Duration,
    rate_limited: bool,
}

impl AddOptions {
    /// Priority zero, at once.
    pub const fn new() -> Self {
        Self { priority: 0, after: Duration::ZERO, rate_limited: false }
    }

    /// Higher goes first; zero is normal, [`LOW_PRIORITY`] is for what can wait.
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Not before so much time has passed.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Counts a failure of the key, and waits as the limiter says. Together with [`after`](Self::after) the shorter of
    /// the two counts.
    #[must_use]
    pub const fn rate_limited(mut self) -> Self {
        self.rate_limited = true;
        self
    }
}

impl<T: WorkKey> PriorityQueue<T> {
    /// Asks for work on a key with a priority, a delay, or as a retry.
    pub fn add_with(&self, key: T, options: AddOptions) {
        let AddOptions { priority, mut after, rate_limited } = options;
        if rate_limited {
            let limited = self.shared().limiter.when(&key);
            after = if after.is_zero() { limited } else { after.min(limited) };
        }
        let how = How { urgency: priority, delay: saturating_nanos(after), retry: !after.is_zero() };
        self.shared().add(key, how);
    }
}
