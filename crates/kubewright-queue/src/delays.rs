//! Keys that are waiting for their time, earliest first.
//!
//! A heap alone would do, and did: with a million keys in it, taking the first one out misses the cache at every step
//! down. But time only moves forward: nothing is ever put before the present, so all but the next moment can stay
//! unsorted. The *near* keys, those of the present quarter of a millisecond, are in a heap that is small enough to stay
//! in the cache. The *far* ones lie in buckets. Their times are split into digits of six bits, and a key lies in the
//! bucket of the highest digit in which its time differs from the present: close keys in fine buckets, remote ones in
//! coarse buckets. When a bucket's time has come, its keys move to finer ones or into the heap. Each key moves a few
//! times at most, always along memory that is read and written in order.
//!
//! A key whose time moves forward gets a second entry, and one that no longer waits leaves its entry behind; finding it
//! would need a back reference per key. The slot says which entry counts: the one with the slot's own [`Time`].

use std::{cmp::Reverse, collections::BinaryHeap};

use super::slots::SlotId;

/// Time is cut into windows of 2^18 ns, 262 µs: below what timers can tell apart.
const WINDOW_BITS: u32 = 18;
const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Fewer stale entries than this are never worth a sweep.
const SWEEP_FROM: usize = 64;

/// When a key's delay ends, and a part of the entry's arrival that tells it from older entries of the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time {
    pub(super) at: u64,
    pub(super) tag: u16,
}

/// Time, then arrival (so that equal times keep the order in which they came), then slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: u64, arrival: u32, slot: SlotId) -> Self {
        Self(u128::from(at) << 64 | u128::from(arrival) << 32 | u128::from(slot))
    }

    #[allow(clippy::cast_possible_truncation)] // the parts of the packed number are cut out on purpose
    fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[allow(clippy::cast_possible_truncation)]
    fn slot(self) -> SlotId {
        self.0 as u32
    }

    #[allow(clippy::cast_possible_truncation)]
    fn time(self) -> Time {
        Time { at: self.at(), tag: (self.0 >> 32) as u16 }
    }
}

#[derive(Default)]
struct Bucket {
    entries: Vec<Entry>,
    /// The earliest time in it, or that of an entry that has become stale.
    first: u64,
}

struct Level {
    /// One bit per bucket that has entries.
    occupied: u64,
    buckets: [Bucket; DIGITS],
}

#[derive(Default)]
pub(super) struct Delays {
    near: BinaryHeap<Reverse<Entry>>,
    /// The present window. Keys in it, or before it, are near; all others are far.
    present: u64,
    /// From fine to coarse, as far as they have been needed.
    far: Vec<Level>,
    arrivals: u32,
    /// All entries, also stale ones.
    len: usize,
    stale: usize,
}

impl Delays {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// From now on only this entry of the slot counts.
    pub(super) fn push(&mut self, at: u64, slot: SlotId) -> Time {
        let entry = Entry::new(at, self.arrivals, slot);
        self.arrivals = self.arrivals.wrapping_add(1);
        self.len += 1;
        self.file(entry);
        entry.time()
    }

    /// The earliest time. It may be that of an entry that no longer counts: whoever sleeps until then sleeps again.
    pub(super) fn next(&self) -> Option<u64> {
        self.near.peek().map(|Reverse(entry)| entry.at()).or_else(|| {
            let (level, digit) = self.first_bucket()?;
            Some(self.far[level].buckets[digit].first)
        })
    }

    /// The next key whose time has come. `counts` tells of an entry whether it still has a meaning.
    pub(super) fn pop_due(
        &mut self,
        now: u64,
        counts: impl Fn(Time, SlotId) -> bool,
    ) -> Option<(u64, SlotId)> {
        while self.next().is_some_and(|at| at <= now) {
            let Some(Reverse(entry)) = self.near.pop() else {
                self.approach();
                continue;
            };
            self.len -= 1;
            if counts(entry.time(), entry.slot()) {
                return Some((entry.at(), entry.slot()));
            }
            self.stale = self.stale.saturating_sub(1);
        }
        None
    }

    /// An entry lost its meaning. `counts` tells of the others whether they still have theirs.
    pub(super) fn outdate(&mut self, counts: impl Fn(Time, SlotId) -> bool) {
        self.stale += 1;
        if self.stale > SWEEP_FROM && self.stale > self.len / 2 {
            let far = self.far.drain(..).flat_map(|level| level.buckets).flat_map(|bucket| bucket.entries);
            let near = self.near.drain().map(|Reverse(entry)| entry);
            let left: Vec<_> = near.chain(far).filter(|entry| counts(entry.time(), entry.slot())).collect();
            self.len = left.len();
            self.stale = 0;
            for entry in left {
                self.file(entry);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn file(&mut self, entry: Entry) {
        let (at, window) = (entry.at(), entry.at() >> WINDOW_BITS);
        if window <= self.present {
            self.near.push(Reverse(entry));
            return;
        }
        let level = (window ^ self.present).ilog2() / DIGIT_BITS;
        #[allow(clippy::cast_possible_truncation)] // six bits fit everywhere
        let digit = (window >> (level * DIGIT_BITS)) as usize & (DIGITS - 1);
        let level = level as usize;
        if level >= self.far.len() {
            self.far.resize_with(level + 1, Level::default);
        }
        let level = &mut self.far[level];
        level.occupied |= 1 << digit;
        let bucket = &mut level.buckets[digit];
        bucket.first = if bucket.entries.is_empty() { at } else { bucket.first.min(at) };
        bucket.entries.push(entry);
    }

    /// Finer buckets come before coarser ones, and lower digits before higher ones.
    fn first_bucket(&self) -> Option<(usize, usize)> {
        self.far
            .iter()
            .enumerate()
            .find(|(_, level)| level.occupied != 0)
            .map(|(at, level)| (at, level.occupied.trailing_zeros() as usize))
    }

    /// Makes the window of the first far key the present one and files its bucket anew.
    ///
    /// All other buckets stay right: from their keys the old and the new present differ in the same highest digit.
    fn approach(&mut self) {
        let Some((level, digit)) = self.first_bucket() else { return };
        let level = &mut self.far[level];
        level.occupied &= !(1 << digit);
        let bucket = std::mem::take(&mut level.buckets[digit]);
        self.present = bucket.first >> WINDOW_BITS;
        for entry in bucket.entries {
            self.file(entry);
        }
    }
}

impl Default for Level {
    fn default() -> Self {
        Self { occupied: 0, buckets: std::array::from_fn(|_| Bucket::default()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_times_keep_the_order_in_which_they_came() {
        let mut delays = Delays::default();
        // Far away at first, so that they move through the buckets together.
        for slot in 0..1000 {
            delays.push(10_000_000_000, slot);
        }
        for slot in 0..1000 {
            assert_eq!(delays.pop_due(u64::MAX, |_, _| true), Some((10_000_000_000, slot)));
        }
        assert!(delays.is_empty());
    }

    #[test]
    fn entries_that_no_longer_count_are_swept_when_they_are_the_majority() {
        let mut delays = Delays::default();
        let last = 1_000_000_000;
        for moved in 0..100_000 {
            delays.push(last - moved, 7);
            if moved > 0 {
                delays.outdate(|time, _| time.at == last - moved);
            }
        }
        assert!(delays.len <= 2 * SWEEP_FROM + 2, "{} entries for one key", delays.len);
        assert_eq!(delays.pop_due(last, |time, _| time.at == last - 99_999), Some((last - 99_999, 7)));
        assert_eq!(delays.pop_due(last, |_, _| false), None);
        assert!(delays.is_empty());
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut delays = Delays::default();
        delays.push(u64::MAX - 1, 1);
        delays.push(0, 0);
        assert_eq!(delays.next(), Some(0));
        assert_eq!(delays.pop_due(5, |_, _| true), Some((0, 0)));
        assert_eq!(delays.next(), Some(u64::MAX - 1));
        assert_eq!(delays.pop_due(u64::MAX - 2, |_, _| true), None);
        assert_eq!(delays.pop_due(u64::MAX, |_, _| true), Some((u64::MAX - 1, 1)));
    }

    /// Delays of all sizes, from within a window to years.
    fn delay() -> impl Strategy<Value = u64> {
        (0_u32..58, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push { delay: u64, slot: SlotId },
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (delay(), 0_u32..16).prop_map(|(delay, slot)| Step::Push { delay, slot }),
            1 => delay().prop_map(Step::Wait),
        ]
    }

    proptest! {
        /// Against a sorted map; a slot's earliest time is the one that counts, as in the queue.
        #[test]
        fn keys_come_out_by_time_and_then_by_arrival(steps in prop::collection::vec(step(), 1..300)) {
            let mut delays = Delays::default();
            let mut by_slot = BTreeMap::<SlotId, Time>::new();
            let mut sorted = BTreeMap::<(u64, usize), SlotId>::new();
            let mut now = 0_u64;
            for (arrival, step) in steps.into_iter().chain([Step::Wait(u64::MAX)]).enumerate() {
                match step {
                    Step::Push { delay, slot } => {
                        let at = now.saturating_add(delay).min(u64::MAX - 1);
                        let before = by_slot.get(&slot).copied();
                        if before.is_none_or(|before| at < before.at) {
                            sorted.retain(|_, other| *other != slot);
                            sorted.insert((at, arrival), slot);
                            by_slot.insert(slot, delays.push(at, slot));
                            if before.is_some() {
                                delays.outdate(|time, slot| by_slot.get(&slot) == Some(&time));
                            }
                        }
                    }
                    Step::Wait(delay) => {
                        now = now.saturating_add(delay);
                        while let Some(entry) = sorted.first_entry() && entry.key().0 <= now {
                            let expected = (entry.key().0, *entry.get());
                            prop_assert!(delays.next().is_some_and(|next| next <= expected.0));
                            let due = delays.pop_due(now, |time, slot| by_slot.get(&slot) == Some(&time));
                            prop_assert_eq!(due, Some(expected));
                            by_slot.remove(&expected.1);
                            entry.remove();
                        }
                        prop_assert_eq!(delays.pop_due(now, |time, slot| by_slot.get(&slot) == Some(&time)), None);
                    }
                }
            }
            prop_assert!(delays.is_empty());
        }
    }
}
