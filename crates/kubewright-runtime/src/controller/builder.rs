//! A controller, said like a sentence.

use std::{sync::Arc, time::Duration};

use kube::{
    Resource,
    core::{ApiResource, DynamicObject},
};

use super::{
    ControllerMetrics, Predicate, Reconciler, Request, Source, Watch,
    run::{Declaration, Prepared, Spec, bind},
};
use crate::manager::{RunContext, Runnable, RunnableFuture, Stage};
use kubewright_cache::{Caches, FieldIndex, StoreError};
use kubewright_core::Object;
use kubewright_queue::{PriorityQueue, QueueMetrics, limiter::RateLimiter};

/// A controller that is ready to be given to a [manager](crate::manager::Manager). Begin with [`Controller::of`].
pub struct Controller {
    inner: Box<dyn Runnable>,
}

impl Controller {
    /// A controller for a kind that has a Rust type. For metadata only, say `PartialObjectMeta<K>`.
    pub fn of<K: Object + Resource<DynamicType = ()>>() -> ControllerBuilder<K> {
        ControllerBuilder::new(())
    }

    /// A controller for a kind that is known only at run time.
    pub fn dynamic(resource: &ApiResource) -> ControllerBuilder<DynamicObject> {
        ControllerBuilder::new(resource.clone())
    }

    /// A controller for any kind, from what its type needs to know at run time.
    pub fn kind<K: Object>(dyntype: K::DynamicType) -> ControllerBuilder<K> {
        ControllerBuilder::new(dyntype)
    }
}

impl Runnable for Controller {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn stage(&self) -> Stage {
        self.inner.stage()
    }

    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> RunnableFuture<'a> {
        self.inner.prepare(cx)
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        self.inner.run(cx)
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Controller").field(&self.name()).finish()
    }
}

/// A controller that is being described. It ends with [`reconcile`](Self::reconcile).
#[must_use = "a controller needs a reconciler: end with .reconcile(…)"]
pub struct ControllerBuilder<K: Object> {
    dyntype: K::DynamicType,
    name: String,
    own: Option<Watch<K>>,
    sources: Vec<Box<dyn Source>>,
    indexes: Vec<Declaration>,
    cluster_scoped: bool,
    workers: usize,
    limiter: Option<Box<dyn RateLimiter<Request>>>,
    reconcile_timeout: Option<Duration>,
    sync_timeout: Duration,
    needs_leader: bool,
    warm_up: bool,
    metrics: ControllerMetrics,
    queue_metrics: QueueMetrics,
}

impl<K: Object> ControllerBuilder<K> {
    fn new(dyntype: K::DynamicType) -> Self {
        Self {
            name: K::kind(&dyntype).to_lowercase(),
            own: Some(Watch::itself(dyntype.clone())),
            dyntype,
            sources: Vec::new(),
            indexes: Vec::new(),
            cluster_scoped: kubewright_core::object::is_cluster_scoped::<K>(),
            workers: 1,
            limiter: None,
            reconcile_timeout: None,
            sync_timeout: Duration::from_mins(2),
            needs_leader: true,
            warm_up: false,
            metrics: ControllerMetrics::global().clone(),
            queue_metrics: QueueMetrics::global().clone(),
        }
    }

    /// The name for logs and metrics; by default the kind in lower case. Two controllers of a kind need two names.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Only events of the controller's own kind that pass. Several of these must all pass.
    pub fn when(mut self, predicate: impl Predicate<K>) -> Self {
        self.own = self.own.map(|own| own.when(predicate));
        self
    }

    /// Reconciles every object again in this interval, so that what no event tells of is noticed in the end; by default
    /// never. It costs no request but what the reconciler sends.
    pub fn resync(mut self, interval: Duration) -> Self {
        self.own = self.own.map(|own| own.resync(interval));
        self
    }

    /// Only other sources wake this controller up, not its own kind.
    pub fn only_others(mut self) -> Self {
        self.own = None;
        self
    }

    /// Changes of what this kind controls wake up the object that controls it.
    pub fn owns<D: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.watches(Watch::<D>::owned())
    }

    /// Changes of another kind wake this controller up.
    pub fn watches<W: Object>(mut self, watch: Watch<W>) -> Self {
        self.sources.push(Box::new(watch.into_source::<K>(&self.dyntype, self.cluster_scoped)));
        self
    }

    /// Anything else that wakes this controller up.
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Declares an index of a kind that this controller looks objects up by: of its own kind or of another.
    ///
    /// Several controllers may declare the same index; it is computed once. Declared here it is filled with the cache,
    /// otherwise by the first lookup.
    pub fn index<D: Object + Resource<DynamicType = ()>>(mut self, index: &'static FieldIndex<D>) -> Self {
        self.indexes.push(Box::new(move |caches: &Caches| -> Result<(), StoreError> {
            caches.of::<D>().declare_index(index)
        }));
        self
    }

    /// Objects of this kind live in no namespace. Types say so themselves; for a kind that is known only at run time, say
    /// it before the first [`owns`](Self::owns) or [`watches`](Self::watches).
    pub fn cluster_scoped(mut self) -> Self {
        self.cluster_scoped = true;
        self
    }

    /// How many objects are reconciled at the same time: one, unless said otherwise. The same object never is.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How long a failed object waits; by default 5 ms, doubling to 1000 s, for each object by itself.
    pub fn limiter(mut self, limiter: impl RateLimiter<Request>) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// A reconcile that takes longer is dropped at its next await and counts as failed.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.reconcile_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// How long the caches may take to sync before the controller gives up and says why; two minutes unless said
    /// otherwise. A kind that the server does not serve yet is waited for.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Runs on every replica, not only on the leader.
    pub fn without_leader(mut self) -> Self {
        self.needs_leader = false;
        self
    }

    /// Fills caches and queue before this replica leads, so that it can take over at once.
    pub fn warm_up(mut self) -> Self {
        self.warm_up = true;
        self
    }

    /// Where the controller is measured; [`ControllerMetrics::global`] and [`QueueMetrics::global`] unless said
    /// otherwise.
    pub fn metrics(mut self, metrics: &ControllerMetrics, queues: &QueueMetrics) -> Self {
        self.metrics = metrics.clone();
        self.queue_metrics = queues.clone();
        self
    }

    /// The controller, with what it does.
    pub fn reconcile(self, reconciler: impl Reconciler<K>) -> Controller {
        let queue = queue(&self.name, &self.queue_metrics, self.limiter);
        let mut sources = self.sources;
        if let Some(own) = self.own {
            sources.insert(0, Box::new(own.into_source::<K>(&self.dyntype, self.cluster_scoped)));
        }
        let spec = Spec {
            meter: self.metrics.meter(&self.name),
            name: self.name.into(),
            queue,
            sources,
            indexes: self.indexes,
            workers: self.workers,
            reconcile_timeout: self.reconcile_timeout,
            sync_timeout: self.sync_timeout,
            stage: if self.needs_leader { Stage::Elected } else { Stage::Others },
            warm_up: self.warm_up,
            bind: bind(self.dyntype, reconciler),
        };
        Controller { inner: Box::new(Prepared::new(spec)) }
    }
}

fn queue(
    name: &str,
    metrics: &QueueMetrics,
    limiter: Option<Box<dyn RateLimiter<Request>>>,
) -> PriorityQueue<Request> {
    let queue = PriorityQueue::builder().name(name).metrics(metrics);
    match limiter {
        Some(limiter) => queue.limiter(Arc::<dyn RateLimiter<Request>>::from(limiter)).build(),
        None => queue.build(),
    }
}

impl<K: Object> std::fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
