//! Guard of a key that a worker processes.

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

/// Key that is handed out to one worker until this guard is dropped.
///
/// Dropping the guard is client-go's `Done`, whether at the end of the loop, by `?`, by a panic, or by cancelling the worker's
/// future. A key that was added meanwhile is then handed out again.
///
/// Items of queues with a limiter can also be finished by:
///
/// | | limiter | the key is added again |
/// |---|---|---|
/// | [`forget`](Item::forget) | cleared | no |
/// | [`retry`](Item::retry) | counts a failure | after the limiter's delay |
/// | [`requeue`](Item::requeue) | counts a failure | after the limiter's delay; no error is logged |
/// | [`requeue_after`](Item::requeue_after) | cleared | after the delay |
/// | [`give_up`](Item::give_up) | cleared | no; the error is logged |
/// | dropped | keeps its count | no |
///
/// Items of a [`WorkQueue`](super::WorkQueue) have no limiter, so this does not compile:
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
    /// Options with which the key is added again when the guard is dropped.
    again: Option<How<Urgency<K>>>,
}

impl<T: WorkKey, K: Kind> Item<T, K> {
    pub(super) fn new(shared: Arc<Shared<T, K>>, taken: Taken<T, Rank<K>>) -> Self {
        let Taken { slot, key, rank } = taken;
        Self { shared, key, slot, rank, again: None }
    }

    /// Returns the key.
    pub fn key(&self) -> &T {
        &self.key
    }
}

impl<T: WorkKey, K: Retrying> Item<T, K> {
    /// Returns how often this key has been retried since it was last forgotten.
    pub fn requeues(&self) -> u32 {
        self.shared.limiter.num_requeues(&self.key)
    }

    /// Finishes the item after success: the failures of the key are forgotten.
    pub fn forget(self) {
        self.shared.limiter.forget(&self.key);
    }

    /// Requeues the key after `delay`. Its failures are forgotten, as with controller-runtime's `RequeueAfter`.
    pub fn requeue_after(mut self, delay: Duration) {
        self.shared.limiter.forget(&self.key);
        self.add_again(delay);
    }

    /// Requeues the key after the limiter's delay, as after a failure, without logging an error.
    pub fn requeue(mut self) {
        let delay = self.shared.limiter.when(&self.key);
        self.add_again(delay);
    }

    fn add_again(&mut self, delay: Duration) {
        let urgency = K::Order::urgency(self.rank);
        self.again = Some(How { urgency, delay: saturating_nanos(delay), retry: true });
    }
}

impl<T: WorkKey + fmt::Debug, K: Retrying> Item<T, K> {
    /// Requeues the key after the limiter's delay, with the same priority, because its work failed.
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
        self.add_again(delay);
    }

    /// Finishes the item after a permanent failure: the error is logged and the failures of the key are forgotten.
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
    /// Returns the priority with which the key was handed out.
    pub fn priority(&self) -> i32 {
        <Prioritised as Behaviour>::Order::urgency(self.rank)
    }
}

impl<T: WorkKey, K: Kind> Drop for Item<T, K> {
    fn drop(&mut self) {
        let drained = self.shared.locked(|state, after| {
            state.done(self.slot, self.again, after);
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
