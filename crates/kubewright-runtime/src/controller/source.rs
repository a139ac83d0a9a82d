//! What wakes a controller up.
//!
//! [`Watch`](super::Watch) is the source that most controllers need. Others:
//!
//! - [`channel`]: whatever a program sends, mapped to keys: a webhook of some other system, a timer.
//! - [`function`]: any future that adds keys, until the controller stops.
//! - an informer of one's own: [`Watch::through`](super::Watch::through).
//! - [`Source`] itself, for those who need to say when they have synced.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use futures::{Stream, StreamExt as _, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use crate::{Error, controller::Requests};
use kubewright_cache::Caches;
use kubewright_core::ObjectKey;

/// Something that asks for reconciles.
pub trait Source: Send + 'static {
    /// What the source is called in logs and spans.
    fn name(&self) -> String;

    /// Begins to ask. The controller's workers start when all sources have synced.
    fn start(self: Box<Self>, cx: &SourceContext, requests: Requests) -> Started;
}

/// What a source is started with.
#[derive(Debug, Clone)]
pub struct SourceContext {
    pub(super) caches: Caches,
    pub(super) stop: CancellationToken,
    pub(super) sync_timeout: Duration,
}

impl SourceContext {
    /// The caches of the manager's own cluster.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Cancelled when the controller stops.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// How long the source may take to sync before it should say what is wrong.
    pub fn sync_timeout(&self) -> Duration {
        self.sync_timeout
    }
}

/// A source that runs. Dropping it stops it.
pub struct Started {
    _guard: Box<dyn Any + Send>,
    pub(super) synced: BoxFuture<'static, Result<(), Error>>,
}

impl Started {
    /// A source that runs as long as `guard` lives and has told of everything there is when `synced` is over.
    pub fn new(
        guard: impl Any + Send,
        synced: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Self {
        Self { _guard: Box::new(guard), synced: Box::pin(synced) }
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Started")
    }
}

/// A kind that a controller watches could not be listed in time.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cache of {kind} has not synced after {waited:?}{}; the controller needs the permission to list and watch it",
    .cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
)]
pub struct SyncError {
    /// The kind.
    pub kind: String,
    /// How long the controller has waited.
    pub waited: Duration,
    /// What the server says about a list of it.
    #[source]
    pub(super) cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Reconciles of what `stream` sends, mapped to keys.
///
/// ```
/// use kubewright::{ObjectKey, controller::{Controller, source}};
/// use kubewright::k8s_openapi::api::core::v1::ConfigMap;
///
/// let (sender, receiver) = futures::channel::mpsc::channel::<String>(16);
/// let builder = Controller::of::<ConfigMap>()
///     .source(source::channel("webhook", receiver, |name| [ObjectKey::namespaced("shop", &name)]));
/// # drop(sender);
/// ```
pub fn channel<S, M, I>(name: &str, stream: S, map: M) -> impl Source
where
    S: Stream + Send + 'static,
    M: Fn(S::Item) -> I + Send + 'static,
    I: IntoIterator<Item = ObjectKey, IntoIter: Send> + Send,
    S::Item: Send,
{
    function(name, move |requests: Requests| async move {
        let mut stream = std::pin::pin!(stream);
        while let Some(message) = stream.next().await {
            map(message).into_iter().for_each(|key| requests.add(key));
        }
    })
}

/// Reconciles that a future asks for. It is dropped when the controller stops.
pub fn function<F, Fut>(name: &str, run: F) -> impl Source
where
    F: FnOnce(Requests) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Function { name: name.into(), run }
}

struct Function<F> {
    name: Arc<str>,
    run: F,
}

impl<F, Fut> Source for Function<F>
where
    F: FnOnce(Requests) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn start(self: Box<Self>, _: &SourceContext, requests: Requests) -> Started {
        let task = Aborting(tokio::spawn((self.run)(requests)));
        Started::new(task, std::future::ready(Ok(())))
    }
}

/// A task that ends with its guard.
struct Aborting(tokio::task::JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
