//! A manager from the inside: adding to it while it runs, and stopping it.

use std::{net::SocketAddr, sync::Arc};

use indexmap::IndexMap;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{Cluster, Runnable};

/// A handle to a manager, running or not. Clones are the same.
#[derive(Clone)]
pub struct ManagerHandle {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) additions: mpsc::UnboundedSender<Box<dyn Runnable>>,
    pub(super) stop: CancellationToken,
    pub(super) leading: watch::Sender<bool>,
    pub(super) addresses: watch::Sender<Vec<SocketAddr>>,
    pub(super) own: Cluster,
    pub(super) clusters: IndexMap<String, Cluster>,
}

/// The manager is not running any more, so nothing can be added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the manager has stopped: nothing can be added to it any more")]
pub struct Stopped;

impl ManagerHandle {
    /// Adds a runnable, such as a controller. It is started when its stage is, or at once if that is past.
    pub fn add(&self, runnable: impl Runnable) -> Result<(), Stopped> {
        self.inner.additions.send(Box::new(runnable)).map_err(|_| Stopped)
    }

    /// Asks the manager to stop; [`run`](super::Manager::run) returns when it has.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Whether this replica leads.
    pub fn is_leading(&self) -> bool {
        *self.inner.leading.borrow()
    }

    /// Waits until this replica leads.
    pub async fn leading(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.leading.subscribe().wait_for(|leading| *leading).await;
    }

    /// Where probes and metrics are served; nowhere before the manager runs, or if that is turned off.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.inner.addresses.borrow().clone()
    }

    /// The manager's own cluster.
    pub fn own_cluster(&self) -> &Cluster {
        &self.inner.own
    }

    /// Another cluster by its name.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.inner.clusters.get(name)
    }
}

impl std::fmt::Debug for ManagerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerHandle").field("leading", &self.is_leading()).finish_non_exhaustive()
    }
}
