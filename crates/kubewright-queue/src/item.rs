//! A key in a worker's hands.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use super::{
    key::WorkKey,
    kind::{Behaviour, Kind, Plain, Prioritised, Rank, Retrying, Urgency},
    order::Order,
    shared::Shared,
    slots::SlotId,
    state::{How, Shutdown, Taken, saturating_nanos},
};
use kubewright_core::error::OneLine;

/// A key that a worker has, and nobody else until this guard is gone.
///
/// Dropping the guard is client-go's `Done`, however it comes about: at the end of the loop, by `?`, by a panic, by
/// the worker's future being cancelled. A key that was added meanwhile is handed out again then.
///
/// Items of queues that retry have more to say at the end; each of these finishes the item:
///
/// | | limiter | the key comes back |
/// |---|---|---|
/// | [`forget`](Item::forget) | cleared | no |
/// | [`retry`](Item::retry) | counts a failure | when the limiter says |
/// | [`requeue`](Item::requeue) | counts a failure | when the limiter says; nothing is reported |
/// | [`requeue_after`](Item::requeue_after) | cleared | after the delay |
/// | [`give_up`](Item::give_up) | cleared | no; the error is reported |
/// | dropped | keeps its count | no |
///
/// Items of a [`WorkQueue`](super::WorkQueue) have no limiter to ask, so this does not compile:
///
/// ```compile_fail,E0599
/// # async fn fails(queue: kubewright::queue::WorkQueue<u32>) {
/// queue.get().await.unwrap().retry("failed");
/// # }
/// ```
#[must_use = "dropping an item says that its work is done"]
pub struct Item<T: WorkKey, K: Kind = Plain> {
    shared: Arc<Shared<T, K>>,
    key: T,
    slot: SlotId,
    rank: Rank<K>,
    /// Whether and how the key comes back when the guard goes.
    again: Option<How<Urgency<K>>>,
}

impl<T: WorkKey, K: Kind> Item<T, K> {
    pub(super) fn new(shared: Arc<Shared<T, K>>, taken: Taken<T, Rank<K>>) -> Self {
        let Taken { slot, key, rank } = taken;
        Self { shared, key, slot, rank, again: None }
    }

    /// The key to work on.
    pub fn key(&self) -> &T {
        &self.key
    }
}

impl<T: WorkKey, K: Retrying> Item<T, K> {
    /// How often this key has been retried since it was last forgotten.
    pub fn requeues(&self) -> u32 {
        self.shared.limiter.num_requeues(&self.key)
    }

    /// The work succeeded: the next failure of this key is its first.
    pub fn forget(self) {
        self.shared.limiter.forget(&self.key);
    }

    /// Not finished, and not failed either: come back after `delay`. The failures so far are forgotten, as
    /// controller-runtime does for a `RequeueAfter`.
    pub fn requeue_after(mut self, delay: Duration) {
        self.shared.limiter.forget(&self.key);
        self.come_back(delay);
    }

    /// Not finished, without an error to tell of: the key comes back when the limiter says so, as after a failure.
    pub fn requeue(mut self) {
        let delay = self.shared.limiter.when(&self.key);
        self.come_back(delay);
    }

    fn come_back(&mut self, delay: Duration) {
        let urgency = K::Order::urgency(self.rank);
        self.again = Some(How { urgency, delay: saturating_nanos(delay), retry: true });
    }
}

impl<T: WorkKey + fmt::Debug, K: Retrying> Item<T, K> {
    /// The work failed: the key comes back when the limiter says so, with the priority it had.
    ///
    /// The error is logged as a warning, with its causes.
    pub fn retry(mut self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        let delay = self.shared.limiter.when(&self.key);
        tracing::warn!(
            queue = self.shared.name(),
            key = ?self.key,
            requeues = self.requeues(),
            ?delay,
            error = %OneLine(&*error.into()),
            "work failed and will be retried"
        );
        self.come_back(delay);
    }

    /// The work failed for good: the error is reported and the key forgotten. It comes back only if somebody adds it.
    pub fn give_up(self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        tracing::error!(
            queue = self.shared.name(),
            key = ?self.key,
            requeues = self.requeues(),
            error = %OneLine(&*error.into()),
            "work failed and is given up"
        );
        self.forget();
    }
}

impl<T: WorkKey> Item<T, Prioritised> {
    /// The priority with which the key was handed out.
    pub fn priority(&self) -> i32 {
        <Prioritised as Behaviour>::Order::urgency(self.rank)
    }
}

impl<T: WorkKey, K: Kind> Drop for Item<T, K> {
    fn drop(&mut self) {
        let again = self.again.map(|how| (self.key.clone(), how));
        let drained = self.shared.locked(|state, after| {
            state.done(self.slot, again, after);
            state.shutdown() == Shutdown::Draining && state.in_flight() == 0
        });
        if drained {
            self.shared.drained.notify_waiters();
        }
    }
}

impl<T: WorkKey + fmt::Debug, K: Kind> fmt::Debug for Item<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(&self.key).finish()
    }
}
