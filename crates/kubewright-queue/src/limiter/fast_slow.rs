use std::time::Duration;

use super::{RateLimiter, failures::Failures};
use crate::WorkKey;

/// A key is retried after `fast` the first `max_fast_attempts` times, and after `slow` from then on.
pub struct ItemFastSlow<T> {
    fast: Duration,
    slow: Duration,
    max_fast_attempts: u32,
    failures: Failures<T>,
}

impl<T: WorkKey> ItemFastSlow<T> {
    /// Fast for so many attempts, then slow.
    pub fn new(fast: Duration, slow: Duration, max_fast_attempts: u32) -> Self {
        Self { fast, slow, max_fast_attempts, failures: Failures::new() }
    }
}

impl<T: WorkKey> RateLimiter<T> for ItemFastSlow<T> {
    fn when(&self, key: &T) -> Duration {
        if self.failures.count(key) < self.max_fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.failures.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempts_are_fast_and_the_others_slow() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
        let limiter = ItemFastSlow::new(fast, slow, 3);
        let waits: Vec<_> = (0..5).map(|_| limiter.when(&"one")).collect();
        assert_eq!(waits, [fast, fast, fast, slow, slow]);
        assert_eq!(limiter.num_requeues(&"one"), 5);

        assert_eq!(limiter.when(&"two"), fast);
        assert_eq!(limiter.when(&"two"), fast);
        assert_eq!(limiter.num_requeues(&"two"), 2);

        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one"), fast);
    }

    #[test]
    fn without_fast_attempts_every_retry_is_slow() {
        let limiter = ItemFastSlow::new(Duration::ZERO, Duration::from_secs(1), 0);
        assert_eq!(limiter.when(&1), Duration::from_secs(1));
    }
}
