//! What all handles, guards and waiting workers of one queue share.

use std::sync::{Arc, Weak};

use tokio::{sync::Notify, time::Instant};

use super::{
    key::WorkKey,
    kind::{Kind, Urgency},
    limiter::RateLimiter,
    lock::Lock,
    meter::Reading,
    metrics::{Probe, QueueMetrics},
    slots::hash_of,
    state::{After, How, State},
};

pub(super) struct Shared<T: WorkKey, K: Kind> {
    state: Lock<State<T, K::Order>>,
    pub(super) limiter: Box<dyn RateLimiter<T>>,
    /// Somebody may be waiting for the last key in flight.
    pub(super) drained: Notify,
    name: Option<Arc<str>>,
    /// Where the numbers of this queue are to be found, for a queue that is measured.
    metrics: Option<QueueMetrics>,
}

impl<T: WorkKey, K: Kind> Shared<T, K> {
    pub(super) fn new(
        name: Option<Arc<str>>,
        metrics: Option<QueueMetrics>,
        limiter: Box<dyn RateLimiter<T>>,
    ) -> Arc<Self> {
        let measured = name.is_some() && metrics.is_some();
        let shared = Arc::new(Self {
            state: Lock::new(State::new(Instant::now(), measured)),
            limiter,
            drained: Notify::new(),
            name,
            metrics,
        });
        if let (Some(name), Some(metrics)) = (&shared.name, &shared.metrics) {
            let probe: Weak<dyn Probe> = Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Probe>));
            metrics.attach(name, probe);
        }
        shared
    }

    /// The name for logs.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("unnamed")
    }

    /// Adds a key.
    pub(super) fn add(&self, key: T, how: How<Urgency<K>>) {
        let (hash, copy) = (hash_of(&key), key.clone());
        self.locked(|state, after| state.add(hash, key, copy, how, after));
    }

    /// Does something with the queue locked, and what follows from it once it is unlocked again.
    pub(super) fn locked<R>(&self, act: impl FnOnce(&mut State<T, K::Order>, &mut After<T>) -> R) -> R {
        let mut after = After::default();
        let mut state = self.state.lock();
        let result = act(&mut state, &mut after);
        state.settle(&mut after);
        drop(state);
        after.wakes.wake();
        result
    }
}

impl<T: WorkKey, K: Kind> Probe for Shared<T, K> {
    fn read(&self) -> Reading {
        self.locked(State::read_meter).unwrap_or_default()
    }
}

impl<T: WorkKey, K: Kind> Drop for Shared<T, K> {
    fn drop(&mut self) {
        if let (Some(name), Some(metrics)) = (&self.name, &self.metrics) {
            metrics.retire(name, &self.read().totals);
        }
    }
}
