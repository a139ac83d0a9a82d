//! The numbers behind the metrics of one queue, kept under the queue's own lock.
//!
//! The queue is locked anyway when something is worth counting, so these are plain integers: no atomics, no second
//! lock. They become metrics only when somebody scrapes, see [`QueueMetrics`](super::QueueMetrics).

use super::slots::SlotId;

/// One more than the number of bounds: the last bucket has none.
const BUCKETS: usize = 13;

/// client-go's bounds: 10 ns, then times ten, twelve of them.
pub(super) const BOUNDS: [f64; BUCKETS - 1] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// Durations by size.
#[derive(Clone, Copy, Default)]
pub(super) struct Histogram {
    pub(super) buckets: [u64; BUCKETS],
    /// In nanoseconds; wide enough for ever.
    sum: u128,
}

impl Histogram {
    fn observe(&mut self, nanos: u64) {
        // The bounds are powers of ten from 10 ns, and a bound belongs to its own bucket.
        let bucket = nanos.saturating_sub(1).checked_ilog10().unwrap_or(0) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.sum += u128::from(nanos);
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    #[allow(clippy::cast_precision_loss)] // a metric is a float; nanoseconds of a century still fit exactly enough
    pub(super) fn sum_seconds(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.sum += other.sum;
    }
}

/// What only ever grows.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) adds: u64,
    pub(super) retries: u64,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
}

impl Totals {
    pub(super) fn merge(&mut self, other: &Self) {
        self.adds += other.adds;
        self.retries += other.retries;
        self.queue_duration.merge(&other.queue_duration);
        self.work_duration.merge(&other.work_duration);
    }
}

/// All numbers of a queue at one moment.
#[derive(Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) totals: Totals,
    pub(super) depth: usize,
    pub(super) unfinished_nanos: u128,
    pub(super) longest_nanos: u64,
}

#[derive(Clone, Copy, Default)]
struct Times {
    added: u64,
    taken: u64,
}

#[derive(Default)]
pub(super) struct Meter {
    totals: Totals,
    /// By slot.
    times: Vec<Times>,
}

impl Meter {
    pub(super) fn added(&mut self, slot: SlotId, now: u64) {
        self.totals.adds += 1;
        let slot = slot as usize;
        if slot >= self.times.len() {
            self.times.resize(slot + 1, Times::default());
        }
        self.times[slot].added = now;
    }

    pub(super) fn taken(&mut self, slot: SlotId, now: u64) {
        let times = &mut self.times[slot as usize];
        times.taken = now;
        self.totals.queue_duration.observe(now.saturating_sub(times.added));
    }

    pub(super) fn done(&mut self, slot: SlotId, now: u64) {
        let taken = self.times[slot as usize].taken;
        self.totals.work_duration.observe(now.saturating_sub(taken));
    }

    /// The queue has given its memory back; so do we.
    pub(super) fn slots_are_gone(&mut self) {
        self.times = Vec::new();
    }

    pub(super) fn retried(&mut self) {
        self.totals.retries += 1;
    }

    pub(super) fn read(&self, depth: usize, in_flight: impl Iterator<Item = SlotId>, now: u64) -> Reading {
        let mut reading = Reading { totals: self.totals, depth, ..Reading::default() };
        for slot in in_flight {
            let age = now.saturating_sub(self.times[slot as usize].taken);
            reading.unfinished_nanos += u128::from(age);
            reading.longest_nanos = reading.longest_nanos.max(age);
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_bucket_whose_bound_it_does_not_exceed() {
        for (nanos, bucket) in [
            (0, 0),
            (1, 0),
            (10, 0),
            (11, 1),
            (100, 1),
            (101, 2),
            (1_000_000, 5),
            (1_000_001, 6),
            (1_000_000_000_000, 11),
            (1_000_000_000_001, 12),
            (u64::MAX, 12),
        ] {
            let mut histogram = Histogram::default();
            histogram.observe(nanos);
            assert_eq!(histogram.buckets.iter().position(|count| *count == 1), Some(bucket), "{nanos} ns");
        }
    }
}
