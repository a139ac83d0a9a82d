//! Operators at work in a cluster.

use futures::future::BoxFuture;
use kubewright::manager::{ManagerBuilder, ManagerHandle};
use tokio::task::JoinHandle;

use super::HarnessError;
use crate::Cluster;

/// An operator that runs in a cluster. Dropping it kills it, as a node that loses power does;
/// [`stop`](Self::stop) lets it finish, as SIGTERM does.
#[derive(Debug)]
#[must_use = "an operator that is dropped is killed"]
pub struct Operator {
    handle: ManagerHandle,
    task: JoinHandle<Result<(), kubewright::Error>>,
}

impl Operator {
    /// The operator's manager.
    pub fn manager(&self) -> &ManagerHandle {
        &self.handle
    }

    /// Whether it has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Asks it to stop, waits until it has, and says how it ended.
    pub async fn stop(mut self) -> Result<(), HarnessError> {
        self.handle.stop();
        match (&mut self.task).await {
            Ok(ended) => ended.map_err(|error| HarnessError::Operator(error.into())),
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Runs an operator in the cluster, with the cluster's client and time and without signals. What its controllers do
    /// is part of what a failed test prints.
    pub async fn run(&self, operator: ManagerBuilder) -> Result<Operator, HarnessError> {
        self.run_through(operator, self.client()).await
    }

    pub(super) fn run_through(
        &self,
        operator: ManagerBuilder,
        client: kube::Client,
    ) -> BoxFuture<'_, Result<Operator, HarnessError>> {
        Box::pin(async move {
            let manager = operator
                .client(client)
                .clock(self.clock().clone())
                .signals(false)
                .journal(&self.journals().operators);
            let manager = manager.build().await.map_err(|error| HarnessError::Operator(error.into()))?;
            Ok(Operator { handle: manager.handle(), task: tokio::spawn(manager.run()) })
        })
    }
}
