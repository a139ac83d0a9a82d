//! One key at a time: from the queue to the reconciler and back.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::FutureExt as _;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    Action, Context, Ended, Journal, Reconciled, Reconciler, Request,
    action::Next,
    context,
    metrics::{Meter, Outcome},
};
use crate::Error;
use kubewright_core::{Object, panic_message};
use kubewright_queue::{Item, Prioritised, PriorityQueue};

/// How long a worker keeps its thread when no reconcile of it ever waits. tokio counts polls, not time: without this, 128
/// reconciles would pass before the informer could tell of a change.
const TURN: Duration = Duration::from_micros(200);

/// What all workers of a controller share.
pub(super) struct Worker<K: Object, R> {
    pub(super) name: Arc<str>,
    pub(super) shared: Arc<context::Shared<K>>,
    pub(super) queue: PriorityQueue<Request>,
    pub(super) reconciler: Arc<R>,
    pub(super) timeout: Option<Duration>,
    pub(super) meter: Arc<Meter>,
    pub(super) journal: Option<Journal>,
    pub(super) ids: AtomicU64,
    pub(super) stopping: AtomicBool,
}

/// How a reconcile ended other than by returning.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the reconciler panicked: {0}")]
    Panicked(String),
    #[error("the reconcile took longer than {0:?} and was dropped")]
    TooSlow(Duration),
}

impl<K: Object, R: Reconciler<K>> Worker<K, R> {
    /// Works until the queue is shut down. What is left in it then is left.
    pub(super) async fn work(&self) {
        let mut busy = Duration::ZERO;
        while let Some(item) = self.queue.get().await {
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
            let span = self.span(&item, id);
            let process = self.process(item, id, &span);
            busy += if span.is_disabled() { process.await } else { process.instrument(span.clone()).await };
            if busy >= TURN {
                busy = Duration::ZERO;
                tokio::task::yield_now().await;
            }
        }
    }

    fn span(&self, item: &Item<Request, Prioritised>, id: u64) -> tracing::Span {
        let request = item.key();
        tracing::info_span!(
            "reconcile",
            controller = &*self.name,
            object = request.key().as_str(),
            id,
            trigger = format_args!("{} {}", request.source(), request.cause()),
            retries = item.requeues(),
            result = tracing::field::Empty,
        )
    }

    /// Says how long it took.
    async fn process(&self, item: Item<Request, Prioritised>, id: u64, span: &tracing::Span) -> Duration {
        let (started, at) = (Instant::now(), self.journal.as_ref().map(|_| self.shared.clock.now()));
        let active = self.meter.begin();
        let result = self.reconcile(item.key().clone(), id).await;
        drop(active);
        let outcome = match &result {
            Ok(Action(Next::Done)) => Outcome::Success,
            Ok(Action(Next::Requeue)) => Outcome::Requeue,
            Ok(Action(Next::After(_))) => Outcome::RequeueAfter,
            Err(_) => Outcome::Error,
        };
        let took = started.elapsed();
        self.meter.observe(outcome, took);
        if let (Some(journal), Some(at)) = (&self.journal, at) {
            journal.write(self.reconciled(&item, at, &result, took));
        }
        span.record("result", outcome.name());
        match result {
            Ok(Action(Next::Done)) => item.forget(),
            Ok(Action(Next::Requeue)) => item.requeue(),
            Ok(Action(Next::After(delay))) => item.requeue_after(delay),
            Err(error) => {
                #[cfg(feature = "otel")]
                crate::telemetry::mark_failed(span, &error);
                if error.is_terminal() {
                    self.meter.count_terminal();
                    item.give_up(error);
                } else {
                    item.retry(error);
                }
            }
        }
        took
    }

    fn reconciled(
        &self,
        item: &Item<Request, Prioritised>,
        at: Timestamp,
        result: &Result<Action, Error>,
        took: Duration,
    ) -> Reconciled {
        let request = item.key();
        Reconciled {
            at,
            controller: Arc::clone(&self.name),
            key: request.key().clone(),
            source: Arc::clone(request.shared_source()),
            cause: request.cause(),
            retries: item.requeues(),
            ended: match result {
                Ok(Action(Next::Done)) => Ended::Done,
                Ok(Action(Next::Requeue)) => Ended::Requeue,
                Ok(Action(Next::After(delay))) => Ended::RequeueAfter(*delay),
                Err(error) if error.is_terminal() => Ended::GaveUp(error.to_string()),
                Err(error) => Ended::Failed(error.to_string()),
            },
            took,
        }
    }

    /// Runs the reconciler where neither a panic nor a time-out reaches the worker.
    async fn reconcile(&self, request: Request, id: u64) -> Result<Action, Error> {
        let reconcile = async {
            let object = self.shared.kind.cached(&self.shared.cache, request.key()).await?;
            let cx = Context { shared: Arc::clone(&self.shared), request, object, id };
            self.reconciler.reconcile(cx).await
        };
        let caught = AssertUnwindSafe(reconcile).catch_unwind();
        let ended = match self.timeout {
            None => caught.await,
            Some(timeout) => {
                let mut caught = Box::pin(caught);
                let Ok(ended) = tokio::time::timeout(timeout, &mut caught).await else {
                    self.meter.count_timeout();
                    // What it still held is dropped here, and destructors can panic as well.
                    return match catch_unwind(AssertUnwindSafe(|| drop(caught))) {
                        Ok(()) => Err(Broken::TooSlow(timeout).into()),
                        Err(panic) => Err(self.panicked(&*panic)),
                    };
                };
                ended
            }
        };
        ended.unwrap_or_else(|panic| Err(self.panicked(&*panic)))
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Error {
        self.meter.count_panic();
        Broken::Panicked(panic_message(panic)).into()
    }
}
