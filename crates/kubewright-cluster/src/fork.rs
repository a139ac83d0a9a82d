//! Clusters that begin where another one was.
//!
//! Preparing a cluster can be most of a test: definitions, a filled namespace, a Deployment that is ready. [`Cluster::fork`]
//! makes a second cluster of the same state; what is stored is shared until one of the two changes it, so it costs the same
//! for ten objects and for ten thousand. Its controllers are its own and start anew, as after a restart.
//!
//! [`Cluster::freeze`] is the same for tests that do not share a runtime: a [`Frozen`] cluster is a value that a `static`
//! can hold, and every test thaws its own copy.
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
use kubewright_apiserver::{
    ApiServer,
    clock::{SystemClock, VirtualClock},
};

use crate::{Cluster, ClusterError, Controllers, cluster::Server};

/// How a cluster was started, for those that begin where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) controllers: Controllers,
    pub(crate) nodes: u32,
    pub(crate) virtual_time: bool,
    /// Whether the time of the runtime is a test's to move.
    pub(crate) hurried: bool,
}

/// A cluster that stands still. Clones are the same; none of them changes.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// Nobody writes to it, so it is what it was.
    server: Arc<ApiServer>,
    plan: Plan,
    time: Timestamp,
}

impl Frozen {
    /// A cluster that begins where the frozen one was, with controllers and nodes as that one had them. Virtual time goes
    /// on from there, in the runtime in which this is called.
    pub async fn thaw(&self) -> Result<Cluster, ClusterError> {
        let (server, clock) = if self.plan.virtual_time {
            (self.server.fork(VirtualClock::starting_at(self.time)), Clock::starting_at(self.time))
        } else {
            (self.server.fork(SystemClock), Clock::system())
        };
        Cluster::over(Server::InProcess(Box::new(server)), self.plan, clock).await
    }
}

impl Cluster {
    /// A second cluster that begins where this one is. Neither sees what the other does from then on.
    ///
    /// What is stored now is what the fork begins with: to take along what controllers are about to do, let the cluster
    /// [settle](Self::settled) first. Operators do not come along; [run](Self::run) them in the fork.
    pub async fn fork(&self) -> Result<Self, ClusterError> {
        self.freeze()?.thaw().await
    }

    /// The cluster as it is now, to begin others from.
    pub fn freeze(&self) -> Result<Frozen, ClusterError> {
        let server = self.embedded().ok_or(ClusterError::Attached)?;
        let time = self.clock().now();
        Ok(Frozen { server: Arc::new(server.fork(VirtualClock::starting_at(time))), plan: self.plan(), time })
    }
}
