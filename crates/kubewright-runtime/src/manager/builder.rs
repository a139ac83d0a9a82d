//! Builder of managers.

use std::{collections::HashSet, sync::Arc, time::Duration};

use indexmap::IndexMap;
use kube::Resource;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    ClusterHandle, LeaderElector, ManagerError, ManagerHandle, RunContext, Runnable,
    cluster::CachesRunnable,
    defaults::{Events, Serving, default_endpoint},
    election::LeaderElection,
    handle,
    lifecycle::Lifecycle,
    serve::{Checks, Endpoint},
};
#[cfg(feature = "logs")]
use crate::telemetry::Telemetry;
use crate::{
    Error,
    client::CachedClient,
    controller::{Controller, EventSink, Journal},
    events::EventBroadcaster,
};
use kubewright_cache::{CacheOptions, Caches, IndexFn, Lazy};
use kubewright_client::{Clients, Transport};
use kubewright_core::{Clock, Object};

type Configure = Box<dyn FnOnce(&Caches) -> Result<(), Error> + Send>;

/// Builder of a [`Manager`]; [`run`](Self::run) builds and runs it, [`build`](Self::build) returns it.
#[must_use = "a manager does nothing until it runs"]
pub struct ManagerBuilder {
    name: String,
    client: Option<Transport>,
    caches: Option<Caches>,
    namespaces: Vec<String>,
    configure: Vec<Configure>,
    indexes: Vec<Configure>,
    clusters: IndexMap<String, ClusterHandle>,
    runnables: Vec<Box<dyn Runnable>>,
    recorder: Option<Arc<dyn EventSink>>,
    component: Option<String>,
    leader_elector: Option<Box<dyn LeaderElector>>,
    leader_election: bool,
    serve: Option<Endpoint>,
    metrics: Option<Endpoint>,
    healthz: Checks,
    readyz: Checks,
    clock: Clock,
    grace: Duration,
    signals: bool,
    journal: Option<Journal>,
}

/// A configured manager.
///
/// See the [module](super) for its guarantees.
pub struct Manager {
    #[cfg(feature = "logs")]
    name: String,
    #[cfg(feature = "logs")]
    owns_process: bool,
    lifecycle: Lifecycle,
    handle: ManagerHandle,
}

impl Manager {
    /// Creates a builder. The name is the field owner of the manager's writes, unless a controller sets
    /// another.
    pub fn builder(name: &str) -> ManagerBuilder {
        ManagerBuilder {
            name: name.to_owned(),
            client: None,
            caches: None,
            namespaces: Vec::new(),
            configure: Vec::new(),
            indexes: Vec::new(),
            clusters: IndexMap::new(),
            runnables: Vec::new(),
            recorder: None,
            component: None,
            leader_elector: None,
            leader_election: false,
            serve: None,
            metrics: None,
            healthz: Checks::new(),
            readyz: Checks::new(),
            clock: Clock::system(),
            grace: Duration::from_secs(30),
            signals: true,
            journal: None,
        }
    }

    /// Returns a handle to the manager.
    pub fn handle(&self) -> ManagerHandle {
        self.handle.clone()
    }

    /// The client of the manager's own cluster. Cached reads wait until the manager runs.
    pub fn client(&self) -> &CachedClient {
        self.handle.own_cluster().client()
    }

    /// Runs until a signal, a failure or [`ManagerHandle::stop`], then stops everything in reverse order.
    pub async fn run(self) -> Result<(), Error> {
        #[cfg(feature = "logs")]
        let telemetry = self.owns_process.then(|| Telemetry::init(&self.name));
        let ended = self.lifecycle.run().await;
        #[cfg(feature = "logs")]
        if let Some(telemetry) = telemetry {
            telemetry.shutdown().await;
        }
        ended
    }
}

impl ManagerBuilder {
    /// Sets the cluster, as a [`Transport`] or a [`kube::Client`]; by default from the kubeconfig or the
    /// Pod's service account. A `Transport` is cheaper: it bypasses the request queue of `kube::Client`.
    pub fn client(mut self, client: impl Into<Transport>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Uses existing caches, and the cluster they belong to.
    pub fn caches(mut self, caches: &Caches) -> Self {
        self.caches = Some(caches.clone());
        self
    }

    /// Caches only these namespaces.
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what is cached of a kind: namespaces, selectors, transform, form.
    pub fn cache<K>(mut self, options: CacheOptions<K>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.configure.push(Box::new(|caches| Ok(caches.configure(options)?)));
        self
    }

    /// Adds an index to the cache of a kind, for [`List::by_index`](crate::client::List::by_index).
    pub fn index<K>(mut self, index: IndexFn<Lazy<K>>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.indexes.push(Box::new(move |caches| Ok(caches.of::<K>().add_index(&index)?)));
        self
    }

    /// Runs the caches of another cluster too.
    pub fn cluster(mut self, cluster: &ClusterHandle) -> Self {
        self.clusters.insert(cluster.name().to_owned(), cluster.clone());
        self
    }

    /// Adds a controller.
    pub fn controller(self, controller: Controller) -> Self {
        self.runnable(controller)
    }

    /// Adds a runnable.
    pub fn runnable(mut self, runnable: impl Runnable) -> Self {
        self.runnables.push(Box::new(runnable));
        self
    }

    /// Enables leader election: only one of several replicas runs the controllers. The Lease has the
    /// manager's name, in the namespace of the client. See [`leader_elector`](Self::leader_elector) for other
    /// settings.
    pub fn leader_election(mut self, elect: bool) -> Self {
        self.leader_election = elect;
        self
    }

    /// Sets where `/healthz`, `/readyz` and `/metrics` are served: an address such as `:8080`, `0` to
    /// disable, or an [`Endpoint`] with TLS and protected metrics. An address that is in use is an error.
    ///
    /// Defaults to `KUBEWRIGHT_SERVE`, or `:8080`; disabled for a manager [without signals](Self::signals).
    pub fn serve(mut self, endpoint: impl Into<Endpoint>) -> Self {
        self.serve = Some(endpoint.into());
        self
    }

    /// Serves `/metrics` on an endpoint of its own instead of with the probes.
    pub fn metrics(mut self, endpoint: impl Into<Endpoint>) -> Self {
        self.metrics = Some(endpoint.into());
        self
    }

    /// Adds a check to `/healthz`. While it fails, the kubelet restarts the container.
    pub fn healthz<F>(self, name: &str, check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), tower::BoxError>> + Send + 'static,
    {
        self.healthz.add(name, check);
        self
    }

    /// Adds a check to `/readyz`, besides `caches`, which fails while a requested cache has not synced. An
    /// operator that tolerates a missing kind excludes it in its probe: `/readyz?exclude=caches`.
    pub fn readyz<F>(self, name: &str, check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), tower::BoxError>> + Send + 'static,
    {
        self.readyz.add(name, check);
        self
    }

    /// Sets the source component of events; by default the manager's name.
    pub fn events_from(mut self, component: &str) -> Self {
        self.component = Some(component.to_owned());
        self
    }

    /// Sets where events go; by default to the API server.
    pub fn recorder(mut self, recorder: impl EventSink) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Sets the leader elector; without one the replica always leads.
    pub fn leader_elector(mut self, leader_elector: impl LeaderElector) -> Self {
        self.leader_elector = Some(Box::new(leader_elector));
        self
    }

    /// Sets the clock for timestamps in objects.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the grace period for runnables to stop; 30 seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Whether SIGTERM and SIGINT stop the manager; true by default.
    ///
    /// A manager that handles signals owns the process: it also logs to standard error as `RUST_LOG` says,
    /// unless a `tracing` subscriber is set ([`telemetry`](crate::telemetry)), and [serves](Self::serve)
    /// probes and metrics. Set it to `false` for a manager embedded in another program and in tests.
    pub fn signals(mut self, signals: bool) -> Self {
        self.signals = signals;
        self
    }

    /// Records reconciles in this journal; by default they are not recorded.
    pub fn journal(mut self, journal: &Journal) -> Self {
        self.journal = Some(journal.clone());
        self
    }

    /// Builds the manager without running it.
    pub async fn build(self) -> Result<Manager, Error> {
        let mut caches = match (self.caches, self.client) {
            (Some(caches), _) => caches,
            (None, Some(client)) => Caches::new(client),
            (None, None) => Caches::new(Clients::try_default().await?.transport().clone()),
        };
        if !self.namespaces.is_empty() {
            caches = caches.namespaces(self.namespaces);
        }
        // Adding an index creates the cache of its kind, which must be configured by then.
        for configure in self.configure.into_iter().chain(self.indexes) {
            configure(&caches)?;
        }
        let own = ClusterHandle::from_caches(&self.name, &caches);
        let kube = caches.client().clone();
        let client = own.client().field_owner(&self.name);
        let (additions, added) = mpsc::unbounded_channel();
        let mut runnables = self.runnables;
        for cluster in self.clusters.values().chain([&own]) {
            runnables.push(Box::new(CachesRunnable(cluster.clone())));
        }
        let mut lease_recorder = None;
        let recorder = self.recorder.unwrap_or_else(|| {
            let events =
                EventBroadcaster::builder(caches.transport().clone()).clock(self.clock.clone()).start();
            let recorder = events.recorder(self.component.as_ref().unwrap_or(&self.name));
            lease_recorder = Some(recorder.clone());
            runnables.push(Box::new(Events(events)));
            Arc::new(recorder)
        });
        let probes = self.serve.unwrap_or_else(|| default_endpoint(self.signals));
        let serving = Serving::new(probes, self.metrics, self.healthz, self.readyz);
        let clusters = self.clusters.values().chain([&own]).cloned().collect();
        runnables.push(Box::new(serving.ready_when_synced(clusters)));
        runnables.push(Box::new(serving));
        check_unique_names(&runnables)?;
        let leader_elector = match self.leader_elector {
            None if self.leader_election => {
                let mut election = LeaderElection::builder(kube, &self.name).clock(self.clock.clone());
                if let Some(lease_recorder) = lease_recorder {
                    election = election.recorder(lease_recorder);
                }
                Some(Box::new(election.build()?) as Box<dyn LeaderElector>)
            }
            leader_elector => leader_elector,
        };
        let inner = handle::Inner {
            additions,
            stop: CancellationToken::new(),
            leading: watch::Sender::new(false),
            addresses: watch::Sender::new(Vec::new()),
            own: own.with_client(client.clone()),
            clusters: self.clusters,
        };
        let handle = ManagerHandle { inner: Arc::new(inner) };
        let context = RunContext {
            client,
            recorder,
            clock: self.clock,
            stop: CancellationToken::new(),
            manager: handle.clone(),
            journal: self.journal,
        };
        let lifecycle = Lifecycle::new(self.name.clone(), context, runnables, added)
            .leader_elector(leader_elector)
            .grace(self.grace)
            .signals(self.signals);
        Ok(Manager {
            #[cfg(feature = "logs")]
            name: self.name,
            #[cfg(feature = "logs")]
            owns_process: self.signals,
            lifecycle,
            handle,
        })
    }

    /// Builds the manager and runs it; see [`Manager::run`].
    pub async fn run(self) -> Result<(), Error> {
        self.build().await?.run().await
    }
}

impl std::fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Manager").field(&self.handle).finish()
    }
}

fn check_unique_names(runnables: &[Box<dyn Runnable>]) -> Result<(), ManagerError> {
    let mut names = HashSet::new();
    let twice = runnables.iter().map(|runnable| runnable.name()).find(|name| !names.insert(name.clone()));
    twice.map_or(Ok(()), |runnable| Err(ManagerError::SameName { runnable }))
}
