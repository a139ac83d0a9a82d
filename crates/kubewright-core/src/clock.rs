//! Wall clock that tests and replays can replace.

use std::{fmt, sync::Arc};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
    jiff::{SignedDuration, Timestamp},
};
use tokio::time::Instant;

/// Wall clock for the timestamps written into objects. Clones show the same time.
///
/// Never used for decisions: time-outs, leases and back-off use [`tokio::time`], which is monotonic.
///
/// ```
/// use kubewright::Clock;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse()?);
/// assert!(clock.now() < Clock::system().now());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Creates a clock that returns what `now` returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Creates a clock that shows `epoch` now and follows [`tokio::time`] from there: with paused time it
    /// moves only when the test advances it. Must be called inside a tokio runtime.
    pub fn starting_at(epoch: Timestamp) -> Self {
        let started = Instant::now();
        Self::new(move || {
            let passed = SignedDuration::try_from(started.elapsed()).unwrap_or_default();
            epoch.checked_add(passed).unwrap_or(epoch)
        })
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Returns the current time in whole seconds, as object metadata has it.
    pub fn time(&self) -> Time {
        let now = self.now();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }

    /// Returns the current time in microseconds, as leases and events have it.
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(self.now())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn starting_at_follows_paused_time() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    }
}
