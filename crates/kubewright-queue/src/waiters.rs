//! Workers that wait for a key, and who of them keeps the time.
//!
//! No task belongs to a queue. While keys are waiting for their time, one of the waiting workers sits in the
//! timekeeper's seat: its `get` also sleeps until the earliest time. Whoever leaves the seat (with a key, or because
//! its `get` was dropped) is replaced by the next waiting worker. When nobody waits, nobody needs the time: the next
//! `get` looks at the clock itself.
//!
//! As many workers are woken as there are keys. Waking only the first and letting each wake the next would be cheaper
//! when the work is tiny, but a woken task can sit in a slot of its thread from which no other thread may steal it, and
//! the chain would stand still while that thread computes.

use std::{collections::VecDeque, task::Waker};

/// Names one waiting `get`. Later ones have higher numbers.
pub(super) type Ticket = u64;

struct Waiter {
    ticket: Ticket,
    waker: Waker,
}

struct Timekeeper {
    waiter: Waiter,
    /// What the timekeeper sleeps until.
    until: u64,
}

#[derive(Default)]
pub(super) struct Waiters {
    /// In the order in which they came, which is also the order of their tickets.
    idle: VecDeque<Waiter>,
    timekeeper: Option<Timekeeper>,
    /// Workers that were woken for a key and have not come for it yet.
    summoned: usize,
    next: Ticket,
}

impl Waiters {
    /// Whether nobody could be woken.
    pub(super) fn nobody_waits(&self) -> bool {
        self.idle.is_empty() && self.timekeeper.is_none()
    }

    /// Waits. With a time to keep and the seat free, the newcomer takes the seat; the answer says until when it sleeps.
    pub(super) fn wait(&mut self, waker: &Waker, earliest: Option<u64>) -> (Ticket, Option<u64>) {
        let ticket = self.next;
        self.next += 1;
        let waiter = Waiter { ticket, waker: waker.clone() };
        match earliest {
            Some(until) if self.timekeeper.is_none() => {
                self.timekeeper = Some(Timekeeper { waiter, until });
                (ticket, earliest)
            }
            _ => {
                self.idle.push_back(waiter);
                (ticket, None)
            }
        }
    }

    /// A `get` is polled again or dropped: it no longer waits.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        if self.timekeeper.as_ref().is_some_and(|keeper| keeper.waiter.ticket == ticket) {
            self.timekeeper = None;
        } else if let Ok(at) = self.idle.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            self.idle.remove(at);
        } else {
            self.summoned -= 1;
        }
    }

    /// Wakes as many workers as there are keys, no more, and fills the timekeeper's seat.
    ///
    /// After this, either every key has a worker that is on its way, or nobody waits; and if a time is to be kept
    /// and somebody waits, somebody keeps it.
    pub(super) fn settle(&mut self, ready: usize, earliest: Option<u64>, wakes: &mut Wakes) {
        while self.summoned < ready {
            let Some(waiter) = self.idle.pop_front().or_else(|| self.timekeeper.take().map(|k| k.waiter))
            else {
                return;
            };
            self.summoned += 1;
            wakes.push(waiter.waker);
        }
        if self.nobody_waits() {
            return;
        }
        let Some(earliest) = earliest else { return };
        match &mut self.timekeeper {
            Some(keeper) if keeper.until <= earliest => {}
            Some(keeper) => {
                keeper.until = earliest;
                wakes.push(keeper.waiter.waker.clone());
            }
            seat @ None => {
                let Some(waiter) = self.idle.pop_front() else { return };
                wakes.push(waiter.waker.clone());
                *seat = Some(Timekeeper { waiter, until: earliest });
            }
        }
    }

    /// Wakes everybody.
    pub(super) fn dismiss(&mut self, wakes: &mut Wakes) {
        let keeper = self.timekeeper.take().map(|keeper| keeper.waiter);
        for waiter in self.idle.drain(..).chain(keeper) {
            self.summoned += 1;
            wakes.push(waiter.waker);
        }
    }
}

/// Wakers to call once the queue is unlocked.
#[derive(Default)]
pub(super) struct Wakes {
    /// Almost always there is at most one: it needs no allocation.
    first: Option<Waker>,
    rest: Vec<Waker>,
}

impl Wakes {
    fn push(&mut self, waker: Waker) {
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.rest.push(waker);
        }
    }

    pub(super) fn wake(self) {
        if let Some(waker) = self.first {
            waker.wake();
            self.rest.into_iter().for_each(Waker::wake);
        }
    }
}
