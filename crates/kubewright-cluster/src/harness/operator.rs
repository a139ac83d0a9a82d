//! Operators that run in a cluster.

use kubewright::manager::{ManagerBuilder, ManagerHandle};
use tokio::task::JoinHandle;

use super::HarnessError;
use crate::Cluster;

/// Operator that runs in a cluster. Dropping it aborts it, as a crash does; [`stop`](Self::stop) stops it
/// gracefully, as SIGTERM does.
#[derive(Debug)]
#[must_use = "an operator that is dropped is aborted"]
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

    /// Stops the operator gracefully and returns how it ended.
    pub async fn stop(mut self) -> Result<(), HarnessError> {
        self.handle.stop();
        match (&mut self.task).await {
            Ok(ended) => ended.map_err(|error| HarnessError::Operator(error.into())),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Runs an operator in the cluster, with the cluster's client and clock and without signals. The
    /// reconciles of its controllers are part of the report of a failed test.
    pub async fn run(&self, operator: ManagerBuilder) -> Result<Operator, HarnessError> {
        self.run_with_client(operator, self.client()).await
    }

    pub(super) async fn run_with_client(
        &self,
        operator: ManagerBuilder,
        client: kube::Client,
    ) -> Result<Operator, HarnessError> {
        let manager = operator
            .client(client)
            .clock(self.clock().clone())
            .signals(false)
            .journal(&self.journals().operators);
        let manager = manager.build().await.map_err(|error| HarnessError::Operator(error.into()))?;
        Ok(Operator { handle: manager.handle(), task: tokio::spawn(manager.run()) })
    }
}
