//! Queues that are not the default ones.

use std::{fmt, sync::Arc};

use super::{
    key::WorkKey,
    kind::{Kind, Retrying},
    limiter::RateLimiter,
    metrics::QueueMetrics,
    shared::Shared,
    work_queue::Queue,
};

/// Builds a queue; begin with [`Queue::builder`].
///
/// ```
/// use kubewright::{ObjectKey, queue::{QueueMetrics, RateLimitingQueue, limiter::default_item_limiter}};
///
/// let metrics = QueueMetrics::new();
/// let queue = RateLimitingQueue::<ObjectKey>::builder()
///     .name("ingress-manager")
///     .metrics(&metrics)
///     .limiter(default_item_limiter())
///     .build();
/// # queue.add(ObjectKey::cluster("x"));
/// ```
#[must_use = "a builder does nothing until it builds"]
pub struct QueueBuilder<T: WorkKey, K: Kind> {
    name: Option<Arc<str>>,
    metrics: Option<QueueMetrics>,
    limiter: Box<dyn RateLimiter<T>>,
    kind: std::marker::PhantomData<K>,
}

impl<T: WorkKey, K: Kind> QueueBuilder<T, K> {
    pub(super) fn new() -> Self {
        Self { name: None, metrics: None, limiter: K::default_limiter(), kind: std::marker::PhantomData }
    }

    /// The name for logs and metrics. Queues of the same name share their metrics; an empty name is none.
    pub fn name(mut self, name: &str) -> Self {
        self.name = (!name.is_empty()).then(|| name.into());
        self
    }

    /// Where the queue is measured, if it has a name; [`QueueMetrics::global`] unless said otherwise.
    pub fn metrics(mut self, metrics: &QueueMetrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// The queue.
    pub fn build(self) -> Queue<T, K> {
        let metrics =
            self.name.is_some().then(|| self.metrics.unwrap_or_else(|| QueueMetrics::global().clone()));
        Queue::from_shared(Shared::new(self.name, metrics, self.limiter))
    }
}

impl<T: WorkKey, K: Retrying> QueueBuilder<T, K> {
    /// What decides how long a retry waits.
    pub fn limiter(mut self, limiter: impl RateLimiter<T>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }
}

impl<T: WorkKey, K: Kind> fmt::Debug for QueueBuilder<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
