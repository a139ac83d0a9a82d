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
    Parts,
    harness::Journals,
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
    clock: Clock,
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
    /// costs nothing. Say it after [`server`](Self::server).
    pub fn virtual_time(mut self, start: Timestamp) -> Self {
        self.server = self.server.clock(VirtualClock::starting_at(start));
        self.clock = Clock::starting_at(start);
        self
    }

    /// Starts the cluster in this process, without sockets.
    pub async fn start(self) -> Result<Cluster, ClusterError> {
        let Self { server, controllers, nodes, clock } = self;
        let server = Server::InProcess(Box::new(server.in_process()?));
        Cluster::over(server, controllers, nodes, clock).await
    }

    /// Starts the cluster with its API server on TLS.
    pub async fn serve(self) -> Result<Cluster, ClusterError> {
        let Self { server, controllers, nodes, clock } = self;
        let server = Server::Listening(Box::new(server.start().await?));
        Cluster::over(server, controllers, nodes, clock).await
    }
}

#[derive(Debug)]
enum Server {
    InProcess(Box<ApiServer>),
    Listening(Box<RunningServer>),
}

impl Server {
    fn api(&self) -> &ApiServer {
        match self {
            Self::InProcess(server) => server,
            Self::Listening(server) => server.server(),
        }
    }
}

/// A cluster that runs. Dropping it stops everything at once; [`stop`](Self::stop) lets writes finish.
#[derive(Debug)]
pub struct Cluster {
    /// Before the server: controllers stop before what they talk to.
    controllers: Option<Running>,
    server: Server,
    clients: Clients,
    clock: Clock,
    journals: Journals,
    /// When the cluster was ready, and the version that it had then.
    began: (Timestamp, u64),
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
            clock: Clock::system(),
        }
    }

    /// Starts a cluster in this process with all controllers and no nodes.
    pub async fn start() -> Result<Self, ClusterError> {
        Self::builder().start().await
    }

    async fn over(
        server: Server,
        controllers: Controllers,
        nodes: u32,
        clock: Clock,
    ) -> Result<Self, ClusterError> {
        let journals = Journals::default();
        let running = match (controllers, nodes) {
            (Controllers::None, 0) => None,
            _ => Some(run(&server, controllers, nodes, &clock, &journals).await?),
        };
        let clients = Clients::new(server.api().client());
        let began = (clock.now(), server.api().registry().storage.revision());
        Ok(Self { controllers: running, server, clients, clock, journals, began })
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.server.api().client()
    }

    /// Clients of other forms, with what they have discovered.
    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn journals(&self) -> &Journals {
        &self.journals
    }

    pub(crate) fn began(&self) -> (Timestamp, u64) {
        self.began
    }

    /// The API server.
    pub fn server(&self) -> &ApiServer {
        self.server.api()
    }

    /// The API server with its address and kubeconfig, when it listens.
    pub fn listening(&self) -> Option<&RunningServer> {
        match &self.server {
            Server::InProcess(_) => None,
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
    controllers: Controllers,
    count: u32,
    clock: &Clock,
    journals: &Journals,
) -> Result<Running, ClusterError> {
    let certificate = match server {
        Server::InProcess(_) => "",
        Server::Listening(server) => server.certificate(),
    };
    let parts = Parts::new(&server.api().client(), clock, certificate);
    let mut manager = Manager::builder(FIELD_MANAGER)
        .caches(parts.caches())
        .clock(clock.clone())
        .signals(false)
        .journal(&journals.controllers)
        .grace(Duration::from_secs(5));
    if controllers == Controllers::All {
        manager = lifecycle::add(manager, &parts, count > 0);
        manager = services::add(manager, &parts);
        manager = volumes::add(manager, &parts, count > 0);
        manager = policy::add(manager, &parts);
        for controller in workloads::controllers(|component| parts.sink(component)) {
            manager = manager.controller(controller);
        }
    }
    if count > 0 {
        for controller in nodes::controllers(|component| parts.sink(component)) {
            manager = manager.controller(controller);
        }
        manager = manager.runnable(nodes::registration(count, NodeTemplate::default()));
    }
    if controllers == Controllers::All {
        // Last, so that every listener is there before the first kind is listed.
        manager = manager.runnable(parts.monitors().clone());
    }
    let manager = manager.build().await.map_err(|error| ClusterError::Controllers(error.into()))?;
    let handle = manager.handle();
    let task = tokio::spawn({
        let parts = Arc::new(parts);
        async move {
            if let Err(error) = manager.run().await {
                tracing::error!(%error, "the built-in controllers have stopped");
            }
            drop(parts);
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
