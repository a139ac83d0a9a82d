//! Forks and snapshots of clusters.
//!
//! Preparing a cluster can be most of a test: definitions, a filled namespace, a Deployment that is ready.
//! [`Cluster::fork`] starts a second cluster with the same state. Storage is shared copy-on-write, so the
//! cost does not depend on the number of objects. The fork has controllers of its own, which start as after a
//! restart.
//!
//! [`Cluster::snapshot`] does the same for tests that do not share a runtime: a [`ClusterSnapshot`] is a
//! value for a `static`, from which each test starts its own copy.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_cluster::{Cluster, ClusterError};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let prepared = Cluster::start().await?;
//! prepared.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: colours}}").await?;
//!
//! let fork = prepared.fork().await?;
//! fork.delete::<ConfigMap>("default/colours").await?;
//! assert!(prepared.find::<ConfigMap>("default/colours").await?.is_some());
//! # Ok(()) }
//! ```

use std::sync::Arc;

use jiff::Timestamp;
use kubewright::Clock;
use kubewright_apiserver::ApiServer;

use crate::{Cluster, ClusterError, Controllers, cluster::Server};

/// Options that a cluster was started with, and its forks are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOptions {
    pub(crate) controllers: Controllers,
    pub(crate) nodes: u32,
    pub(crate) virtual_time: bool,
    /// Whether [`Cluster::advance`] may move the runtime's time.
    pub(crate) fast_forward: bool,
}

/// Immutable state of a cluster. Clones share it.
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    /// Never written to.
    server: Arc<ApiServer>,
    options: StartOptions,
    time: Timestamp,
}

impl ClusterSnapshot {
    /// Starts a cluster from the snapshot, with the same controllers and nodes. Virtual time continues from
    /// the snapshot, in the current runtime.
    pub async fn start(&self) -> Result<Cluster, ClusterError> {
        let (server, clock) = if self.options.virtual_time {
            (self.server.fork(Clock::starting_at(self.time)), Clock::starting_at(self.time))
        } else {
            (self.server.fork(Clock::system()), Clock::system())
        };
        Cluster::from_server(Server::InProcess(Box::new(server)), self.options, clock).await
    }
}

impl Cluster {
    /// Starts a second cluster from the current state. The two are independent from then on.
    ///
    /// The fork has what is stored now: let the cluster [settle](Self::settled) first to include pending work
    /// of controllers. Operators are not forked; [run](Self::run) them in the fork.
    pub async fn fork(&self) -> Result<Self, ClusterError> {
        self.snapshot()?.start().await
    }

    /// Takes a snapshot of the current state, to start other clusters from.
    pub fn snapshot(&self) -> Result<ClusterSnapshot, ClusterError> {
        let server = self.embedded().ok_or(ClusterError::Attached)?;
        let time = self.clock().now();
        Ok(ClusterSnapshot {
            server: Arc::new(server.fork(Clock::starting_at(time))),
            options: self.options(),
            time,
        })
    }
}
