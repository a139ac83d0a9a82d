//! Retries: what queues with a limiter can do.

use super::{
    key::WorkKey,
    kind::{RateLimited, Retrying},
    state::{How, saturating_nanos},
    work_queue::Queue,
};

/// client-go's rate limiting queue: a work queue whose items can be retried with back-off.
///
/// Built without a limiter it has client-go's default for controllers, see
/// [`default_controller_limiter`](super::limiter::default_controller_limiter).
pub type RateLimitingQueue<T> = Queue<T, RateLimited>;

impl<T: WorkKey, K: Retrying> Queue<T, K> {
    /// Counts a failure of the key and asks for work on it when the limiter says so.
    ///
    /// A worker that has the key uses [`Item::retry`](super::Item::retry) instead.
    pub fn add_rate_limited(&self, key: T) {
        let delay = self.shared().limiter.when(&key);
        self.shared().add(key, How { delay: saturating_nanos(delay), retry: true, ..How::default() });
    }

    /// The next failure of the key is its first. The key stays where it is.
    pub fn forget(&self, key: &T) {
        self.shared().limiter.forget(key);
    }

    /// How often the key has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.shared().limiter.num_requeues(key)
    }
}
