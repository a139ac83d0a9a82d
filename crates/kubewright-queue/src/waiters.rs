//! Waiters of a queue, one of which is the timekeeper.
//!
//! A queue has no task of its own. While delays are running, one of the waiters is the timekeeper: its `get` also sleeps until
//! the earliest deadline. When it leaves (with a key, or because its `get` was dropped) the next waiter becomes the
//! timekeeper. Without waiters no timer is needed: the next `get` reads the clock itself.
//!
//! As many waiters are woken as there are keys. Waking only the first and letting each wake the next would be cheaper
//! when the work is tiny, but tokio keeps a woken task in a slot of its thread from which no other thread may steal it, and
//! the chain would stop while that thread computes.

use std::{collections::VecDeque, task::Waker};

/// Identifies a waiting `get`. Later ones have higher numbers.
pub(super) type Ticket = u64;

struct Waiter {
    ticket: Ticket,
    waker: Waker,
}

struct Timekeeper {
    waiter: Waiter,
    /// End of its sleep.
    until: u64,
}

#[derive(Default)]
pub(super) struct Waiters {
    /// In the order in which they came, which is also the order of their tickets.
    idle: VecDeque<Waiter>,
    timekeeper: Option<Timekeeper>,
    /// Number of waiters that were woken for a key and have not been polled yet.
    woken: usize,
    next: Ticket,
}

impl Waiters {
    /// Whether there is no waiter.
    pub(super) fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.timekeeper.is_none()
    }

    /// Adds a waiter. It becomes the timekeeper if there is a deadline and no timekeeper; then the end of its sleep is returned.
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

    /// Removes the waiter of a `get` that is polled again or dropped.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        if self.timekeeper.as_ref().is_some_and(|keeper| keeper.waiter.ticket == ticket) {
            self.timekeeper = None;
        } else if let Ok(at) = self.idle.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            self.idle.remove(at);
        } else {
            self.woken -= 1;
        }
    }

    /// Wakes as many waiters as there are ready keys, and appoints a timekeeper if there is a deadline.
    pub(super) fn update(&mut self, ready: usize, earliest: Option<u64>, wakes: &mut Wakes) {
        while self.woken < ready {
            let Some(waiter) = self.idle.pop_front().or_else(|| self.timekeeper.take().map(|k| k.waiter))
            else {
                return;
            };
            self.woken += 1;
            wakes.push(waiter.waker);
        }
        if self.is_empty() {
            return;
        }
        let Some(earliest) = earliest else { return };
        match &mut self.timekeeper {
            Some(keeper) if keeper.until <= earliest => {}
            Some(keeper) => {
                keeper.until = earliest;
                wakes.push(keeper.waiter.waker.clone());
            }
            none @ None => {
                let Some(waiter) = self.idle.pop_front() else { return };
                wakes.push(waiter.waker.clone());
                *none = Some(Timekeeper { waiter, until: earliest });
            }
        }
    }

    /// Wakes all waiters.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        let keeper = self.timekeeper.take().map(|keeper| keeper.waiter);
        for waiter in self.idle.drain(..).chain(keeper) {
            self.woken += 1;
            wakes.push(waiter.waker);
        }
    }
}

/// Wakers to call once the queue is unlocked.
#[derive(Default)]
pub(super) struct Wakes {
    /// Held without an allocation: there is rarely more than one.
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
