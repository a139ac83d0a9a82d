//! What a Lease says, and what we make of it.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::LeaseSpec,
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::{SignedDuration, Timestamp},
};
use tokio::time::Instant;

use kubewright_core::Clock;

/// The last record that was seen, and when it was first seen so: by our own clock, the only one we trust.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) spec: LeaseSpec,
    since: Instant,
}

impl Observation {
    pub(super) fn new(spec: LeaseSpec) -> Self {
        Self { spec, since: Instant::now() }
    }

    /// Takes note of the record as it is now. The time starts over when it has changed.
    pub(super) fn see(seen: &mut Option<Self>, spec: &LeaseSpec) {
        if seen.as_ref().is_none_or(|seen| seen.spec != *spec) {
            *seen = Some(Self::new(spec.clone()));
        }
    }

    /// Whether the holder may still be at work. `ours` stands in for a duration that makes no sense.
    pub(super) fn is_held(&self, ours: Duration) -> bool {
        holder(&self.spec).is_some() && self.since.elapsed() < duration(&self.spec, ours)
    }
}

/// Whoever holds the lease. An empty name is nobody.
pub(super) fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|name| !name.is_empty())
}

/// How long the holder asks not to be disturbed. A Lease without a duration, or with none that is positive, was not
/// written by a candidate; waiting as long as for one of ours is the careful reading (client-go: not at all). A long one
/// is respected, however long: the other may mean it.
fn duration(spec: &LeaseSpec, ours: Duration) -> Duration {
    match spec.lease_duration_seconds.map(u64::try_from) {
        Some(Ok(seconds)) if seconds > 0 => Duration::from_secs(seconds),
        _ => ours,
    }
}

/// Times that only move forward.
///
/// Others see that we are alive by the record changing, and `renewTime` is all that changes in a renewal. A clock that
/// stands still, or is set back to what it showed at the last renewal, must not make us look dead.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: Option<Timestamp>,
}

impl Times {
    /// The present, as a Lease can hold it: in microseconds, and later than every time that was given out before.
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

    const OURS: Duration = Duration::from_secs(15);

    fn spec(holder: Option<&str>, seconds: Option<i32>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: seconds,
            ..LeaseSpec::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_is_held_for_as_long_as_it_says_from_when_we_saw_it() {
        let seen = Observation::new(spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_millis(19_999)).await;
        assert!(seen.is_held(OURS));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!seen.is_held(OURS));
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_changes_is_held_anew_and_one_that_does_not_is_not() {
        let mut seen = None;
        Observation::see(&mut seen, &spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_secs(19)).await;
        Observation::see(&mut seen, &spec(Some("a"), Some(20)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!seen.as_ref().unwrap().is_held(OURS));
        let renewed = LeaseSpec { renew_time: Some(MicroTime(Timestamp::MIN)), ..spec(Some("a"), Some(20)) };
        Observation::see(&mut seen, &renewed);
        assert!(seen.as_ref().unwrap().is_held(OURS));
    }

    #[tokio::test(start_paused = true)]
    async fn durations_that_make_no_sense_are_read_with_care() {
        for nonsense in [None, Some(0), Some(-1), Some(i32::MIN)] {
            let seen = Observation::new(spec(Some("a"), nonsense));
            tokio::time::advance(Duration::from_secs(14)).await;
            assert!(seen.is_held(OURS), "{nonsense:?}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!seen.is_held(OURS), "{nonsense:?}");
        }
        let century = Observation::new(spec(Some("a"), Some(i32::MAX)));
        tokio::time::advance(Duration::from_hours(24 * 365)).await;
        assert!(century.is_held(OURS));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_and_an_empty_name_hold_nothing() {
        assert!(!Observation::new(spec(None, Some(60))).is_held(OURS));
        assert!(!Observation::new(spec(Some(""), Some(60))).is_held(OURS));
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
