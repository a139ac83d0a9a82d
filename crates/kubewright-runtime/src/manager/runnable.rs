//! Runnables of a manager.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    client::CachedClient,
    controller::{EventSink, Journal},
    manager::ManagerHandle,
};
use kubewright_core::Clock;

/// Stage in which a runnable starts; stages stop in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Health, readiness and metrics: first up, last down.
    Serving,
    /// Webhooks, which the API server may call while it answers our own lists.
    Webhooks,
    /// Caches.
    Caches,
    /// Runnables of every replica.
    Others,
    /// Runnables of the leader only.
    Elected,
}

impl Stage {
    pub(super) const ALL: [Self; 5] =
        [Self::Serving, Self::Webhooks, Self::Caches, Self::Others, Self::Elected];
}

/// Future of [`Runnable::prepare`] and [`Runnable::run`].
pub type RunnableFuture<'a> = BoxFuture<'a, Result<(), Error>>;

/// Something that a manager runs.
///
/// [`runnable_fn`] makes one from an async function.
pub trait Runnable: Send + 'static {
    /// The name in logs and errors.
    fn name(&self) -> String;

    /// The stage in which it starts.
    fn stage(&self) -> Stage {
        Stage::Others
    }

    /// Prepares what the next stage needs, such as a bound port or a synced cache. Leader-elected runnables
    /// prepare before they lead.
    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> RunnableFuture<'a> {
        let _ = cx;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs until [`RunContext::stop`] is cancelled or its work is done. An error stops the manager.
    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static>;
}

/// Context of a runnable.
#[derive(Clone)]
pub struct RunContext {
    pub(super) client: CachedClient,
    pub(super) recorder: Arc<dyn EventSink>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(super) manager: ManagerHandle,
    pub(super) journal: Option<Journal>,
}

impl RunContext {
    /// The client of the manager's own cluster, and through it the caches.
    pub fn client(&self) -> &CachedClient {
        &self.client
    }

    /// The recorder of events.
    pub fn recorder(&self) -> &Arc<dyn EventSink> {
        &self.recorder
    }

    /// The clock for timestamps in objects.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Token that is cancelled when the manager stops this stage.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The journal of the manager's controllers, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// The manager.
    pub fn manager(&self) -> &ManagerHandle {
        &self.manager
    }
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Creates a runnable from an async function.
///
/// ```
/// use kubewright::{Result, manager::{RunContext, Stage, runnable_fn}};
///
/// let greeter = runnable_fn("greeter", Stage::Others, |cx: RunContext| async move {
///     println!("hello");
///     cx.stop().cancelled().await;
///     Result::Ok(())
/// });
/// ```
pub fn runnable_fn<F, Fut>(name: &str, stage: Stage, run: F) -> impl Runnable
where
    F: FnOnce(RunContext) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), Error>> + Send + 'static,
{
    RunnableFn { name: name.to_owned(), stage, run }
}

struct RunnableFn<F> {
    name: String,
    stage: Stage,
    run: F,
}

impl<F, Fut> Runnable for RunnableFn<F>
where
    F: FnOnce(RunContext) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stage(&self) -> Stage {
        self.stage
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin((self.run)(cx))
    }
}
