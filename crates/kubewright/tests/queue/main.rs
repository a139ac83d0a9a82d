//! The work queues, by behaviour.

mod cancelling;
mod delaying;
mod interleaving;
mod logging;
mod measuring;
mod prioritising;
mod retrying;
mod shutting_down;
mod stress;
mod taking_turns;

use futures::FutureExt;
use kubewright::queue::{Item, Kind, Queue, WorkKey};

/// The item that is ready now, if there is one. Nothing else may have to happen first.
fn now<T: WorkKey, K: Kind>(queue: &Queue<T, K>) -> Option<Item<T, K>> {
    // Not subject to the budget of the task, or a test that asks often enough would be told to yield.
    tokio::task::unconstrained(queue.get()).now_or_never().flatten()
}

/// Takes and finishes everything that is ready now.
fn drain<T: WorkKey, K: Kind>(queue: &Queue<T, K>) -> Vec<T> {
    std::iter::from_fn(|| now(queue).map(|item| item.key().clone())).collect()
}
