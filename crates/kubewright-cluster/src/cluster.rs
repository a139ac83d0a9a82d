//! In-process cluster: an API server and a manager that runs the built-in controllers.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kubewright::{
    Clock,
    client::Clients,
    manager::{Manager, ManagerHandle},
};
use kubewright_apiserver::{ApiServer, RunningServer, StartError};
use tokio::task::JoinHandle;

use crate::{
    ControllerContext,
    fork::StartOptions,
    harness::{ChangeWatcher, Changes, Journals},
    lifecycle,
    nodes::{self, NodeTemplate},
    objects::FIELD_MANAGER,
    policy, services,
    volumes::{self, provisioner},
    workloads,
    writes::ignore_already_exists,
};

/// Error of starting or forking a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The API server did not start.
    #[error(transparent)]
    Server(#[from] StartError),
    /// The built-in controllers did not start.
    #[error("the built-in controllers did not start: {0}")]
    Controllers(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The storage of an attached cluster is not in this process.
    #[error("an attached cluster cannot be forked: its storage is not in this process")]
    Attached,
    /// The built-in controllers did not start in time.
    #[error("the built-in controllers have not started after {0:?}; the log says what they wait for")]
    StartTimeout(Duration),
}

/// Selection of the built-in controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Controllers {
    /// No controllers: an API server only, as in envtest.
    None,
    /// All controllers.
    #[default]
    All,
}

/// Builder of a [`Cluster`].
#[derive(Debug)]
#[must_use = "a cluster does nothing until it is started"]
pub struct ClusterBuilder {
    server: kubewright_apiserver::ApiServerBuilder,
    controllers: Controllers,
    nodes: u32,
    /// Start of virtual time, if time is virtual.
    start: Option<Timestamp>,
    /// Whether [`Cluster::advance`] may move the runtime's time of an attached cluster.
    fast_forward: bool,
}

impl ClusterBuilder {
    /// Sets the API server; by default one with default settings.
    pub fn server(mut self, server: kubewright_apiserver::ApiServerBuilder) -> Self {
        self.server = server;
        self
    }

    /// Selects the built-in controllers; all by default.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// Sets the number of simulated nodes; none by default. With nodes there is also a default
    /// `StorageClass`, `standard`.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    /// Uses a clock that starts at `start` and follows `tokio::time`: with a paused runtime an hour costs
    /// nothing.
    pub fn virtual_time(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// Lets [`advance`](Cluster::advance) move the time of the runtime, which must belong to the test alone.
    #[cfg(feature = "real")]
    pub(crate) fn fast_forward(mut self) -> Self {
        self.fast_forward = true;
        self
    }

    /// Splits the builder into the server, the options and their common clock.
    fn options(self) -> (kubewright_apiserver::ApiServerBuilder, StartOptions, Clock) {
        let Self { server, controllers, nodes, start, .. } = self;
        let options = StartOptions { controllers, nodes, virtual_time: start.is_some(), fast_forward: false };
        match start {
            None => (server, options, Clock::system()),
            Some(start) => (server.clock(Clock::starting_at(start)), options, Clock::starting_at(start)),
        }
    }

    /// Starts the cluster in this process, without sockets.
    pub async fn start(self) -> Result<Cluster, ClusterError> {
        let (server, options, clock) = self.options();
        Cluster::from_server(Server::InProcess(Box::new(server.in_process()?)), options, clock).await
    }

    /// Attaches to a control plane that runs elsewhere, with its own controllers and time: only the simulated
    /// nodes and a volume provisioner are started, as ordinary clients. The builder's server, controllers and
    /// [virtual time](Self::virtual_time) are ignored.
    ///
    /// For tests that compare with a real control plane: all of [`harness`](crate::harness) works on it; see
    /// [`advance`](Cluster::advance) for time. Its clock starts at the system time and follows `tokio::time`.
    pub async fn attach(self, client: kube::Client) -> Result<Cluster, ClusterError> {
        let watcher = ChangeWatcher::start(&client).await;
        let watcher = watcher.map_err(|error| ClusterError::Controllers(error.into()))?;
        let Self { nodes, fast_forward, .. } = self;
        let options =
            StartOptions { controllers: Controllers::None, nodes, virtual_time: false, fast_forward };
        Cluster::from_server(Server::Attached(watcher), options, Clock::starting_at(Timestamp::now())).await
    }

    /// Starts the cluster with its API server listening on TLS.
    pub async fn serve(self) -> Result<Cluster, ClusterError> {
        let (server, options, clock) = self.options();
        Cluster::from_server(Server::Listening(Box::new(server.start().await?)), options, clock).await
    }
}

#[derive(Debug)]
pub(crate) enum Server {
    InProcess(Box<ApiServer>),
    Listening(Box<RunningServer>),
    /// A control plane elsewhere, and its observed changes.
    Attached(ChangeWatcher),
}

impl Server {
    /// The API server, unless the cluster is attached.
    fn embedded(&self) -> Option<&ApiServer> {
        match self {
            Self::InProcess(server) => Some(server),
            Self::Listening(server) => Some(server.server()),
            Self::Attached(_) => None,
        }
    }

    fn client(&self) -> kube::Client {
        match self {
            Self::InProcess(server) => server.client(),
            Self::Listening(server) => server.server().client(),
            Self::Attached(watcher) => watcher.client(),
        }
    }

    fn changes(&self) -> Changes {
        match self {
            Self::InProcess(server) => Changes::stored(server),
            Self::Listening(server) => Changes::stored(server.server()),
            Self::Attached(watcher) => Changes::Watched(watcher.clone()),
        }
    }
}

/// Running cluster. Dropping it stops everything at once; [`stop`](Self::stop) lets writes finish.
#[derive(Debug)]
pub struct Cluster {
    /// Declared before the server, so that controllers are dropped first.
    controllers: Option<Running>,
    server: Server,
    options: StartOptions,
    clients: Clients,
    clock: Clock,
    journals: Journals,
    /// When the cluster was ready.
    began: Timestamp,
    changes: Changes,
}

#[derive(Debug)]
struct Running {
    manager: ManagerHandle,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Time-out for the start of the controllers.
const START_TIMEOUT: Duration = Duration::from_mins(1);

impl Cluster {
    /// Creates a builder.
    ///
    /// ```
    /// use kube::Api;
    /// use kubewright::k8s_openapi::api::core::v1::ServiceAccount;
    /// use kubewright_cluster::Cluster;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cluster = Cluster::builder().start().await?;
    /// let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), "default");
    /// # for _ in 0..500 {
    /// #     if accounts.get_opt("default").await?.is_some() { break }
    /// #     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    /// # }
    /// assert!(accounts.get("default").await.is_ok()); // created by a controller
    /// cluster.stop().await;
    /// # Ok(()) }
    /// ```
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            server: ApiServer::builder(),
            controllers: Controllers::All,
            nodes: 0,
            start: None,
            fast_forward: false,
        }
    }

    /// Starts a cluster in this process with all controllers and no nodes.
    pub async fn start() -> Result<Self, ClusterError> {
        Self::builder().start().await
    }

    /// Boxed: tests would compile all controllers once more, because the body of an `async fn` is compiled where it is
    /// polled.
    pub(crate) fn from_server(
        server: Server,
        options: StartOptions,
        clock: Clock,
    ) -> BoxFuture<'static, Result<Self, ClusterError>> {
        Box::pin(async move {
            let journals = Journals::default();
            let running = match options {
                StartOptions { controllers: Controllers::None, nodes: 0, .. } => None,
                options => Some(run(&server, options, &clock, &journals).await?),
            };
            let clients = Clients::new(server.client());
            let (began, changes) = (clock.now(), server.changes());
            Ok(Self { controllers: running, server, options, clients, clock, journals, began, changes })
        })
    }

    /// A client with the rights of a cluster administrator.
    pub fn client(&self) -> kube::Client {
        self.server.client()
    }

    /// Typed, dynamic and discovery clients.
    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn journals(&self) -> &Journals {
        &self.journals
    }

    pub(crate) fn options(&self) -> StartOptions {
        self.options
    }

    /// The API server, unless the cluster is attached.
    pub(crate) fn embedded(&self) -> Option<&ApiServer> {
        self.server.embedded()
    }

    pub(crate) fn began(&self) -> Timestamp {
        self.began
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The API server.
    ///
    /// # Panics
    /// On a cluster that is [attached](ClusterBuilder::attach): its API server is not in this process.
    pub fn server(&self) -> &ApiServer {
        self.server.embedded().expect("the API server of an attached cluster is not in this process")
    }

    /// Whether the control plane runs elsewhere; see [`ClusterBuilder::attach`].
    pub fn is_attached(&self) -> bool {
        self.server.embedded().is_none()
    }

    /// The API server with its address and kubeconfig, if it listens.
    pub fn listening(&self) -> Option<&RunningServer> {
        match &self.server {
            Server::InProcess(_) | Server::Attached(_) => None,
            Server::Listening(server) => Some(server),
        }
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Stops the controllers, then the API server.
    pub async fn stop(self) {
        let Self { controllers, server, .. } = self;
        if let Some(mut running) = controllers {
            running.manager.stop();
            // The manager has its own grace period.
            let _ = (&mut running.task).await;
        }
        if let Server::Listening(server) = server {
            server.stop().await;
        }
    }
}

async fn run(
    server: &Server,
    options: StartOptions,
    clock: &Clock,
    journals: &Journals,
) -> Result<Running, ClusterError> {
    let StartOptions { controllers, nodes: count, .. } = options;
    let certificate = match server {
        Server::InProcess(_) | Server::Attached(_) => "",
        Server::Listening(server) => server.certificate(),
    };
    let cluster = ControllerContext::new(&server.client(), clock).with_certificate(certificate);
    let mut manager = Manager::builder(FIELD_MANAGER)
        .caches(cluster.caches())
        .clock(clock.clone())
        .signals(false)
        .journal(&journals.controllers)
        .grace(Duration::from_secs(5));
    if controllers == Controllers::All {
        manager = lifecycle::register(manager, &cluster);
        if count > 0 {
            manager = manager.controller(lifecycle::node_health::controller());
        }
        manager = services::register(manager, &cluster);
        manager = volumes::register(manager, &cluster);
        manager = policy::register(manager, &cluster);
        manager = workloads::register(manager, &cluster);
    }
    if count > 0 {
        manager = nodes::register(manager, &cluster, count, NodeTemplate::default());
        if let Server::Attached(_) = server {
            // Simulated nodes need a node lifecycle controller and a provisioner that know them.
            manager = manager.controller(lifecycle::node_health::controller());
            manager = volumes::stand_in::register(manager);
        }
    }
    if controllers == Controllers::All {
        // Last, so that every handler is registered before the first kind is listed.
        manager = manager.runnable(cluster.monitors().clone());
    }
    let manager = manager.build().await.map_err(|error| ClusterError::Controllers(error.into()))?;
    let handle = manager.handle();
    let task = tokio::spawn({
        let cluster = Arc::new(cluster);
        async move {
            if let Err(error) = manager.run().await {
                tracing::error!(%error, "the built-in controllers have stopped");
            }
            drop(cluster);
        }
    });
    let running = Running { manager: handle.clone(), task };
    if tokio::time::timeout(START_TIMEOUT, handle.elected()).await.is_err() {
        return Err(ClusterError::StartTimeout(START_TIMEOUT));
    }
    if count > 0 {
        let class = provisioner::standard_class();
        ignore_already_exists(handle.own_cluster().client().create(&class).await)
            .map_err(|error| ClusterError::Controllers(error.into()))?;
    }
    Ok(running)
}
