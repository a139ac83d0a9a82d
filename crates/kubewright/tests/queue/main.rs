//! Work queues, by behaviour.

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

/// Returns the item that is ready now, if there is one, without waiting.
fn now<T: WorkKey, K: Kind>(queue: &Queue<T, K>) -> Option<Item<T, K>> {
    // Without the cooperative budget of the task, which a test that polls often would exhaust.
    tokio::task::unconstrained(queue.get()).now_or_never().flatten()
}

/// Takes and finishes all keys that are ready now.
fn drain<T: WorkKey, K: Kind>(queue: &Queue<T, K>) -> Vec<T> {
    std::iter::from_fn(|| now(queue).map(|item| item.key().clone())).collect()
}
