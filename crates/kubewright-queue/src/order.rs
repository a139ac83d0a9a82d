//! In which order ready keys are handed out.

use std::{cmp::Reverse, collections::BTreeMap, collections::VecDeque};

use super::slots::SlotId;

/// The ready keys and who is next. Keys that are in flight are never in here.
pub trait Order: Default + Send + 'static {
    /// What whoever adds a key says about its place.
    type Urgency: Copy + Default + Send;
    /// The place itself.
    type Rank: Copy + Default + Send;

    /// Whether a key is either waiting for its time or ready, never both, as in controller-runtime's priority
    /// queue: adding a waiting key makes it ready now. In client-go's queues the delay goes on beside it and brings
    /// the key once more.
    const ONE_PLACE_PER_KEY: bool;

    /// Whether keys are handed out in the order in which they became ready, so that none that is ready can be
    /// overtaken by one that becomes so.
    const BY_ARRIVAL: bool;

    /// A new place at the end of those of the same urgency.
    fn rank(&mut self, urgency: Self::Urgency) -> Self::Rank;
    /// The urgency of a place.
    fn urgency(rank: Self::Rank) -> Self::Urgency;
    /// Whether a key at `rank` moves forward when it is added again with this urgency.
    fn is_more_urgent(urgency: Self::Urgency, rank: Self::Rank) -> bool;
    /// Puts a key in.
    fn push(&mut self, rank: Self::Rank, slot: SlotId);
    /// Takes a key out of the middle.
    fn remove(&mut self, rank: Self::Rank);
    /// The key that is next.
    fn first(&self) -> Option<SlotId>;
    /// Takes out the key that is next.
    fn pop(&mut self) -> Option<SlotId>;
    /// How many keys could be handed out.
    fn len(&self) -> usize;
}

/// First in, first out.
#[derive(Default)]
pub struct Fifo {
    ring: VecDeque<SlotId>,
}

/// Above this capacity an emptied ring is given back instead of kept for the next burst.
const KEEP: usize = 4096;

impl Order for Fifo {
    type Urgency = ();
    type Rank = ();

    const ONE_PLACE_PER_KEY: bool = false;
    const BY_ARRIVAL: bool = true;

    fn rank(&mut self, (): ()) {}

    fn urgency((): ()) {}

    fn is_more_urgent((): (), (): ()) -> bool {
        false
    }

    fn push(&mut self, (): (), slot: SlotId) {
        self.ring.push_back(slot);
    }

    fn remove(&mut self, (): ()) {}

    fn first(&self) -> Option<SlotId> {
        self.ring.front().copied()
    }

    fn pop(&mut self) -> Option<SlotId> {
        let first = self.ring.pop_front();
        if self.ring.is_empty() && self.ring.capacity() > KEEP {
            self.ring = VecDeque::new();
        }
        first
    }

    fn len(&self) -> usize {
        self.ring.len()
    }
}

/// Higher priority first; first in, first out among equals.
#[derive(Default)]
pub struct ByPriority {
    ready: BTreeMap<Place, SlotId>,
    next: u64,
}

/// Sorts by falling priority, then by arrival.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    priority: Reverse<i32>,
    arrival: u64,
}

impl Order for ByPriority {
    type Urgency = i32;
    type Rank = Place;

    const ONE_PLACE_PER_KEY: bool = true;
    const BY_ARRIVAL: bool = false;

    fn rank(&mut self, priority: i32) -> Place {
        let arrival = self.next;
        self.next += 1;
        Place { priority: Reverse(priority), arrival }
    }

    fn urgency(rank: Place) -> i32 {
        rank.priority.0
    }

    fn is_more_urgent(priority: i32, rank: Place) -> bool {
        priority > rank.priority.0
    }

    fn push(&mut self, rank: Place, slot: SlotId) {
        self.ready.insert(rank, slot);
    }

    fn remove(&mut self, rank: Place) {
        self.ready.remove(&rank);
    }

    fn first(&self) -> Option<SlotId> {
        self.ready.first_key_value().map(|(_, slot)| *slot)
    }

    fn pop(&mut self) -> Option<SlotId> {
        self.ready.pop_first().map(|(_, slot)| slot)
    }

    fn len(&self) -> usize {
        self.ready.len()
    }
}
