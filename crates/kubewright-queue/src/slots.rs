//! Every key that a queue knows, stored once: a slab of slots and a hash table from key to slot.
//!
//! All other parts of the queue (ready order, delays, guards) speak of a key by its slot number, so they move four bytes
//! and never hash or compare the key again.

use std::{
    hash::{BuildHasher, Hash},
    ops::{Index, IndexMut},
};

use foldhash::fast::FixedState;

use super::{delays::Time, table::Table};

/// The number of a slot.
pub(super) type SlotId = u32;

/// The slot's key must be worked on: it is in the ready order, or parked until the worker that has it is done.
pub(super) const READY: u8 = 1;
/// A worker has the key.
pub(super) const IN_FLIGHT: u8 = 2;

/// No delay is running.
const NOT_WAITING: u64 = u64::MAX;

/// The latest time that a delay can end.
pub(super) const LATEST: u64 = NOT_WAITING - 1;

/// Above this many slots an emptied slab is given back instead of kept for the next burst.
const KEEP: usize = 4096;

/// What the queue knows about one key.
pub(super) struct Slot<T, R> {
    /// `None` only while the slot is free.
    key: Option<T>,
    /// What the next worker gets.
    copy: Option<T>,
    /// When a delay ends, in nanoseconds of the queue's clock, or [`NOT_WAITING`].
    waits_until: u64,
    /// The place in the ready order, for orders that have places.
    pub(super) rank: R,
    pub(super) hash: u32,
    /// Which of the entries for that time is ours.
    wait_tag: u16,
    /// [`READY`] and [`IN_FLIGHT`].
    pub(super) marks: u8,
}

impl<T, R> Slot<T, R> {
    pub(super) fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn waits(&self) -> bool {
        self.waits_until != NOT_WAITING
    }

    /// When the delay ends; after everything else if there is none.
    pub(super) fn waits_until(&self) -> u64 {
        self.waits_until
    }

    pub(super) fn wait(&mut self, time: Time) {
        self.waits_until = time.at;
        self.wait_tag = time.tag;
    }

    pub(super) fn stop_waiting(&mut self) {
        self.waits_until = NOT_WAITING;
    }

    /// A copy for the next worker, given back if there is one already.
    pub(super) fn offer_copy(&mut self, key: T) -> Option<T> {
        if self.copy.is_some() {
            return Some(key);
        }
        self.copy = Some(key);
        None
    }

    /// The copy for a worker. If a delay is running as well, another worker will need one.
    pub(super) fn take_copy(&mut self) -> T
    where
        T: Clone,
    {
        let copy = if self.waits() { self.copy.clone() } else { self.copy.take() };
        copy.expect("a slot that is ready or waiting has its copy")
    }

    fn in_use(&self) -> bool {
        self.marks != 0 || self.waits()
    }
}

/// The slab and its table.
pub(super) struct Slots<T, R> {
    table: Table,
    slab: Vec<Slot<T, R>>,
    free: Vec<SlotId>,
    /// Slots that nobody needed any more when they were last looked at. They are still in the table: taking them out one
    /// by one would wait for memory each time, in a batch the waits overlap.
    unused: Vec<SlotId>,
}

/// The hash of a key, computed before anything is locked. The seed is fixed, so that two runs do the same.
pub(super) fn hash_of<T: Hash>(key: &T) -> u32 {
    let hash = FixedState::with_seed(0).hash_one(key);
    // foldhash is good in all bits; half of them are plenty for a table that also compares keys.
    (hash >> 32) as u32
}

impl<T: Clone + Eq, R: Copy + Default> Slots<T, R> {
    pub(super) fn new() -> Self {
        Self { table: Table::default(), slab: Vec::new(), free: Vec::new(), unused: Vec::new() }
    }

    /// Prepares for a batch of [`find_or_insert`](Self::find_or_insert).
    pub(super) fn expect(&self, hashes: impl Iterator<Item = u32>) {
        self.table.touch(hashes);
    }

    /// The slot of a key. What is not needed of `key` and `copy` goes to the garbage.
    ///
    /// The copy is for the worker that takes the key next. Whoever adds a key makes it, because the memory behind the key
    /// is then in the cache; when the key is handed out it may be cold, and everybody would wait for it behind the lock.
    pub(super) fn find_or_insert(&mut self, hash: u32, key: T, copy: T, garbage: &mut Garbage<T>) -> SlotId {
        let same = |slot: SlotId| self.slab[slot as usize].key.as_ref().is_some_and(|known| *known == key);
        if let Some(id) = self.table.find(hash, same) {
            garbage.throw(Some(key));
            garbage.throw(self[id].offer_copy(copy));
            return id;
        }
        let id = if let Some(id) = self.free.pop() {
            let slot = &mut self[id];
            slot.key = Some(key);
            slot.copy = Some(copy);
            slot.hash = hash;
            id
        } else {
            let id = SlotId::try_from(self.slab.len()).expect("fewer than four billion keys fit in memory");
            self.slab.push(Slot {
                key: Some(key),
                copy: Some(copy),
                waits_until: NOT_WAITING,
                rank: R::default(),
                hash,
                wait_tag: 0,
                marks: 0,
            });
            id
        };
        self.table.insert(hash, id);
        id
    }

    /// Something no longer needs the slot; perhaps nothing does. [`sweep`](Self::sweep) will see.
    pub(super) fn release(&mut self, id: SlotId) {
        if !self[id].in_use() {
            self.unused.push(id);
        }
    }

    /// How many slots wait to be swept.
    pub(super) fn unused(&self) -> usize {
        self.unused.len()
    }

    /// Forgets the keys of unused slots.
    pub(super) fn sweep(&mut self, garbage: &mut Garbage<T>) {
        let mut unused = std::mem::take(&mut self.unused);
        self.table.touch(unused.iter().map(|id| self[*id].hash));
        for id in unused.drain(..) {
            let slot = &mut self.slab[id as usize];
            // It may have come into use again, or be in the list twice.
            if slot.in_use() || slot.key.is_none() {
                continue;
            }
            garbage.throw(slot.key.take());
            garbage.throw(slot.copy.take());
            self.table.remove(slot.hash, id);
            self.free.push(id);
        }
        self.unused = unused;
        if self.table.is_empty() && self.slab.len() > KEEP {
            *self = Self::new();
        }
    }

    /// Whether the slot waits for this very time; one that is free, or gone with a slab that was given back, does not.
    pub(super) fn waits_for(&self, id: SlotId, time: Time) -> bool {
        self.slab
            .get(id as usize)
            .is_some_and(|slot| slot.waits_until == time.at && slot.wait_tag == time.tag)
    }

    /// How many slots there are, free ones included.
    pub(super) fn capacity(&self) -> usize {
        self.slab.len()
    }

    /// The slots that have a key.
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

/// Keys to drop once the queue is unlocked: what happens when a key is dropped is somebody else's code.
pub(super) struct Garbage<T> {
    /// Often there is at most one: it needs no allocation.
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Garbage<T> {
    pub(super) fn throw(&mut self, key: Option<T>) {
        if self.first.is_none() {
            self.first = key;
        } else {
            self.rest.extend(key);
        }
    }
}

impl<T> Default for Garbage<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}
