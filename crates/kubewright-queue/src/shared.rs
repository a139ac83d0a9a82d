//! State that the handles, guards and waiters of one queue share.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{
    key::WorkKey,
    kind::{Kind, Urgency},
    limiter::RateLimiter,
    meter::Reading,
    metrics::{Probe, QueueMetrics},
    slots::hash_of,
    state::{After, How, State},
};

pub(super) struct Shared<T: WorkKey, K: Kind> {
    state: Mutex<State<T, K::Order>>,
    pub(super) limiter: Box<dyn RateLimiter<T>>,
    /// Notified when the last key in flight is done.
    pub(super) drained: Notify,
    name: Option<Arc<str>>,
    /// Metrics that the queue is attached to, if it is measured.
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
            state: Mutex::new(State::new(Instant::now(), measured)),
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
        let hash = hash_of(&key);
        self.locked(|state, after| state.add(hash, key, how, after));
    }

    /// Calls `act` with the queue locked; wakes waiters and drops keys once it is unlocked.
    pub(super) fn locked<R>(&self, act: impl FnOnce(&mut State<T, K::Order>, &mut After<T>) -> R) -> R {
        let mut after = After::default();
        let mut state = self.state.lock();
        let result = act(&mut state, &mut after);
        state.update_waiters(&mut after);
        drop(state);
        after.wakes.wake();
        result
    }
}

impl<T: WorkKey, K: Kind> Probe for Shared<T, K> {
    fn read(&self) -> Reading {
        self.locked(|state, _| state.read_meter()).unwrap_or_default()
    }
}

impl<T: WorkKey, K: Kind> Drop for Shared<T, K> {
    fn drop(&mut self) {
        if let (Some(name), Some(metrics)) = (&self.name, &self.metrics) {
            metrics.retire(name, &self.read().totals);
        }
    }
}
