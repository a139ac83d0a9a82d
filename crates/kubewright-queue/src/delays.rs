//! Keys whose delay has not ended, by time.
//!
//! A key whose delay is shortened gets a second entry, and one that no longer waits leaves its entry behind: removing it would
//! need a back reference per key. An entry is valid as long as the slot holds the same [`Deadline`]; invalid entries are
//! dropped when they are due, or all at once when they are the majority.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::slots::SlotId;

/// Number of invalid entries below which they are never removed before they are due.
const COMPACT_FROM: usize = 64;

/// End of a delay. The number makes it unique, and keeps equal times in the order in which they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Deadline {
    /// Nanoseconds of the queue's clock.
    pub(super) at: u64,
    number: u64,
}

type Entry = Reverse<(Deadline, SlotId)>;

#[derive(Default)]
pub(super) struct Delays {
    /// Valid and invalid entries.
    entries: BinaryHeap<Entry>,
    added: u64,
    invalid: usize,
}

impl Delays {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry; the slot has to hold the returned deadline.
    pub(super) fn push(&mut self, at: u64, slot: SlotId) -> Deadline {
        let deadline = Deadline { at, number: self.added };
        self.added += 1;
        self.entries.push(Reverse((deadline, slot)));
        deadline
    }

    /// The earliest time, possibly of an invalid entry: a worker that sleeps until then sleeps again.
    pub(super) fn next(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse((deadline, _))| deadline.at)
    }

    /// Removes the earliest valid entry that is due.
    pub(super) fn pop_due(
        &mut self,
        now: u64,
        is_valid: impl Fn(Deadline, SlotId) -> bool,
    ) -> Option<(u64, SlotId)> {
        while self.next().is_some_and(|at| at <= now) {
            let Reverse((deadline, slot)) = self.entries.pop()?;
            if is_valid(deadline, slot) {
                return Some((deadline.at, slot));
            }
            self.invalid = self.invalid.saturating_sub(1);
        }
        None
    }

    /// Notes that an entry became invalid.
    pub(super) fn invalidate(&mut self, is_valid: impl Fn(Deadline, SlotId) -> bool) {
        self.invalid += 1;
        if self.invalid > COMPACT_FROM && self.invalid > self.entries.len() / 2 {
            self.entries.retain(|Reverse((deadline, slot))| is_valid(*deadline, *slot));
            self.invalid = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_arrival() {
        let mut delays = Delays::default();
        for slot in 0..1000 {
            delays.push(10_000_000_000, slot);
        }
        for slot in 0..1000 {
            assert_eq!(delays.pop_due(u64::MAX, |_, _| true), Some((10_000_000_000, slot)));
        }
        assert!(delays.is_empty());
    }

    #[test]
    fn invalid_entries_are_removed_when_they_are_the_majority() {
        let mut delays = Delays::default();
        let last = 1_000_000_000;
        for moved in 0..100_000 {
            delays.push(last - moved, 7);
            if moved > 0 {
                delays.invalidate(|deadline, _| deadline.at == last - moved);
            }
        }
        assert!(delays.entries.len() <= 2 * COMPACT_FROM + 2, "{} entries for one key", delays.entries.len());
        assert_eq!(
            delays.pop_due(last, |deadline, _| deadline.at == last - 99_999),
            Some((last - 99_999, 7))
        );
        assert_eq!(delays.pop_due(last, |_, _| false), None);
        assert!(delays.is_empty());
    }

    #[test]
    fn the_latest_time_can_be_waited_for() {
        let mut delays = Delays::default();
        delays.push(u64::MAX - 1, 1);
        delays.push(0, 0);
        assert_eq!(delays.next(), Some(0));
        assert_eq!(delays.pop_due(5, |_, _| true), Some((0, 0)));
        assert_eq!(delays.next(), Some(u64::MAX - 1));
        assert_eq!(delays.pop_due(u64::MAX - 2, |_, _| true), None);
        assert_eq!(delays.pop_due(u64::MAX, |_, _| true), Some((u64::MAX - 1, 1)));
    }

    /// Delays of all sizes, from nanoseconds to years.
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
        /// Against a sorted map; a slot's earliest time is the valid one, as in the queue.
        #[test]
        fn keys_come_out_by_time_and_then_by_arrival(steps in prop::collection::vec(step(), 1..300)) {
            let mut delays = Delays::default();
            let mut by_slot = BTreeMap::<SlotId, Deadline>::new();
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
                                delays.invalidate(|deadline, slot| by_slot.get(&slot) == Some(&deadline));
                            }
                        }
                    }
                    Step::Wait(delay) => {
                        now = now.saturating_add(delay);
                        while let Some(entry) = sorted.first_entry() && entry.key().0 <= now {
                            let expected = (entry.key().0, *entry.get());
                            prop_assert!(delays.next().is_some_and(|next| next <= expected.0));
                            let due = delays.pop_due(now, |deadline, slot| by_slot.get(&slot) == Some(&deadline));
                            prop_assert_eq!(due, Some(expected));
                            by_slot.remove(&expected.1);
                            entry.remove();
                        }
                        prop_assert_eq!(delays.pop_due(now, |deadline, slot| by_slot.get(&slot) == Some(&deadline)), None);
                    }
                }
            }
            prop_assert!(delays.is_empty());
        }
    }
}
