//! Exponential back-off.

use std::time::Duration;

use tokio::time::Instant;

use crate::Random;

/// Exponential back-off with jitter, as client-go's reflectors use it.
///
/// ```
/// use std::time::Duration;
/// use kubewright::{Backoff, Random};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(4)).jitter(0.0);
/// let random = Random::seeded(1);
/// let waits: Vec<_> = (0..4).map(|_| backoff.next(&random).as_secs()).collect();
/// assert_eq!(waits, [1, 2, 4, 4]);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    factor: f64,
    jitter: f64,
    reset_after: Duration,
    current: Duration,
    last: Option<Instant>,
}

impl Backoff {
    /// Creates a back-off from `first` to `longest`: each wait is twice the one before plus up to 100 %
    /// jitter, and the first wait is used again after two minutes without a failure.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            factor: 2.0,
            jitter: 1.0,
            reset_after: Duration::from_mins(2),
            current: first,
            last: None,
        }
    }

    /// The default back-off of reflectors: 800 ms to 30 s, doubling, with up to 100 % jitter.
    pub fn reflector() -> Self {
        Self::new(Duration::from_millis(800), Duration::from_secs(30))
    }

    /// Adds up to this fraction of the wait at random, so that clients that fail together do not retry
    /// together.
    #[must_use]
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.max(0.0);
        self
    }

    /// Resets the back-off to the first wait when this much time has passed since the last failure.
    #[must_use]
    pub fn reset_after(mut self, quiet: Duration) -> Self {
        self.reset_after = quiet;
        self
    }

    /// Returns the wait after the failure that just happened.
    pub fn next(&mut self, random: &Random) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > self.reset_after) {
            self.current = self.first;
        }
        self.last = Some(now);
        let wait = self.current.mul_f64(1.0 + self.jitter * random.unit());
        self.current = self.current.mul_f64(self.factor).min(self.longest);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_longest_and_reset_after_a_quiet_period() {
        let mut backoff = Backoff::reflector().jitter(0.0);
        let random = Random::seeded(1);
        let waits: Vec<u128> = (0..8).map(|_| backoff.next(&random).as_millis()).collect();
        assert_eq!(waits, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        tokio::time::advance(Duration::from_secs(121)).await;
        assert_eq!(backoff.next(&random).as_millis(), 800);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_adds_up_to_its_fraction() {
        let random = Random::seeded(1);
        for _ in 0..100 {
            let wait = Backoff::reflector().next(&random).as_millis();
            assert!((800..1600).contains(&wait), "{wait}");
        }
    }
}
