//! Future of the next key.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep_until},
};

use super::{item::Item, key::WorkKey, kind::Kind, state::Shutdown, waiters::Ticket, work_queue::Queue};

/// Future returned by [`Queue::get`].
///
/// It may be dropped at any time: the key that it was woken for goes to the next waiter. While it waits it may also be the
/// timekeeper for delayed keys, so poll it or drop it; do not keep it without polling.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Get<'q, T: WorkKey, K: Kind> {
    queue: &'q Queue<T, K>,
    /// Registration as a waiter.
    ticket: Option<Ticket>,
    /// Allocated when it becomes the timekeeper.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<'q, T: WorkKey, K: Kind> Get<'q, T, K> {
    pub(super) fn new(queue: &'q Queue<T, K>) -> Self {
        Self { queue, ticket: None, sleep: None }
    }

    /// Takes a key, or registers as a waiter.
    fn try_take(&mut self, cx: &Context<'_>) -> Attempt<T, K> {
        let shared = self.queue.shared();
        shared.locked(|state, _| {
            if let Some(ticket) = self.ticket.take() {
                state.leave(ticket);
            }
            if let Some(taken) = state.take() {
                return Attempt::Done(Some(Item::new(Arc::clone(shared), taken)));
            }
            if state.shutdown() != Shutdown::No {
                return Attempt::Done(None);
            }
            let (ticket, until) = state.wait(cx.waker());
            self.ticket = Some(ticket);
            until.map_or(Attempt::Wait, Attempt::SleepUntil)
        })
    }
}

enum Attempt<T: WorkKey, K: Kind> {
    Done(Option<Item<T, K>>),
    Wait,
    SleepUntil(Instant),
}

impl<T: WorkKey, K: Kind> Future for Get<'_, T, K> {
    type Output = Option<Item<T, K>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Cooperates with the runtime: a worker that always finds a key would otherwise never yield.
        let budget = ready!(coop::poll_proceed(cx));
        loop {
            match self.try_take(cx) {
                Attempt::Done(item) => {
                    budget.made_progress();
                    return Poll::Ready(item);
                }
                Attempt::Wait => return Poll::Pending,
                Attempt::SleepUntil(at) => {
                    let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
                    if sleep.deadline() != at {
                        sleep.as_mut().reset(at);
                    }
                    // The queue is unlocked here; an earlier deadline wakes this task by its registered waker.
                    ready!(sleep.as_mut().poll(cx));
                }
            }
        }
    }
}

impl<T: WorkKey, K: Kind> Drop for Get<'_, T, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.queue.shared().locked(|state, _| state.leave(ticket));
        }
    }
}

impl<T: WorkKey, K: Kind> fmt::Debug for Get<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("waiting", &self.ticket.is_some()).finish_non_exhaustive()
    }
}
