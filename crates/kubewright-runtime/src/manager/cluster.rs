//! Caches and cached client of one cluster.

use kube::Resource;

use crate::{
    client::CachedClient,
    manager::{RunContext, Runnable, RunnableFuture, Stage},
};
use kubewright_cache::{CacheOptions, Caches, TooLate};
use kubewright_client::Transport;
use kubewright_core::Object;

/// Caches of one cluster and a client over them, as controller-runtime's `cluster.Cluster`. Clones share
/// them.
///
/// A manager creates one for its own cluster. Further clusters are added with
/// [`ManagerBuilder::cluster`](super::ManagerBuilder::cluster), so that their caches run with the manager,
/// and watched with [`Watch::in_cluster`](crate::controller::Watch::in_cluster):
///
/// ```no_run
/// # async fn example(here: kube::Client, there: kube::Client) -> kubewright::Result<()> {
/// use kubewright::{manager::ClusterHandle, prelude::*};
/// use kubewright::{cache::Lazy, k8s_openapi::api::core::v1::{ConfigMap, Secret}};
///
/// let remote = ClusterHandle::new("remote", there);
/// let copies = Controller::of::<ConfigMap>()
///     .watches(Watch::mapped(|secret: &Lazy<Secret>| [secret.key().clone()]).in_cluster(&remote))
///     .reconcile({
///         let remote = remote.clone();
///         move |cx: Context<ConfigMap>| {
///             let remote = remote.clone();
///             async move {
///                 let secret = remote.client().get::<Secret>(cx.key()).await?;
///                 println!("{}: {}", cx.key(), secret.is_some());
///                 Ok(Action::done())
///             }
///         }
///     });
/// Manager::builder("copier").client(here).cluster(&remote).controller(copies).run().await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ClusterHandle {
    name: String,
    client: CachedClient,
}

impl ClusterHandle {
    /// Creates a handle to the cluster of this client; kinds are cached on demand.
    pub fn new(name: &str, client: impl Into<Transport>) -> Self {
        Self::from_caches(name, &Caches::new(client))
    }

    /// Creates a handle over existing caches.
    pub fn from_caches(name: &str, caches: &Caches) -> Self {
        Self { name: name.to_owned(), client: CachedClient::new(caches) }
    }

    /// Replaces the client.
    pub(super) fn with_client(mut self, client: CachedClient) -> Self {
        self.client = client;
        self
    }

    /// The name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets what is cached of a kind.
    pub fn configure<K>(&self, options: CacheOptions<K>) -> Result<(), TooLate>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.caches().configure(options)
    }

    /// The client.
    pub fn client(&self) -> &CachedClient {
        &self.client
    }

    /// The caches.
    pub fn caches(&self) -> &Caches {
        self.client.caches()
    }
}

/// Runs the caches of a cluster.
pub(super) struct CachesRunnable(pub(super) ClusterHandle);

impl Runnable for CachesRunnable {
    fn name(&self) -> String {
        format!("caches of {}", self.0.name)
    }

    fn stage(&self) -> Stage {
        Stage::Caches
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> RunnableFuture<'a> {
        // Not waited for: users of a cache wait for that one, and a kind may not be served yet.
        self.0.caches().start();
        Box::pin(std::future::ready(Ok(())))
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            self.0.caches().stop().await;
            Ok(())
        })
    }
}
