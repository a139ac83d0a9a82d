//! What a manager runs.

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

/// When a runnable is started, and in reverse, stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Health, readiness and metrics: first up, last down.
    Serving,
    /// Webhooks: the API server may need them to answer our own lists.
    Webhooks,
    /// Caches.
    Caches,
    /// Whatever runs on every replica.
    Others,
    /// Whatever runs on the leader only.
    Elected,
}

impl Stage {
    pub(super) const ALL: [Self; 5] =
        [Self::Serving, Self::Webhooks, Self::Caches, Self::Others, Self::Elected];
}

/// The future of a runnable's work.
pub type Prepare<'a> = BoxFuture<'a, Result<(), Error>>;

/// Something that a manager runs.
///
/// A plain function will do for a loop; see [`function`].
pub trait Runnable: Send + 'static {
    /// What it is called in logs and errors.
    fn name(&self) -> String;

    /// When it is started.
    fn stage(&self) -> Stage {
        Stage::Others
    }

    /// What has to be done before the next stage starts: bind a port, fill a cache. The elected do it before they are
    /// elected.
    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> Prepare<'a> {
        let _ = cx;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs until [`RunContext::stop`] is cancelled, or until there is nothing left to do. An error stops the manager.
    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static>;
}

/// What a runnable has to work with.
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

    /// Where events about objects go.
    pub fn recorder(&self) -> &Arc<dyn EventSink> {
        &self.recorder
    }

    /// What time it is.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Cancelled when it is time to stop.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Where the manager's controllers write down what they did, if anybody wants to know.
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

/// A runnable of a function.
///
/// ```
/// use kubewright::{Result, manager::{RunContext, Stage, function}};
///
/// let greeter = function("greeter", Stage::Others, |cx: RunContext| async move {
///     println!("hello");
///     cx.stop().cancelled().await;
///     Result::Ok(())
/// });
/// ```
pub fn function<F, Fut>(name: &str, stage: Stage, run: F) -> impl Runnable
where
    F: FnOnce(RunContext) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), Error>> + Send + 'static,
{
    Function { name: name.to_owned(), stage, run }
}

struct Function<F> {
    name: String,
    stage: Stage,
    run: F,
}

impl<F, Fut> Runnable for Function<F>
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

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
        Box::pin((self.run)(cx))
    }
}
