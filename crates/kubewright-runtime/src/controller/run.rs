//! A controller at run time: sources first, then workers; on the way down, the other way round.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::try_join_all;
use tokio::task::JoinSet;

use super::{
    Reconciler, Request, Requests, context,
    metrics::Meter,
    source::{Source, SourceContext, Started},
    worker::{Bound, Reconcile, Worker},
};
use crate::{
    Error,
    manager::{RunContext, Runnable, RunnableFuture, Stage},
};
use kubewright_cache::{Caches, StoreError};
use kubewright_core::Object;
use kubewright_queue::PriorityQueue;

/// Declares an index on the caches that the controller reads from.
pub(super) type Declaration = Box<dyn Fn(&Caches) -> Result<(), StoreError> + Send>;

/// Everything a controller is made of.
pub(super) struct Spec {
    pub(super) name: Arc<str>,
    pub(super) queue: PriorityQueue<Request>,
    pub(super) sources: Vec<Box<dyn Source>>,
    pub(super) indexes: Vec<Declaration>,
    pub(super) workers: usize,
    pub(super) reconcile_timeout: Option<Duration>,
    pub(super) sync_timeout: Duration,
    pub(super) stage: Stage,
    pub(super) warm_up: bool,
    pub(super) meter: Arc<Meter>,
    pub(super) bind: Bind,
}

/// Gives a reconciler the client and the cache of its kind.
pub(super) type Bind = Box<dyn FnOnce(&RunContext) -> Arc<dyn Reconcile> + Send>;

pub(super) fn bind<K: Object, R: Reconciler<K>>(dyntype: K::DynamicType, reconciler: R) -> Bind {
    Box::new(|cx| {
        let kind = cx.client().kind::<K>(dyntype);
        let shared = context::Shared {
            cache: kind.cache(),
            kind,
            client: cx.client().clone(),
            recorder: Arc::clone(cx.recorder()),
            clock: cx.clock().clone(),
            stop: cx.stop().clone(),
        };
        Arc::new(Bound { shared: Arc::new(shared), reconciler })
    })
}

/// A controller whose sources may run already.
pub(super) struct Prepared {
    spec: Spec,
    running: Vec<Started>,
}

impl Prepared {
    pub(super) fn new(spec: Spec) -> Self {
        Self { spec, running: Vec::new() }
    }

    fn start_sources(&mut self, cx: &RunContext) -> Result<(), Error> {
        for declare in self.spec.indexes.drain(..) {
            declare(cx.client().caches())?;
        }
        let source_context = SourceContext {
            caches: cx.client().caches().clone(),
            stop: cx.stop().clone(),
            sync_timeout: self.spec.sync_timeout,
        };
        for source in std::mem::take(&mut self.spec.sources) {
            let requests = Requests::new(self.spec.queue.clone(), &source.name());
            self.running.push(source.start(&source_context, requests));
        }
        Ok(())
    }

    /// Waits until every source has told of everything there is.
    async fn synced(&mut self) -> Result<(), Error> {
        let done = || Box::pin(std::future::ready(Ok(())));
        let waits = self.running.iter_mut().map(|started| std::mem::replace(&mut started.synced, done()));
        try_join_all(waits).await.map(drop)
    }

    async fn work(mut self, cx: RunContext) -> Result<(), Error> {
        let name = Arc::clone(&self.spec.name);
        self.start_sources(&cx)?;
        tokio::select! {
            biased;
            () = cx.stop().cancelled() => return Ok(()),
            synced = self.synced() => synced?,
        }
        let Spec { queue, workers, reconcile_timeout, meter, bind, .. } = self.spec;
        tracing::info!(controller = %name, workers, "controller started");
        let worker = Arc::new(Worker {
            name: Arc::clone(&name),
            clock: cx.clock().clone(),
            queue: queue.clone(),
            reconciler: bind(&cx),
            timeout: reconcile_timeout,
            meter: Arc::clone(&meter),
            journal: cx.journal().cloned(),
            ids: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        meter.set_workers(workers);
        let mut tasks = JoinSet::new();
        let hire = |tasks: &mut JoinSet<()>| {
            let worker = Arc::clone(&worker);
            tasks.spawn(async move { worker.work().await });
        };
        (0..workers).for_each(|_| hire(&mut tasks));
        loop {
            tokio::select! {
                biased;
                () = cx.stop().cancelled() => break,
                // Panics of reconcilers do not reach it, but that of an error's destructor would.
                Some(_) = tasks.join_next() => {
                    tracing::error!(controller = %name, "a worker has ended before its time: another takes its place");
                    hire(&mut tasks);
                }
            }
        }
        worker.stopping.store(true, Ordering::Release);
        // No source may add to a queue that nobody empties; what is left is listed again at the next start.
        drop(self.running);
        queue.shut_down();
        while tasks.join_next().await.is_some() {}
        tracing::info!(controller = %name, "controller stopped");
        Ok(())
    }
}

impl Runnable for Prepared {
    fn name(&self) -> String {
        format!("controller {}", self.spec.name)
    }

    fn stage(&self) -> Stage {
        self.spec.stage
    }

    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> RunnableFuture<'a> {
        Box::pin(async move {
            if self.spec.warm_up {
                self.start_sources(cx)?;
                self.synced().await?;
            }
            Ok(())
        })
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(self.work(cx))
    }
}
