//! The time of day that a test or a replay can decide.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
    jiff::{SignedDuration, Timestamp},
};
use tokio::time::Instant;

/// What time it is. Clones tell the same time.
///
/// Delays and time-outs run on `tokio::time`; this clock is for what is written into objects: conditions, leases, events.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use kubewright::Clock;
///
/// let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()); // for tests: follows tokio's time
/// tokio::time::sleep(Duration::from_secs(60)).await;
/// assert_eq!(clock.now().to_string(), "2030-01-01T00:01:00Z");
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// None is the system's clock.
    virtual_time: Option<(Timestamp, Instant)>,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that shows this time now and goes on with tokio's time, paused or not.
    pub fn starting_at(time: Timestamp) -> Self {
        Self { virtual_time: Some((time, Instant::now())) }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match &self.virtual_time {
            None => Timestamp::now(),
            Some((start, since)) => {
                let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The time as objects have it, in seconds.
    pub fn time(&self) -> Time {
        let now = self.now();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }

    /// The time as leases and events have it, in microseconds.
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(self.now())
    }
}
