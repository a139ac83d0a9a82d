use std::time::Duration;

use super::{RateLimiter, failures::Failures};
use crate::WorkKey;

/// Each failure of a key doubles its wait: `base`, 2·`base`, 4·`base` … up to `max`.
pub struct ItemExponentialFailure<T> {
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

impl<T: WorkKey> ItemExponentialFailure<T> {
    /// Starts at `base` and never waits longer than `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }
}

impl<T: WorkKey> RateLimiter<T> for ItemExponentialFailure<T> {
    fn when(&self, key: &T) -> Duration {
        double(self.base, self.failures.count(key), self.max)
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.failures.get(key)
    }
}

/// `base` · 2^`times`, at most `max`, whatever the numbers are.
fn double(base: Duration, times: u32, max: Duration) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let nanos = base.as_nanos();
    if nanos == 0 {
        return Duration::ZERO;
    }
    if times > nanos.leading_zeros() || nanos << times >= max.as_nanos() {
        return max;
    }
    // Smaller than `max`, so both parts fit their types as those of `max` do.
    let nanos = nanos << times;
    match (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    #[test]
    fn each_failure_of_a_key_doubles_its_wait() {
        let limiter = ItemExponentialFailure::new(MS, S);
        let waits: Vec<_> = (0..5).map(|_| limiter.when(&"one").as_millis()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        assert_eq!(limiter.num_requeues(&"one"), 5);

        assert_eq!(limiter.when(&"two"), MS);
        assert_eq!(limiter.when(&"two"), 2 * MS);
        assert_eq!(limiter.num_requeues(&"two"), 2);
    }

    #[test]
    fn a_forgotten_key_starts_again() {
        let limiter = ItemExponentialFailure::new(MS, S);
        limiter.when(&"one");
        limiter.when(&"one");
        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one"), MS);
    }

    #[test]
    fn a_thousand_failures_stay_at_the_limit_without_overflow() {
        let limiter = ItemExponentialFailure::new(MS, 1000 * S);
        for _ in 0..5 {
            limiter.when(&"one");
        }
        assert_eq!(limiter.when(&"one"), 32 * MS);
        for _ in 0..1000 {
            limiter.when(&"overflow");
        }
        assert_eq!(limiter.when(&"overflow"), 1000 * S);

        let limiter = ItemExponentialFailure::new(60 * S, 3_600_000 * S);
        limiter.when(&"two");
        limiter.when(&"two");
        assert_eq!(limiter.when(&"two"), 240 * S);
        for _ in 0..1000 {
            limiter.when(&"overflow");
        }
        assert_eq!(limiter.when(&"overflow"), 3_600_000 * S);
    }

    #[test]
    fn extreme_durations_are_safe() {
        assert_eq!(double(Duration::MAX, u32::MAX, Duration::MAX), Duration::MAX);
        assert_eq!(double(Duration::MAX, 1, S), S);
        assert_eq!(double(Duration::ZERO, u32::MAX, S), Duration::ZERO);
        assert_eq!(double(Duration::from_nanos(1), 39, 1000 * S), Duration::from_nanos(1 << 39));
        assert_eq!(double(Duration::from_nanos(1), 40, 1000 * S), 1000 * S);
        assert_eq!(double(S, 63, Duration::MAX), Duration::from_secs(1 << 63));
        assert_eq!(double(S, 64, Duration::MAX), Duration::MAX);
        assert_eq!(double(2 * S, 0, S), S, "a base above the limit is cut to the limit");
    }
}
