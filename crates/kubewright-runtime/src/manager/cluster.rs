//! One cluster: its caches and a client over them.

use kube::Resource;

use crate::{
    client::CachedClient,
    manager::{Prepare, RunContext, Runnable, Stage},
};
use kubewright_cache::{CacheOptions, Caches, TooLate};
use kubewright_client::Transport;
use kubewright_core::Object;

/// The caches of a cluster and a client over them. A clone is a handle to the same.
///
/// A manager makes one for its own cluster. Others are given to it
/// ([`ManagerBuilder::cluster`](super::ManagerBuilder::cluster)), so that their caches run with it, and are watched by
/// [`Watch::in_cluster`](crate::controller::Watch::in_cluster):
///
/// ```no_run
/// # async fn example(here: kube::Client, there: kube::Client) -> kubewright::Result<()> {
/// use kubewright::prelude::*;
/// use kubewright::{cache::Lazy, k8s_openapi::api::core::v1::{ConfigMap, Secret}};
///
/// let remote = Cluster::new("remote", there);
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
pub struct Cluster {
    name: String,
    client: CachedClient,
}

impl Cluster {
    /// The cluster that this client talks to, everything cached on demand.
    pub fn new(name: &str, client: impl Into<Transport>) -> Self {
        Self::over(name, &Caches::new(client))
    }

    /// A cluster over caches that were set up before.
    pub fn over(name: &str, caches: &Caches) -> Self {
        Self { name: name.to_owned(), client: CachedClient::new(caches) }
    }

    /// The same cluster through another handle to its client.
    pub(super) fn with_client(mut self, client: CachedClient) -> Self {
        self.client = client;
        self
    }

    /// What the cluster is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to cache of a kind.
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

/// The caches of a cluster, as a manager runs them.
pub(super) struct Caching(pub(super) Cluster);

impl Runnable for Caching {
    fn name(&self) -> String {
        format!("caches of {}", self.0.name)
    }

    fn stage(&self) -> Stage {
        Stage::Caches
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> Prepare<'a> {
        // Not waited for: whoever needs a cache waits for that one, and a kind may not be served yet.
        self.0.caches().start();
        Box::pin(std::future::ready(Ok(())))
    }

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            self.0.caches().stop().await;
            Ok(())
        })
    }
}
