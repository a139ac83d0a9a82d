//! Storage of the keys of a queue, each once: a slab of slots and a hash table from key to slot.
//!
//! The other parts of the queue (ready order, delays, guards) refer to a key by its slot number, so they move four bytes and
//! never hash or compare the key again.

use std::{
    hash::{BuildHasher, Hash},
    ops::{Index, IndexMut},
};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::delays::Deadline;

/// Number of a slot.
pub(super) type SlotId = u32;

/// The slot's key must be worked on: it is in the ready order, or parked until the worker that has it is done.
pub(super) const READY: u8 = 1;
/// A worker has the key.
pub(super) const IN_FLIGHT: u8 = 2;

/// Latest time that a delay can end.
pub(super) const LATEST: u64 = u64::MAX - 1;

/// Number of slots above which an emptied slab is freed instead of kept for the next burst.
const KEEP: usize = 4096;

/// State of one key.
pub(super) struct Slot<T, R> {
    /// `None` only while the slot is free.
    key: Option<T>,
    hash: u64,
    /// End of the delay that is running.
    pub(super) deadline: Option<Deadline>,
    /// Place in the ready order, for orders that have places.
    pub(super) rank: R,
    /// [`READY`] and [`IN_FLIGHT`].
    pub(super) marks: u8,
}

impl<T, R> Slot<T, R> {
    pub(super) fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn waits(&self) -> bool {
        self.deadline.is_some()
    }

    fn in_use(&self) -> bool {
        self.marks != 0 || self.waits()
    }
}

/// Slab and table.
pub(super) struct Slots<T, R> {
    table: HashTable<SlotId>,
    slab: Vec<Slot<T, R>>,
    free: Vec<SlotId>,
}

/// Hashes a key, before anything is locked. The seed is fixed, so that equal runs behave equally.
pub(super) fn hash_of<T: Hash>(key: &T) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}

impl<T: Clone + Eq, R: Copy + Default> Slots<T, R> {
    pub(super) fn new() -> Self {
        Self { table: HashTable::new(), slab: Vec::new(), free: Vec::new() }
    }

    /// Returns the slot of a key. A key that is stored already goes to the garbage.
    pub(super) fn find_or_insert(&mut self, hash: u64, key: T, garbage: &mut Garbage<T>) -> SlotId {
        let Self { table, slab, free } = self;
        if let Some(id) = table.find(hash, |id| slab[*id as usize].key.as_ref() == Some(&key)) {
            garbage.push(key);
            return *id;
        }
        let slot = Slot { key: Some(key), hash, deadline: None, rank: R::default(), marks: 0 };
        let id = if let Some(id) = free.pop() {
            slab[id as usize] = slot;
            id
        } else {
            slab.push(slot);
            SlotId::try_from(slab.len() - 1).expect("fewer than four billion keys fit in memory")
        };
        table.insert_unique(hash, id, |id| slab[*id as usize].hash);
        id
    }

    /// Returns a copy of the key for a worker.
    pub(super) fn key(&self, id: SlotId) -> T {
        self[id].key.clone().expect("a slot that is ready has its key")
    }

    /// Frees the slot if its key is neither ready, in flight nor waiting.
    pub(super) fn release(&mut self, id: SlotId, garbage: &mut Garbage<T>) {
        let slot = &mut self.slab[id as usize];
        if slot.in_use() {
            return;
        }
        let Some(key) = slot.key.take() else { return };
        garbage.push(key);
        if let Ok(entry) = self.table.find_entry(slot.hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
        if self.table.is_empty() && self.slab.len() > KEEP {
            *self = Self::new();
        }
    }

    /// Whether the slot waits for this deadline. A slot that is free, or was freed with its slab, does not.
    pub(super) fn waits_for(&self, id: SlotId, deadline: Deadline) -> bool {
        self.slab.get(id as usize).is_some_and(|slot| slot.deadline == Some(deadline))
    }

    /// Number of slots, free ones included.
    pub(super) fn capacity(&self) -> usize {
        self.slab.len()
    }

    /// Slots that have a key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot<T, R>)> {
        (0..).zip(&self.slab).filter(|(_, slot)| slot.key.is_some())
    }
}

impl<T, R> Index<SlotId> for Slots<T, R> {
    type Output = Slot<T, R>;

    fn index(&self, id: SlotId) -> &Slot<T, R> {
        &self.slab[id as usize]
    }
}

impl<T, R> IndexMut<SlotId> for Slots<T, R> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<T, R> {
        &mut self.slab[id as usize]
    }
}

/// Keys to drop once the queue is unlocked, because dropping a key runs the caller's code. An operation drops at most one key,
/// but for shutting down.
pub(super) struct Garbage<T>(smallvec::SmallVec<[T; 1]>);

impl<T> Garbage<T> {
    pub(super) fn push(&mut self, key: T) {
        self.0.push(key);
    }
}

impl<T> Default for Garbage<T> {
    fn default() -> Self {
        Self(smallvec::SmallVec::new())
    }
}
