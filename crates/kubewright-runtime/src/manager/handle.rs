//! Handle to a manager: adds runnables while it runs, and stops it.

use std::{net::SocketAddr, sync::Arc};

use indexmap::IndexMap;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{ClusterHandle, Runnable};

/// Handle to a manager, running or not. Clones refer to the same manager.
#[derive(Clone)]
pub struct ManagerHandle {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) additions: mpsc::UnboundedSender<Box<dyn Runnable>>,
    pub(super) stop: CancellationToken,
    pub(super) leading: watch::Sender<bool>,
    pub(super) addresses: watch::Sender<Vec<SocketAddr>>,
    pub(super) own: ClusterHandle,
    pub(super) clusters: IndexMap<String, ClusterHandle>,
}

/// Error of adding a runnable to a manager that has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the manager has stopped: no runnable can be added to it")]
pub struct Stopped;

impl ManagerHandle {
    /// Adds a runnable, such as a controller. It starts with its stage, or at once if that stage has started.
    pub fn add(&self, runnable: impl Runnable) -> Result<(), Stopped> {
        self.inner.additions.send(Box::new(runnable)).map_err(|_| Stopped)
    }

    /// Asks the manager to stop; [`run`](super::Manager::run) returns when it has.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Whether this replica leads.
    pub fn is_leader(&self) -> bool {
        *self.inner.leading.borrow()
    }

    /// Waits until this replica leads.
    pub async fn elected(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.leading.subscribe().wait_for(|leading| *leading).await;
    }

    /// The addresses of probes and metrics; empty before the manager runs and when serving is disabled.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.inner.addresses.borrow().clone()
    }

    /// The manager's own cluster.
    pub fn own_cluster(&self) -> &ClusterHandle {
        &self.inner.own
    }

    /// Returns another cluster by its name.
    pub fn cluster(&self, name: &str) -> Option<&ClusterHandle> {
        self.inner.clusters.get(name)
    }
}

impl std::fmt::Debug for ManagerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerHandle").field("leading", &self.is_leader()).finish_non_exhaustive()
    }
}
