//! Waiting for the next key.

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

/// The future that [`Queue::get`] returns.
///
/// It may be dropped at any time: a key that was on its way to it, and the wake-up that came with it, go to the next
/// waiting worker. While it waits it may also keep the time for delayed keys, so poll it or drop it; do not leave it
/// lying half awaited.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Get<'q, T: WorkKey, K: Kind> {
    queue: &'q Queue<T, K>,
    /// The place among the waiting workers.
    ticket: Option<Ticket>,
    /// Allocated by the one who keeps the time.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<'q, T: WorkKey, K: Kind> Get<'q, T, K> {
    pub(super) fn new(queue: &'q Queue<T, K>) -> Self {
        Self { queue, ticket: None, sleep: None }
    }

    /// One look at the queue under its lock.
    fn look(&mut self, cx: &Context<'_>) -> Look<T, K> {
        let shared = self.queue.shared();
        shared.locked(|state, after| {
            if let Some(ticket) = self.ticket.take() {
                state.leave(ticket);
            }
            if let Some(taken) = state.take(after) {
                return Look::Done(Some(Item::new(Arc::clone(shared), taken)));
            }
            if state.shutdown() != Shutdown::No {
                return Look::Done(None);
            }
            let (ticket, until) = state.wait(cx.waker());
            self.ticket = Some(ticket);
            until.map_or(Look::Wait, Look::SleepUntil)
        })
    }
}

enum Look<T: WorkKey, K: Kind> {
    Done(Option<Item<T, K>>),
    Wait,
    SleepUntil(Instant),
}

impl<T: WorkKey, K: Kind> Future for Get<'_, T, K> {
    type Output = Option<Item<T, K>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker that always finds a key would otherwise never let go of its thread.
        let budget = ready!(coop::poll_proceed(cx));
        loop {
            match self.look(cx) {
                Look::Done(item) => {
                    budget.made_progress();
                    return Poll::Ready(item);
                }
                Look::Wait => return Poll::Pending,
                Look::SleepUntil(at) => {
                    let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
                    if sleep.deadline() != at {
                        sleep.as_mut().reset(at);
                    }
                    // Unlocked: an earlier time that comes in meanwhile wakes us through the waker we left.
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
