use std::time::Duration;

use super::RateLimiter;

/// Another limiter, with a longest wait. Useful around a [`Bucket`](super::Bucket), whose waits grow with the backlog.
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// As `limiter` says, but never longer than `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn when(&self, key: &T) -> Duration {
        self.limiter.when(key).min(self.max)
    }

    fn forget(&self, key: &T) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.limiter.num_requeues(key)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::limiter::ItemFastSlow;

    #[test]
    fn no_wait_is_longer_than_the_limit() {
        let (ms, s) = (Duration::from_millis(5), Duration::from_secs(1));
        let limiter = WithMaxWait::new(ItemFastSlow::new(ms, 1000 * s, 100), 500 * s);
        for _ in 0..100 {
            assert_eq!(limiter.when(&"key"), ms);
        }
        for _ in 100..200 {
            assert_eq!(limiter.when(&"key"), 500 * s);
        }
        assert_eq!(limiter.num_requeues(&"key"), 200);
        limiter.forget(&"key");
        assert_eq!(limiter.when(&"key"), ms);
    }

    #[test]
    fn one_limiter_can_serve_two_queues() {
        let shared = Arc::new(ItemFastSlow::new(Duration::ZERO, Duration::from_secs(1), 1));
        let (a, b) = (Arc::clone(&shared), shared);
        assert_eq!(a.when(&"key"), Duration::ZERO);
        assert_eq!(b.when(&"key"), Duration::from_secs(1));
    }
}
