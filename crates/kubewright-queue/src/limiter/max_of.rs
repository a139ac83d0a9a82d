use std::time::Duration;

use super::RateLimiter;

/// The stricter of two limiters; nest it for more. Both count every failure.
pub struct MaxOf<A, B> {
    one: A,
    other: B,
}

impl<A, B> MaxOf<A, B> {
    /// Waits as long as the longer of the two says.
    pub fn new(one: A, other: B) -> Self {
        Self { one, other }
    }
}

impl<T, A: RateLimiter<T>, B: RateLimiter<T>> RateLimiter<T> for MaxOf<A, B> {
    fn when(&self, key: &T) -> Duration {
        self.one.when(key).max(self.other.when(key))
    }

    fn forget(&self, key: &T) {
        self.one.forget(key);
        self.other.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.one.num_requeues(key).max(self.other.num_requeues(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{ItemExponentialFailure, ItemFastSlow, default_controller_limiter};

    #[test]
    fn the_stricter_limiter_wins_and_both_count() {
        let ms = Duration::from_millis;
        let limiter =
            MaxOf::new(ItemFastSlow::new(ms(5), ms(3000), 3), ItemExponentialFailure::new(ms(1), ms(1000)));
        let waits: Vec<_> = (0..5).map(|_| limiter.when(&"one")).collect();
        assert_eq!(waits, [ms(5), ms(5), ms(5), ms(3000), ms(3000)]);
        assert_eq!(limiter.num_requeues(&"one"), 5);

        assert_eq!(limiter.when(&"two"), ms(5));
        assert_eq!(limiter.when(&"two"), ms(5));
        assert_eq!(limiter.num_requeues(&"two"), 2);

        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one"), ms(5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_default_for_controllers_backs_off_per_key_and_spends_a_bucket_of_a_hundred() {
        let limiter = default_controller_limiter();
        let ms = Duration::from_millis;
        assert_eq!(limiter.when(&0), ms(5));
        assert_eq!(limiter.when(&0), ms(10));
        for key in 1..=98 {
            assert_eq!(limiter.when(&key), ms(5));
        }
        assert_eq!(limiter.when(&99), ms(100), "the burst is spent: the bucket is stricter than the key");
        for _ in 0..30 {
            limiter.when(&0);
        }
        assert_eq!(limiter.when(&0), Duration::from_secs(1000));
    }
}
