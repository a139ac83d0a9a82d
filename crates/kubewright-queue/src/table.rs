//! From the hash of a key to its slot.
//!
//! A plain table with linear probing, one machine word per entry. It exists because of what a queue does with it: a key
//! is put in once, found perhaps a few times, and taken out by its slot number, and with many keys each of these steps
//! waits for memory and little else. Here a step touches one cache line, where a table that keeps its tags apart touches
//! two; and a whole batch of keys can be [touched](Table::touch) before it is worked on, so that the waits overlap.

use std::hint::black_box;

use super::slots::SlotId;

/// No entry. Slots are stored plus one, so that no entry is zero.
const EMPTY: u64 = 0;

/// The smallest table that is not empty.
const SMALLEST: usize = 16;

#[derive(Default)]
pub(super) struct Table {
    /// The hash in the upper half, the slot plus one in the lower. The length is zero or a power of two.
    entries: Vec<u64>,
    len: usize,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Loads the cache lines of all these hashes, whose waits overlap because nothing depends on them.
    pub(super) fn touch(&self, hashes: impl Iterator<Item = u32>) {
        if !self.entries.is_empty() {
            let sum = hashes.fold(0, |sum: u64, hash| sum ^ self.entries[self.home(hash)]);
            black_box(sum);
        }
    }

    /// The slot with this hash for which `is_it` holds.
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(SlotId) -> bool) -> Option<SlotId> {
        self.position(hash, is_it).map(|at| slot(self.entries[at]))
    }

    /// Puts in a slot that is not in here.
    pub(super) fn insert(&mut self, hash: u32, slot: SlotId) {
        if self.len >= self.entries.len() / 8 * 5 {
            self.grow();
        }
        self.put(u64::from(hash) << 32 | (u64::from(slot) + 1));
        self.len += 1;
    }

    /// Takes out a slot.
    pub(super) fn remove(&mut self, hash: u32, id: SlotId) {
        let Some(mut gap) = self.position(hash, |slot| slot == id) else { return };
        self.len -= 1;
        let mut next = gap;
        loop {
            next = self.after(next);
            let entry = self.entries[next];
            if entry == EMPTY {
                break;
            }
            // An entry may move into the gap if the gap is not before its home, seen around the end of the table.
            let home = self.home(hash_of(entry));
            let mask = self.entries.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(gap) & mask {
                self.entries[gap] = entry;
                gap = next;
            }
        }
        self.entries[gap] = EMPTY;
    }

    fn position(&self, hash: u32, is_it: impl Fn(SlotId) -> bool) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        loop {
            let entry = self.entries[at];
            if entry == EMPTY {
                return None;
            }
            if hash_of(entry) == hash && is_it(slot(entry)) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn grow(&mut self) {
        let larger = (self.entries.len() * 2).max(SMALLEST);
        let entries = std::mem::replace(&mut self.entries, vec![EMPTY; larger]);
        entries.into_iter().filter(|entry| *entry != EMPTY).for_each(|entry| self.put(entry));
    }

    fn put(&mut self, entry: u64) {
        let mut at = self.home(hash_of(entry));
        while self.entries[at] != EMPTY {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }
}

fn hash_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[allow(clippy::cast_possible_truncation)] // the lower half is cut out on purpose
fn slot(entry: u64) -> SlotId {
    (entry as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(SlotId, u32),
        Remove(SlotId),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few different hashes, some of them around the end of the table: long chains that wrap.
        let hash =
            prop_oneof![0_u32..4, Just(u32::MAX), any::<u32>(), (0_u32..16).prop_map(|h| h << 28 | 15)];
        prop_oneof![
            (0_u32..40, hash).prop_map(|(slot, hash)| Step::Insert(slot, hash)),
            (0_u32..40).prop_map(Step::Remove)
        ]
    }

    proptest! {
        #[test]
        fn what_was_put_in_and_not_taken_out_is_found(steps in prop::collection::vec(step(), 1..200)) {
            let mut table = Table::default();
            let mut known = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(slot, hash) => {
                        if let Some(old) = known.insert(slot, hash) {
                            table.remove(old, slot);
                        }
                        table.insert(hash, slot);
                    }
                    Step::Remove(slot) => {
                        if let Some(hash) = known.remove(&slot) {
                            table.remove(hash, slot);
                        } else {
                            table.remove(0, slot);
                        }
                    }
                }
                prop_assert_eq!(table.len, known.len());
                prop_assert_eq!(table.is_empty(), known.is_empty());
                for slot in 0..40 {
                    let expected = known.get(&slot).map(|_| slot);
                    let hash = known.get(&slot).copied().unwrap_or(0);
                    prop_assert_eq!(table.find(hash, |other| other == slot), expected);
                }
            }
        }
    }

    #[test]
    fn a_million_entries_come_and_go() {
        let mut table = Table::default();
        let hash = |slot: u32| slot.wrapping_mul(2_654_435_761);
        for slot in 0..1_000_000 {
            table.insert(hash(slot), slot);
        }
        for slot in (0..1_000_000).rev() {
            assert_eq!(table.find(hash(slot), |other| other == slot), Some(slot));
            table.remove(hash(slot), slot);
        }
        assert!(table.is_empty());
        assert!(table.entries.iter().all(|entry| *entry == EMPTY));
    }
}
