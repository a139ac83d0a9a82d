//! Observed Lease records and the timestamps written into them.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::LeaseSpec,
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::{SignedDuration, Timestamp},
};
use tokio::time::Instant;

use kubewright_core::Clock;

/// The last observed record, and when it was first observed on the local monotonic clock.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) spec: LeaseSpec,
    since: Instant,
}

impl Observation {
    pub(super) fn new(spec: LeaseSpec) -> Self {
        Self { spec, since: Instant::now() }
    }

    /// Observes the current record. The time restarts when it has changed.
    pub(super) fn observe(observed: &mut Option<Self>, spec: &LeaseSpec) {
        if observed.as_ref().is_none_or(|observed| observed.spec != *spec) {
            *observed = Some(Self::new(spec.clone()));
        }
    }

    /// Whether the holder may still lead. `default` replaces an invalid lease duration.
    pub(super) fn is_held(&self, default: Duration) -> bool {
        holder(&self.spec).is_some() && self.since.elapsed() < duration(&self.spec, default)
    }
}

/// The identity of the holder; an empty one is none.
pub(super) fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|name| !name.is_empty())
}

/// The lease duration of the holder. A Lease without a positive duration was not written by a candidate;
/// waiting for the default is the safe reading (client-go does not wait). A long duration is respected,
/// however long.
fn duration(spec: &LeaseSpec, default: Duration) -> Duration {
    match spec.lease_duration_seconds.map(u64::try_from) {
        Some(Ok(seconds)) if seconds > 0 => Duration::from_secs(seconds),
        _ => default,
    }
}

/// Timestamps that only move forward.
///
/// Others see that the holder is alive by the record changing, and `renewTime` is all that changes in a
/// renewal. A clock that stands still or is set back must not make the holder look dead.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: Option<Timestamp>,
}

impl Times {
    /// Returns the current time in microseconds, as a Lease has it, later than every time returned before.
    pub(super) fn next(&mut self, clock: &Clock) -> MicroTime {
        let now = clock.now();
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        let next = match self.last {
            Some(last) if now <= last => {
                last.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MIN)
            }
            _ => now,
        };
        self.last = Some(next);
        MicroTime(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Duration = Duration::from_secs(15);

    fn spec(holder: Option<&str>, seconds: Option<i32>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: seconds,
            ..LeaseSpec::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_is_held_for_its_duration_from_when_it_was_observed() {
        let observed = Observation::new(spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_millis(19_999)).await;
        assert!(observed.is_held(DEFAULT));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!observed.is_held(DEFAULT));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_changed_record_is_held_again() {
        let mut observed = None;
        Observation::observe(&mut observed, &spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_secs(19)).await;
        Observation::observe(&mut observed, &spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!observed.as_ref().unwrap().is_held(DEFAULT));
        let renewed = LeaseSpec { renew_time: Some(MicroTime(Timestamp::MIN)), ..spec(Some("a"), Some(20)) };
        Observation::observe(&mut observed, &renewed);
        assert!(observed.as_ref().unwrap().is_held(DEFAULT));
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_durations_are_replaced_by_the_default() {
        for invalid in [None, Some(0), Some(-1), Some(i32::MIN)] {
            let observed = Observation::new(spec(Some("a"), invalid));
            tokio::time::advance(Duration::from_secs(14)).await;
            assert!(observed.is_held(DEFAULT), "{invalid:?}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!observed.is_held(DEFAULT), "{invalid:?}");
        }
        let century = Observation::new(spec(Some("a"), Some(i32::MAX)));
        tokio::time::advance(Duration::from_hours(24 * 365)).await;
        assert!(century.is_held(DEFAULT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_or_empty_holder_holds_nothing() {
        assert!(!Observation::new(spec(None, Some(60))).is_held(DEFAULT));
        assert!(!Observation::new(spec(Some(""), Some(60))).is_held(DEFAULT));
    }

    #[test]
    fn times_grow_while_the_clock_stands_still_and_when_it_is_set_back() {
        let clock = |text: &str| {
            let time: Timestamp = text.parse().unwrap();
            Clock::new(move || time)
        };
        let mut times = Times::default();
        let given: Vec<MicroTime> = [
            "2026-01-01T00:00:00.0000019Z",
            "2026-01-01T00:00:00.000001Z",
            "2025-01-01T00:00:00Z",
            "2026-01-01T00:00:01Z",
        ]
        .map(|text| times.next(&clock(text)))
        .into();
        assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "{given:?}");
        assert_eq!(given[0].0.to_string(), "2026-01-01T00:00:00.000001Z");
    }
}
