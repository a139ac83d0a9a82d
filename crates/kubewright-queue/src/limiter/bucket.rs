use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::RateLimiter;

/// A token bucket over all keys: so many retries per second, after a burst.
///
/// Retries beyond the rate are not refused; each waits for the token that will be its own. The bucket knows nothing of
/// single keys, so it never has requeues to tell and nothing to forget.
pub struct Bucket {
    /// How long one token takes to grow.
    interval: Duration,
    /// How long all of them take.
    full: Duration,
    debt: Mutex<Debt>,
}

/// What has been taken out and has not grown back, as time to grow. Kept as a duration and not as the instant at which
/// the bucket is full again: an instant far in the past or future cannot always be expressed.
struct Debt {
    amount: Duration,
    at: Instant,
}

impl Bucket {
    /// `rate` retries per second after a burst of `burst`. A rate of zero gives the burst and then one retry in a
    /// century; a burst of zero counts as one, since no retry could ever pass otherwise.
    pub fn per_second(rate: u32, burst: u32) -> Self {
        Self::every(Duration::from_secs(1).checked_div(rate).unwrap_or(CENTURY), burst)
    }

    /// One retry per `interval` after a burst of `burst`: for rates below one per second.
    pub fn every(interval: Duration, burst: u32) -> Self {
        let interval = interval.min(CENTURY);
        Self {
            interval,
            full: interval.saturating_mul(burst.max(1)),
            debt: Mutex::new(Debt { amount: Duration::ZERO, at: Instant::now() }),
        }
    }

    fn take(&self, now: Instant) -> Duration {
        let mut debt = self.debt.lock();
        let grown = now.saturating_duration_since(debt.at);
        debt.amount = debt.amount.saturating_sub(grown).saturating_add(self.interval);
        debt.at = now;
        debt.amount.saturating_sub(self.full)
    }
}

/// Far enough that nobody waits for it, near enough that clocks can express it.
const CENTURY: Duration = Duration::from_hours(100 * 365 * 24);

impl<T> RateLimiter<T> for Bucket {
    fn when(&self, _: &T) -> Duration {
        self.take(Instant::now())
    }

    fn forget(&self, _: &T) {}

    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn when(bucket: &Bucket) -> Duration {
        RateLimiter::<&str>::when(bucket, &"any")
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_each_waits_for_its_own_token() {
        let bucket = Bucket::per_second(10, 100);
        for _ in 0..100 {
            assert_eq!(when(&bucket), Duration::ZERO);
        }
        assert_eq!(when(&bucket), 100 * MS);
        assert_eq!(when(&bucket), 200 * MS);
        assert_eq!(when(&bucket), 300 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_grow_back_but_never_beyond_the_burst() {
        let bucket = Bucket::per_second(10, 3);
        for _ in 0..3 {
            when(&bucket);
        }
        tokio::time::advance(250 * MS).await;
        assert_eq!(when(&bucket), Duration::ZERO);
        assert_eq!(when(&bucket), Duration::ZERO);
        assert_eq!(when(&bucket), 50 * MS);

        tokio::time::advance(Duration::from_hours(1)).await;
        for _ in 0..3 {
            assert_eq!(when(&bucket), Duration::ZERO);
        }
        assert_eq!(when(&bucket), 100 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn odd_settings_do_not_panic() {
        let never = Bucket::per_second(0, 1);
        assert_eq!(when(&never), Duration::ZERO);
        assert!(when(&never) >= CENTURY);
        for _ in 0..100 {
            when(&never);
        }

        let huge = Bucket::every(Duration::MAX, u32::MAX);
        assert_eq!(when(&huge), Duration::ZERO);

        let no_burst = Bucket::per_second(1, 0);
        assert_eq!(when(&no_burst), Duration::ZERO);
        assert_eq!(when(&no_burst), Duration::from_secs(1));

        let unlimited = Bucket::every(Duration::ZERO, 1);
        assert_eq!((when(&unlimited), when(&unlimited)), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn a_bucket_has_no_requeues_to_tell() {
        let bucket = Bucket::per_second(10, 100);
        when(&bucket);
        assert_eq!(RateLimiter::<&str>::num_requeues(&bucket, &"any"), 0);
    }
}
