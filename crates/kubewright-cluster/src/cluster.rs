//! The cluster itself: an API server and a manager that runs the built-in controllers.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kubewright::{
    Clock,
    client::Clients,
    manager::{Manager, ManagerHandle},
};
use kubewright_apiserver::{ApiServer, RunningServer, StartError, clock::VirtualClock};
use tokio::task::JoinHandle;

use crate::{
    ControllerContext,
    fork::Plan,
    harness::{Changes, Journals, Watched},
    lifecycle,
    nodes::{self, NodeTemplate},
    objects::FIELD_MANAGER,
    policy, services,
    volumes::{self, provisioner},
    workloads,
    writes::created,
};

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Its API server did not.
    #[error(transparent)]
    Server(#[from] StartError),
    /// Its controllers did not.
    #[error("the built-in controllers did not start: {0}")]
    Controllers(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It cannot be forked: its storage is not ours.
    #[error("an attached cluster is somebody else's and cannot be forked: fork one that runs in the process")]
    Attached,
    /// They took too long.
    #[error("the built-in controllers have not started after {0:?}; the log says what they wait for")]
    Slow(Duration),
}

/// Which of the built-in controllers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// None: an API server by itself, as envtest has it.
    None,
    /// All of them.
    #[default]
    All,
}

/// What a cluster is started with.
#[derive(Debug)]
#[must_use = "a cluster does nothing until it is started"]
pub struct ClusterBuilder {
    server: kubewright_apiserver::Builder,
    controllers: Controllers,
    nodes: u32,
    /// Where virtual time begins, if it is virtual.
    start: Option<Timestamp>,
    /// Whether time may be hurried where it cannot be virtual.
    hurried: bool,
}

impl ClusterBuilder {
    /// The API server; by default one with its own defaults.
    pub fn server(mut self, server: kubewright_apiserver::Builder) -> Self {
        self.server = server;
        self
    }

    /// Which of the built-in controllers run; all of them unless said otherwise.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// How many simulated nodes there are; none unless said otherwise. With nodes there is a default `StorageClass`,
    /// `standard`, too.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    /// Takes all times from a clock that shows `start` now and follows `tokio::time`: with a paused runtime an hour
    /// costs nothing.
    pub fn virtual_time(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// Lets [`advance`](Cluster::advance) move the time of the runtime, which must be that of the test alone.
    #[cfg(feature = "real")]
    pub(crate) fn hurried(mut self) -> Self {
        self.hurried = true;
        self
    }

    /// What there will be, with everything that takes its time from the same clock.
    fn plan(self) -> (kubewright_apiserver::Builder, Plan, Clock) {
        let Self { server, controllers, nodes, start, .. } = self;
        let plan = Plan { controllers, nodes, virtual_time: start.is_some(), hurried: false };
        match start {
            None => (server, plan, Clock::system()),
            Some(start) => (server.clock(VirtualClock::starting_at(start)), plan, Clock::starting_at(start)),
        }
    }

    /// Starts the cluster in this process, without sockets.
    pub async fn start(self) -> Result<Cluster, ClusterError> {
        let (server, plan, clock) = self.plan();
        Cluster::over(Server::InProcess(Box::new(server.in_process()?)), plan, clock).await
    }

    /// Joins a control plane that runs somewhere else, with controllers and a time of its own: what is started is the
    /// simulated nodes and a provisioner for volumes, as ordinary clients of it. Server, controllers and
    /// [virtual time](Self::virtual_time) of the builder mean nothing here.
    ///
    /// Such a cluster is for tests that compare: everything of [`harness`](crate::harness) works on it, and
    /// [`advance`](Cluster::advance) says whose time it is that passes. Its clock shows the machine's time to begin with, and
    /// follows `tokio::time` from there.
    pub async fn attach(self, client: kube::Client) -> Result<Cluster, ClusterError> {
        let watched = Watched::start(&client).await;
        let watched = watched.map_err(|error| ClusterError::Controllers(error.into()))?;
        let Self { nodes, hurried, .. } = self;
        let plan = Plan { controllers: Controllers::None, nodes, virtual_time: false, hurried };
        Cluster::over(Server::Attached(watched), plan, Clock::starting_at(Timestamp::now())).await
    }

    /// Starts the cluster with its API server on TLS.
    pub async fn serve(self) -> Result<Cluster, ClusterError> {
        let (server, plan, clock) = self.plan();
        Cluster::over(Server::Listening(Box::new(server.start().await?)), plan, clock).await
    }
}

#[derive(Debug)]
pub(crate) enum Server {
    InProcess(Box<ApiServer>),
    Listening(Box<RunningServer>),
    /// Somebody else's, and what we see of it.
    Attached(Watched),
}

impl Server {
    /// The server, where it is ours.
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
            Self::Attached(watched) => watched.client(),
        }
    }

    fn changes(&self) -> Changes {
        match self {
            Self::InProcess(server) => Changes::stored(server),
            Self::Listening(server) => Changes::stored(server.server()),
            Self::Attached(watched) => Changes::Watched(watched.clone()),
        }
    }
}

/// A cluster that runs. Dropping it stops everything at once; [`stop`](Self::stop) lets writes finish.
#[derive(Debug)]
pub struct Cluster {
    /// Before the server: controllers stop before what they talk to.
    controllers: Option<Running>,
    server: Server,
    plan: Plan,
    clients: Clients,
    clock: Clock,
    journals: Journals,
    /// When the cluster was ready, and what has changed since.
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

/// How long controllers may take to start.
const START: Duration = Duration::from_mins(1);

impl Cluster {
    /// How a cluster is started.
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
    /// assert!(accounts.get("default").await.is_ok()); // a controller made it
    /// cluster.stop().await;
    /// # Ok(()) }
    /// ```
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            server: ApiServer::builder(),
            controllers: Controllers::All,
            nodes: 0,
            start: None,
            hurried: false,
        }
    }

    /// Starts a cluster in this process with all controllers and no nodes.
    pub async fn start() -> Result<Self, ClusterError> {
        Self::builder().start().await
    }

    pub(crate) async fn over(server: Server, plan: Plan, clock: Clock) -> Result<Self, ClusterError> {
        let journals = Journals::default();
        let running = match plan {
            Plan { controllers: Controllers::None, nodes: 0, .. } => None,
            plan => Some(run(&server, plan, &clock, &journals).await?),
        };
        let clients = Clients::new(server.client());
        let (began, changes) = (clock.now(), server.changes());
        Ok(Self { controllers: running, server, plan, clients, clock, journals, began, changes })
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.server.client()
    }

    /// Clients of other forms, with what they have discovered.
    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn journals(&self) -> &Journals {
        &self.journals
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan
    }

    /// The API server, where it is ours.
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
        self.server.embedded().expect("the API server of an attached cluster is somebody else's")
    }

    /// Whether the control plane is somebody else's, with a time of its own.
    pub fn is_attached(&self) -> bool {
        self.server.embedded().is_none()
    }

    /// The API server with its address and kubeconfig, when it listens.
    pub fn listening(&self) -> Option<&RunningServer> {
        match &self.server {
            Server::InProcess(_) | Server::Attached(_) => None,
            Server::Listening(server) => Some(server),
        }
    }

    /// What time it is in the cluster.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Stops the controllers, then the API server.
    pub async fn stop(self) {
        let Self { controllers, server, .. } = self;
        if let Some(mut running) = controllers {
            running.manager.stop();
            // A manager keeps its own time for this.
            let _ = (&mut running.task).await;
        }
        if let Server::Listening(server) = server {
            server.stop().await;
        }
    }
}

async fn run(
    server: &Server,
    plan: Plan,
    clock: &Clock,
    journals: &Journals,
) -> Result<Running, ClusterError> {
    let Plan { controllers, nodes: count, .. } = plan;
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
    if tokio::time::timeout(START, handle.leading()).await.is_err() {
        return Err(ClusterError::Slow(START));
    }
    if count > 0 {
        let class = provisioner::standard_class();
        created(handle.own_cluster().client().create(&class).await)
            .map_err(|error| ClusterError::Controllers(error.into()))?;
    }
    Ok(running)
}
