//! Source of the server's time.
//!
//! Every timestamp that the server writes (creation, deletion, conditions, tokens) comes from one [`Clock`], so that a
//! test or a replayed run controls the time. Timers (watch timeouts, bookmarks) use `tokio::time`, which tests
//! pause.

use std::sync::Arc;

use jiff::Timestamp;

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that follows `tokio::time` from a fixed epoch: in a paused runtime it moves only when the test moves it.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    epoch: Timestamp,
    started: tokio::time::Instant,
}

impl VirtualClock {
    /// Creates a clock that shows `epoch` now. Must be called inside a tokio runtime.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, started: tokio::time::Instant::now() }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.epoch.checked_add(passed).unwrap_or(self.epoch)
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// `2006-01-02T15:04:05Z`, the form of `metav1.Time`.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2006-01-02T15:04:05.000000Z`, the form of `metav1.MicroTime`.
pub fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_machinery_writes_them() {
        let time: Timestamp = "2026-08-01T09:05:03.120004Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-08-01T09:05:03Z");
        assert_eq!(micros(time), "2026-08-01T09:05:03.120004Z");
    }

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_with_the_paused_runtime() {
        let clock = VirtualClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::advance(std::time::Duration::from_secs(90)).await;
        assert_eq!(seconds(clock.now()), "2026-01-01T00:01:30Z");
    }
}
