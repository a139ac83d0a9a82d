//! Keys that were added and are not sorted in yet.
//!
//! While there is a backlog, nobody needs a new key at once. So keys are collected and sorted in together: what sorting
//! in waits for is memory, and in a batch the waits overlap. Nobody can tell the difference, because whatever depends on
//! a key that has not been sorted in has it sorted in first.

use super::state::How;

/// How many are collected.
const FULL: usize = 32;

/// A key that somebody added.
pub(super) struct Arrival<T, U> {
    pub(super) key: T,
    /// For the worker that takes it, see [`Slots::find_or_insert`](super::slots::Slots::find_or_insert).
    pub(super) copy: T,
    pub(super) hash: u32,
    pub(super) how: How<U>,
    /// When it was added, if that matters.
    pub(super) at: Option<u64>,
}

pub(super) struct Arrivals<T, U> {
    list: Vec<Arrival<T, U>>,
    /// A few bits of each hash in the list: whether one may be there is asked much more often than it is.
    hashes: [u64; 4],
}

impl<T, U> Arrivals<T, U> {
    pub(super) fn new() -> Self {
        Self { list: Vec::new(), hashes: [0; 4] }
    }

    pub(super) fn push(&mut self, arrival: Arrival<T, U>) {
        let (word, bit) = place(arrival.hash);
        self.hashes[word] |= bit;
        self.list.push(arrival);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= FULL
    }

    /// Whether a key with this hash may be among them.
    pub(super) fn may_have(&self, hash: u32) -> bool {
        let (word, bit) = place(hash);
        self.hashes[word] & bit != 0
    }

    /// Takes the list out; give it back empty for the next ones.
    pub(super) fn take(&mut self) -> Vec<Arrival<T, U>> {
        self.hashes = [0; 4];
        std::mem::take(&mut self.list)
    }

    pub(super) fn give_back(&mut self, empty: Vec<Arrival<T, U>>) {
        self.list = empty;
    }
}

/// The word and the bit in it for a hash. The table takes the lowest bits; the highest are as good.
fn place(hash: u32) -> (usize, u64) {
    ((hash >> 30) as usize, 1 << (hash >> 24 & 63))
}
