//! State of a queue behind its lock: the rules of adding, handing out and finishing keys.
//!
//! A key is in up to three conditions at once. *Ready*: it must be worked on. *In flight*: a worker has it. *Waiting*:
//! a delay is running. Ready and in flight together means parked: the key was added while a worker had it, and goes
//! into the ready order when that worker is done. A key in none of the three is removed.
//!
//! Keys are ordered by the time at which they became ready, not by the time of the operation that notices it: before a key
//! goes into the ready order, all keys that are due go there.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    delays::Delays,
    key::WorkKey,
    meter::{Meter, Reading},
    order::Order,
    slots::{Garbage, IN_FLIGHT, LATEST, READY, SlotId, Slots},
    waiters::{Ticket, Waiters, Wakes},
};

pub(super) struct State<T, O: Order> {
    slots: Slots<T, O::Rank>,
    ready: O,
    /// Keys that are ready and in flight.
    parked: usize,
    in_flight: usize,
    delays: Delays,
    waiters: Waiters,
    shutdown: Shutdown,
    /// Time zero of this queue's clock.
    epoch: Instant,
    meter: Option<Box<Meter>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shutdown {
    /// Keys are added and handed out.
    No,
    /// New keys are dropped; those in the queue are still handed out.
    Begun,
    /// As `Begun`, and a task waits for the keys in flight.
    Draining,
}

/// Options of an addition.
#[derive(Clone, Copy, Default)]
pub(super) struct How<U> {
    pub(super) urgency: U,
    /// In nanoseconds.
    pub(super) delay: u64,
    /// Whether the metrics count it as a retry.
    pub(super) retry: bool,
}

/// Key that is handed out to a worker.
pub(super) struct Taken<T, R> {
    pub(super) slot: SlotId,
    pub(super) key: T,
    pub(super) rank: R,
}

/// Work to do once the queue is unlocked.
pub(super) struct After<T> {
    pub(super) wakes: Wakes,
    pub(super) garbage: Garbage<T>,
}

impl<T> Default for After<T> {
    fn default() -> Self {
        Self { wakes: Wakes::default(), garbage: Garbage::default() }
    }
}

impl<T: WorkKey, O: Order> State<T, O> {
    pub(super) fn new(epoch: Instant, measured: bool) -> Self {
        Self {
            slots: Slots::new(),
            ready: O::default(),
            parked: 0,
            in_flight: 0,
            delays: Delays::default(),
            waiters: Waiters::default(),
            shutdown: Shutdown::No,
            epoch,
            meter: measured.then(Box::default),
        }
    }

    /// Adds a key.
    pub(super) fn add(&mut self, hash: u64, key: T, how: How<O::Urgency>, after: &mut After<T>) {
        if self.shutdown != Shutdown::No {
            after.garbage.push(key);
            return;
        }
        let mut clock = Clock::new(self.epoch);
        self.advance(&mut clock);
        let slot = self.slots.find_or_insert(hash, key, &mut after.garbage);
        self.add_slot(slot, how, &mut clock);
    }

    /// Removes the first ready key for a worker.
    pub(super) fn take(&mut self) -> Option<Taken<T, O::Rank>> {
        let mut clock = Clock::new(self.epoch);
        // In arrival order, a key that is ready comes before all that have become due since.
        if !O::BY_ARRIVAL || self.ready.len() == 0 {
            self.advance(&mut clock);
        }
        let slot = self.ready.pop()?;
        let entry = &mut self.slots[slot];
        if entry.deadline.is_some_and(|deadline| deadline.at <= clock.now()) {
            // It became due while it was ready.
            entry.deadline = None;
            self.invalidate_delay();
        }
        let entry = &mut self.slots[slot];
        entry.marks = IN_FLIGHT;
        self.in_flight += 1;
        let rank = entry.rank;
        if let Some(meter) = &mut self.meter {
            meter.taken(slot, clock.now());
        }
        Some(Taken { slot, key: self.slots.key(slot), rank })
    }

    /// Finishes a key, and adds it again if `again` is given.
    pub(super) fn done(&mut self, slot: SlotId, again: Option<How<O::Urgency>>, after: &mut After<T>) {
        let mut clock = Clock::new(self.epoch);
        let entry = &self.slots[slot];
        if again.is_some() || entry.is(READY) || entry.waits() {
            // It goes behind the keys that became due before now.
            self.advance(&mut clock);
        }
        if let Some(meter) = &mut self.meter {
            meter.done(slot, clock.now());
        }
        if let Some(how) = again
            && self.shutdown == Shutdown::No
        {
            self.add_slot(slot, how, &mut clock);
        }
        if self.slots[slot].is(READY) {
            self.parked -= 1;
            self.ready.push(self.slots[slot].rank, slot);
        }
        self.in_flight -= 1;
        self.slots[slot].marks &= !IN_FLIGHT;
        self.release(slot, after);
    }

    fn release(&mut self, slot: SlotId, after: &mut After<T>) {
        self.slots.release(slot, &mut after.garbage);
        if let Some(meter) = &mut self.meter
            && self.slots.capacity() == 0
        {
            meter.clear_times();
        }
    }

    /// Drops new keys from now on, and those whose delay is running.
    pub(super) fn shut_down(&mut self, how: Shutdown, after: &mut After<T>) {
        self.advance(&mut Clock::new(self.epoch));
        self.shutdown = how;
        self.delays.clear();
        let waiting: Vec<SlotId> =
            self.slots.iter().filter(|(_, slot)| slot.waits()).map(|(id, _)| id).collect();
        for slot in waiting {
            self.slots[slot].deadline = None;
            self.release(slot, after);
        }
        self.waiters.wake_all(&mut after.wakes);
    }

    pub(super) fn shutdown(&self) -> Shutdown {
        self.shutdown
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Registers a waiter. Returns until when it has to sleep if it becomes the timekeeper.
    pub(super) fn wait(&mut self, waker: &std::task::Waker) -> (Ticket, Option<Instant>) {
        let (ticket, until) = self.waiters.wait(waker, self.delays.next());
        (ticket, until.map(|at| self.epoch + Duration::from_nanos(at)))
    }

    /// Removes a waiter.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.waiters.leave(ticket);
    }

    /// Wakes waiters as [`Waiters::update`] says, before the queue is unlocked.
    pub(super) fn update_waiters(&mut self, after: &mut After<T>) {
        if !self.waiters.is_empty() {
            self.waiters.update(self.ready.len(), self.delays.next(), &mut after.wakes);
        }
    }

    /// Makes the keys ready that have become due.
    fn advance(&mut self, clock: &mut Clock) {
        while !self.delays.is_empty() {
            let Self { delays, slots, .. } = self;
            let due = delays.pop_due(clock.now(), |deadline, slot| slots.waits_for(slot, deadline));
            let Some((at, slot)) = due else { break };
            let entry = &mut self.slots[slot];
            entry.deadline = None;
            if O::ONE_PLACE_PER_KEY {
                // Ordered by when it became ready, not by when it was added.
                entry.rank = self.ready.rank(O::urgency(entry.rank));
            }
            self.make_ready(slot, || at);
        }
    }

    fn add_slot(&mut self, slot: SlotId, how: How<O::Urgency>, clock: &mut Clock) {
        if how.retry
            && let Some(meter) = &mut self.meter
        {
            meter.retried();
        }
        let entry = &mut self.slots[slot];
        let has_place = entry.is(READY) || (O::ONE_PLACE_PER_KEY && entry.waits());
        if !has_place || O::is_more_urgent(how.urgency, entry.rank) {
            let old = std::mem::replace(&mut entry.rank, self.ready.rank(how.urgency));
            if entry.marks == READY {
                self.ready.remove(old);
                self.ready.push(entry.rank, slot);
            }
        }
        if how.delay == 0 {
            if O::ONE_PLACE_PER_KEY && entry.waits() {
                entry.deadline = None;
                self.invalidate_delay();
            }
            self.make_ready(slot, || clock.now());
        } else if !(O::ONE_PLACE_PER_KEY && entry.is(READY)) {
            let at = clock.now().saturating_add(how.delay).min(LATEST);
            if entry.deadline.is_none_or(|deadline| at < deadline.at) {
                let deadline = self.delays.push(at, slot);
                if entry.deadline.replace(deadline).is_some() {
                    self.invalidate_delay();
                }
            }
        }
    }

    fn make_ready(&mut self, slot: SlotId, at: impl FnOnce() -> u64) {
        let entry = &mut self.slots[slot];
        if entry.is(READY) {
            return;
        }
        entry.marks |= READY;
        if entry.is(IN_FLIGHT) {
            self.parked += 1;
        } else {
            self.ready.push(entry.rank, slot);
        }
        if let Some(meter) = &mut self.meter {
            meter.added(slot, at());
        }
    }

    fn invalidate_delay(&mut self) {
        let Self { delays, slots, .. } = self;
        delays.invalidate(|deadline, slot| slots.waits_for(slot, deadline));
    }

    /// Number of keys that could be handed out now.
    pub(super) fn len(&mut self) -> usize {
        self.advance(&mut Clock::new(self.epoch));
        if O::ONE_PLACE_PER_KEY { self.ready.len() + self.parked } else { self.ready.len() }
    }

    /// Numbers for the metrics, as of now.
    pub(super) fn read_meter(&mut self) -> Option<Reading> {
        let mut clock = Clock::new(self.epoch);
        self.advance(&mut clock);
        let Self { slots, ready, parked, meter, .. } = self;
        let in_flight = slots.iter().filter(|(_, slot)| slot.is(IN_FLIGHT)).map(|(id, _)| id);
        meter.as_ref().map(|meter| meter.read(ready.len() + *parked, in_flight, clock.now()))
    }
}

/// The queue's clock during one operation, read at most once and only if needed.
struct Clock {
    epoch: Instant,
    now: Option<u64>,
}

impl Clock {
    fn new(epoch: Instant) -> Self {
        Self { epoch, now: None }
    }

    fn now(&mut self) -> u64 {
        let epoch = self.epoch;
        *self.now.get_or_insert_with(|| nanos_since(epoch))
    }
}

fn nanos_since(epoch: Instant) -> u64 {
    saturating_nanos(Instant::now().saturating_duration_since(epoch))
}

pub(super) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
