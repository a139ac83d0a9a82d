//! Describing a manager.

use std::{collections::HashSet, sync::Arc, time::Duration};

use indexmap::IndexMap;
use kube::Resource;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Candidacy, Cluster, ManagerError, ManagerHandle, RunContext, Runnable,
    cluster::Caching,
    defaults::{Events, Serving, default_endpoint},
    election::LeaderElection,
    handle,
    lifecycle::Lifecycle,
    serve::{Checks, Endpoint},
};
#[cfg(feature = "logs")]
use crate::telemetry::Telemetry;
use crate::{
    Clock, Error, Object,
    cache::{CacheOptions, Caches, IndexFn, Lazy},
    client::{CachedClient, Clients, Transport},
    controller::{Controller, EventSink, Journal},
    events::EventBroadcaster,
};

type Configure = Box<dyn FnOnce(&Caches) -> Result<(), Error> + Send>;

/// A manager that is being described; end with [`run`](Self::run), or with [`build`](Self::build) for a handle first.
#[must_use = "a manager does nothing until it runs"]
pub struct ManagerBuilder {
    name: String,
    client: Option<Transport>,
    caches: Option<Caches>,
    namespaces: Vec<String>,
    configure: Vec<Configure>,
    indexes: Vec<Configure>,
    clusters: IndexMap<String, Cluster>,
    runnables: Vec<Box<dyn Runnable>>,
    recorder: Option<Arc<dyn EventSink>>,
    component: Option<String>,
    candidacy: Option<Box<dyn Candidacy>>,
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

/// A manager that is ready to run.
///
/// See the page of the [module](super) for what it promises.
pub struct Manager {
    #[cfg(feature = "logs")]
    name: String,
    #[cfg(feature = "logs")]
    owns_process: bool,
    lifecycle: Lifecycle,
    handle: ManagerHandle,
}

impl Manager {
    /// Describes a manager. The name is the field owner of what it writes, unless a controller says otherwise.
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
            candidacy: None,
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

    /// A handle to the manager: its client, its clusters, and what can be done while it runs.
    pub fn handle(&self) -> ManagerHandle {
        self.handle.clone()
    }

    /// The client of the manager's own cluster. Reads wait until the manager runs.
    pub fn client(&self) -> &CachedClient {
        self.handle.own_cluster().client()
    }

    /// Runs until a signal, a failure or [`ManagerHandle::stop`], and stops everything in order.
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
    /// The cluster to work in, by a [`Transport`] or a [`kube::Client`]; by default what the kubeconfig or the Pod's own
    /// account say. Of the two the former is cheaper: it has no queue that every write and every event has to go through.
    pub fn client(mut self, client: impl Into<Transport>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Caches that were set up before, and the cluster that they follow.
    pub fn caches(mut self, caches: &Caches) -> Self {
        self.caches = Some(caches.clone());
        self
    }

    /// Caches only these namespaces.
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// What to cache of a kind: namespaces, selectors, transform, form.
    pub fn cache<K>(mut self, options: CacheOptions<K>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.configure.push(Box::new(|caches| Ok(caches.configure(options)?)));
        self
    }

    /// Adds an index to the cache of a kind, by a function: what [`List::by_index`](crate::client::cached::List::by_index) asks.
    pub fn index<K>(mut self, index: IndexFn<Lazy<K>>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.indexes.push(Box::new(move |caches| Ok(caches.of::<K>().add_index(&index)?)));
        self
    }

    /// Holds the caches of another cluster too.
    pub fn cluster(mut self, cluster: &Cluster) -> Self {
        self.clusters.insert(cluster.name().to_owned(), cluster.clone());
        self
    }

    /// Runs a controller.
    pub fn controller(self, controller: Controller) -> Self {
        self.runnable(controller)
    }

    /// Runs something else.
    pub fn runnable(mut self, runnable: impl Runnable) -> Self {
        self.runnables.push(Box::new(runnable));
        self
    }

    /// Whether, of several replicas, only one runs the controllers; the Lease has the manager's name and is in the
    /// namespace of the client. [`candidacy`](Self::candidacy) takes an election with other settings.
    pub fn leader_election(mut self, elect: bool) -> Self {
        self.leader_election = elect;
        self
    }

    /// Where `/healthz`, `/readyz` and `/metrics` are served: an address such as `:8080`, `0` for nowhere, or an
    /// [`Endpoint`] with TLS and protected metrics. An address that is in use is an error.
    ///
    /// Unless said otherwise it is `:8080`, or what the variable `KUBEWRIGHT_SERVE` says; for a manager
    /// [without signals](Self::signals), nowhere.
    pub fn serve(mut self, endpoint: impl Into<Endpoint>) -> Self {
        self.serve = Some(endpoint.into());
        self
    }

    /// Serves `/metrics` here, and not with the probes.
    pub fn metrics(mut self, endpoint: impl Into<Endpoint>) -> Self {
        self.metrics = Some(endpoint.into());
        self
    }

    /// What must be so for `/healthz` to be well: when it is not, the kubelet starts the process anew.
    pub fn healthz<F>(self, name: &str, check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), tower::BoxError>> + Send + 'static,
    {
        self.healthz.add(name, check);
        self
    }

    /// What else must be so for `/readyz` to be well. The check `caches` is there anyway: it fails while a cache that was
    /// asked for is not filled. An operator that can do without one of its kinds for long leaves it out of its probe:
    /// `/readyz?exclude=caches`.
    pub fn readyz<F>(self, name: &str, check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), tower::BoxError>> + Send + 'static,
    {
        self.readyz.add(name, check);
        self
    }

    /// The component that events name as their source; by default the manager's name.
    pub fn events_from(mut self, component: &str) -> Self {
        self.component = Some(component.to_owned());
        self
    }

    /// Where events about objects go; by default to the API server, where `kubectl describe` shows them.
    pub fn recorder(mut self, recorder: impl EventSink) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Who decides whether this replica runs the elected; by default it does.
    pub fn candidacy(mut self, candidacy: impl Candidacy) -> Self {
        self.candidacy = Some(Box::new(candidacy));
        self
    }

    /// The time that is written into objects.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How long what runs may take to finish; 30 seconds unless said otherwise.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Whether SIGTERM and SIGINT stop the manager; they do unless said otherwise.
    ///
    /// Whoever minds the signals owns the process: such a manager also writes the log to standard error as `RUST_LOG`
    /// says, unless there is a subscriber already ([`telemetry`](crate::telemetry)), and [serves](Self::serve) probes and
    /// metrics. Say `false` for a manager that is a guest in another program, and in tests: it then leaves all of that
    /// alone.
    pub fn signals(mut self, signals: bool) -> Self {
        self.signals = signals;
        self
    }

    /// Where the controllers write down what they did; by default nowhere.
    pub fn journal(mut self, journal: &Journal) -> Self {
        self.journal = Some(journal.clone());
        self
    }

    /// The manager, before it runs.
    pub async fn build(self) -> Result<Manager, Error> {
        let mut caches = match (self.caches, self.client) {
            (Some(caches), _) => caches,
            (None, Some(client)) => Caches::new(client),
            (None, None) => Caches::new(Clients::try_default().await?.transport().clone()),
        };
        if !self.namespaces.is_empty() {
            caches = caches.namespaces(self.namespaces);
        }
        // An index makes the cache of its kind: what is cached has to be said by then.
        for configure in self.configure.into_iter().chain(self.indexes) {
            configure(&caches)?;
        }
        let own = Cluster::over(&self.name, &caches);
        let kube = caches.client().clone();
        let client = own.client().field_owner(&self.name);
        let (additions, added) = mpsc::unbounded_channel();
        let mut runnables = self.runnables;
        for cluster in self.clusters.values().chain([&own]) {
            runnables.push(Box::new(Caching(cluster.clone())));
        }
        let mut announcer = None;
        let recorder = self.recorder.unwrap_or_else(|| {
            let events =
                EventBroadcaster::builder(caches.transport().clone()).clock(self.clock.clone()).start();
            let recorder = events.recorder(self.component.as_ref().unwrap_or(&self.name));
            announcer = Some(recorder.clone());
            runnables.push(Box::new(Events(events)));
            Arc::new(recorder)
        });
        let probes = self.serve.unwrap_or_else(|| default_endpoint(self.signals));
        let serving = Serving::new(probes, self.metrics, self.healthz, self.readyz);
        let clusters = self.clusters.values().chain([&own]).cloned().collect();
        runnables.push(Box::new(serving.ready_when_filled(clusters)));
        runnables.push(Box::new(serving));
        refuse_same_names(&runnables)?;
        let candidacy = match self.candidacy {
            None if self.leader_election => {
                let mut election = LeaderElection::builder(kube, &self.name).clock(self.clock.clone());
                if let Some(announcer) = announcer {
                    election = election.recorder(announcer);
                }
                Some(Box::new(election.build()?) as Box<dyn Candidacy>)
            }
            candidacy => candidacy,
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
            .candidacy(candidacy)
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

fn refuse_same_names(runnables: &[Box<dyn Runnable>]) -> Result<(), ManagerError> {
    let mut names = HashSet::new();
    let twice = runnables.iter().map(|runnable| runnable.name()).find(|name| !names.insert(name.clone()));
    twice.map_or(Ok(()), |runnable| Err(ManagerError::SameName { runnable }))
}
