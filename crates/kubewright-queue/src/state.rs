//! What a queue is while it is locked: the rules of adding, handing out and finishing keys.
//!
//! A key is in up to three conditions at once. *Ready*: it must be worked on. *In flight*: a worker has it. *Waiting*:
//! a delay is running. Ready and in flight together means parked: the key was added while a worker had it, and goes
//! into the ready order when that worker is done. A key in none of the three is forgotten.
//!
//! Keys are ordered by the time at which they became ready, not by the time at which somebody looked: whoever puts a
//! key into the ready order first puts in those that have become due.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    arrivals::{Arrival, Arrivals},
    delays::Delays,
    key::WorkKey,
    meter::{Meter, Reading},
    order::Order,
    slots::{Garbage, IN_FLIGHT, LATEST, READY, SlotId, Slots},
    waiters::{Ticket, Waiters, Wakes},
};

/// How many finished keys are forgotten together: enough that waits for memory overlap, and few enough that nobody waits
/// long for the lock.
const BATCH: usize = 32;

pub(super) struct State<T, O: Order> {
    arrivals: Arrivals<T, O::Urgency>,
    slots: Slots<T, O::Rank>,
    ready: O,
    /// Keys that are ready and in flight.
    parked: usize,
    in_flight: usize,
    delays: Delays,
    waiters: Waiters,
    shutdown: Shutdown,
    /// One of the arrivals has a delay, so the time of those after it matters.
    timed: bool,
    /// Time zero of this queue's clock.
    epoch: Instant,
    meter: Option<Box<Meter>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shutdown {
    /// Keys come and go.
    No,
    /// No new keys; what is there is still handed out.
    Begun,
    /// The same, and somebody waits for what is in flight.
    Draining,
}

/// How a key is to be added.
#[derive(Clone, Copy, Default)]
pub(super) struct How<U> {
    pub(super) urgency: U,
    /// In nanoseconds.
    pub(super) delay: u64,
    /// Whether this counts as a retry in the metrics.
    pub(super) retry: bool,
}

/// What a worker takes away.
pub(super) struct Taken<T, R> {
    pub(super) slot: SlotId,
    pub(super) key: T,
    pub(super) rank: R,
}

/// What is to be done once the queue is unlocked.
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
            arrivals: Arrivals::new(),
            slots: Slots::new(),
            ready: O::default(),
            parked: 0,
            in_flight: 0,
            delays: Delays::default(),
            waiters: Waiters::default(),
            shutdown: Shutdown::No,
            timed: false,
            epoch,
            meter: measured.then(Box::default),
        }
    }

    /// Adds a key; `copy` is for the worker that takes it.
    pub(super) fn add(&mut self, hash: u32, key: T, copy: T, how: How<O::Urgency>, after: &mut After<T>) {
        if self.shutdown != Shutdown::No {
            after.garbage.throw(Some(key));
            after.garbage.throw(Some(copy));
            return;
        }
        // Delays make the order depend on the time, and so do the metrics.
        let timed = how.delay > 0 || !self.delays.is_empty() || self.meter.is_some() || self.timed;
        self.timed = timed;
        let at = timed.then(|| nanos_since(self.epoch));
        self.arrivals.push(Arrival { key, copy, hash, how, at });
        let backlog = self.ready.len() > 0 && self.waiters.nobody_waits();
        if !backlog || self.arrivals.is_full() {
            self.sort_in(after);
        }
    }

    /// Sorts in the keys that were added.
    fn sort_in(&mut self, after: &mut After<T>) {
        if self.arrivals.is_empty() {
            return;
        }
        let mut arrivals = self.arrivals.take();
        self.slots.expect(arrivals.iter().map(|arrival| arrival.hash));
        for Arrival { key, copy, hash, how, at } in arrivals.drain(..) {
            let mut clock = Clock { epoch: self.epoch, now: at };
            if at.is_some() {
                self.advance(&mut clock);
            }
            let slot = self.slots.find_or_insert(hash, key, copy, &mut after.garbage);
            self.add_slot(slot, how, &mut clock);
        }
        self.arrivals.give_back(arrivals);
        self.timed = false;
    }

    /// The next key, if one is ready.
    pub(super) fn take(&mut self, after: &mut After<T>) -> Option<Taken<T, O::Rank>> {
        let mut clock = Clock::new(self.epoch);
        // With one line for all, what is ready came before what has been added or become due since.
        if !O::BY_ARRIVAL || self.ready.len() == 0 {
            self.catch_up(&mut clock, after);
        }
        if self.arrivals.may_have(self.slots[self.ready.first()?].hash) {
            // The key may have been added again before now.
            self.sort_in(after);
        }
        let slot = self.ready.pop()?;
        let entry = &mut self.slots[slot];
        if entry.waits() && entry.waits_until() <= clock.now() {
            // It became due while it was ready.
            entry.stop_waiting();
            self.outdate_delay();
        }
        let entry = &mut self.slots[slot];
        let key = entry.take_copy();
        entry.marks = IN_FLIGHT;
        self.in_flight += 1;
        let rank = entry.rank;
        if let Some(meter) = &mut self.meter {
            meter.taken(slot, clock.now());
        }
        Some(Taken { slot, key, rank })
    }

    /// The worker is done with the key, and wants it back in the way that `again` says.
    pub(super) fn done(&mut self, slot: SlotId, again: Option<(T, How<O::Urgency>)>, after: &mut After<T>) {
        let mut clock = Clock::new(self.epoch);
        let entry = &self.slots[slot];
        let comes_back = again.is_some() || entry.is(READY) || entry.waits();
        if comes_back || self.arrivals.may_have(entry.hash) {
            // Behind what came before now, and perhaps it is among that itself.
            self.catch_up(&mut clock, after);
        }
        if let Some(meter) = &mut self.meter {
            meter.done(slot, clock.now());
        }
        if let Some((copy, how)) = again {
            if self.shutdown == Shutdown::No {
                after.garbage.throw(self.slots[slot].offer_copy(copy));
                self.add_slot(slot, how, &mut clock);
            } else {
                after.garbage.throw(Some(copy));
            }
        }
        if self.slots[slot].is(READY) {
            self.parked -= 1;
            self.ready.push(self.slots[slot].rank, slot);
        }
        self.in_flight -= 1;
        self.slots[slot].marks &= !IN_FLIGHT;
        self.slots.release(slot);
        // With nothing left to do, nothing outlives its work; under load a few keys do for a moment.
        if self.slots.unused() >= BATCH || self.ready.len() == 0 {
            self.sweep(after);
        }
    }

    fn sweep(&mut self, after: &mut After<T>) {
        self.slots.sweep(&mut after.garbage);
        if let Some(meter) = &mut self.meter
            && self.slots.capacity() == 0
        {
            meter.slots_are_gone();
        }
    }

    /// No new keys from now on, and those that wait for their time will not come.
    pub(super) fn shut_down(&mut self, how: Shutdown, after: &mut After<T>) {
        self.catch_up(&mut Clock::new(self.epoch), after);
        self.shutdown = how;
        self.delays.clear();
        let waiting: Vec<SlotId> =
            self.slots.iter().filter(|(_, slot)| slot.waits()).map(|(id, _)| id).collect();
        for slot in waiting {
            self.slots[slot].stop_waiting();
            self.slots.release(slot);
        }
        self.sweep(after);
        self.waiters.dismiss(&mut after.wakes);
    }

    pub(super) fn shutdown(&self) -> Shutdown {
        self.shutdown
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Waits for a key. If the newcomer has to keep the time, the answer says until when it sleeps.
    pub(super) fn wait(&mut self, waker: &std::task::Waker) -> (Ticket, Option<Instant>) {
        let (ticket, until) = self.waiters.wait(waker, self.delays.next());
        (ticket, until.map(|at| self.epoch + Duration::from_nanos(at)))
    }

    /// No longer waits.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.waiters.leave(ticket);
    }

    /// Restores what must hold whenever the queue is unlocked: see [`Waiters::settle`].
    pub(super) fn settle(&mut self, after: &mut After<T>) {
        if !self.waiters.nobody_waits() {
            self.waiters.settle(self.ready.len(), self.delays.next(), &mut after.wakes);
        }
    }

    /// Sorts in what was added and makes ready what has become due, in the order of their times.
    fn catch_up(&mut self, clock: &mut Clock, after: &mut After<T>) {
        self.sort_in(after);
        self.advance(clock);
    }

    /// Makes ready what has become due.
    fn advance(&mut self, clock: &mut Clock) {
        while !self.delays.is_empty() {
            let Self { delays, slots, .. } = self;
            let due = delays.pop_due(clock.now(), |time, slot| slots.waits_for(slot, time));
            let Some((at, slot)) = due else { break };
            let entry = &mut self.slots[slot];
            entry.stop_waiting();
            if O::ONE_PLACE_PER_KEY {
                // By the time of becoming ready, not of having been added.
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
                entry.stop_waiting();
                self.outdate_delay();
            }
            self.make_ready(slot, || clock.now());
        } else if !(O::ONE_PLACE_PER_KEY && entry.is(READY)) {
            let at = clock.now().saturating_add(how.delay).min(LATEST);
            if at < entry.waits_until() {
                let waited = entry.waits();
                entry.wait(self.delays.push(at, slot));
                if waited {
                    self.outdate_delay();
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

    fn outdate_delay(&mut self) {
        let Self { delays, slots, .. } = self;
        delays.outdate(|time, slot| slots.waits_for(slot, time));
    }

    /// Keys that could be handed out now.
    pub(super) fn len(&mut self, after: &mut After<T>) -> usize {
        self.catch_up(&mut Clock::new(self.epoch), after);
        if O::ONE_PLACE_PER_KEY { self.ready.len() + self.parked } else { self.ready.len() }
    }

    /// The numbers for the metrics, as of now.
    pub(super) fn read_meter(&mut self, after: &mut After<T>) -> Option<Reading> {
        let mut clock = Clock::new(self.epoch);
        self.catch_up(&mut clock, after);
        let Self { slots, ready, parked, meter, .. } = self;
        let in_flight = slots.iter().filter(|(_, slot)| slot.is(IN_FLIGHT)).map(|(id, _)| id);
        meter.as_ref().map(|meter| meter.read(ready.len() + *parked, in_flight, clock.now()))
    }
}

/// The queue's clock during one operation: read at most once, and not at all if nobody asks.
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
