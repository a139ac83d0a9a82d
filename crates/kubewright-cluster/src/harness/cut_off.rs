//! Operators that die between two writes.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Method, Request};
use kube::client::{Body, Client};
use kubewright::manager::ManagerBuilder;

use super::{HarnessError, Operator};
use crate::Cluster;

/// What an operator writes of itself, and not of what it works on.
const OWN_AFFAIRS: [&str; 2] = ["/leases", "/events"];

impl Cluster {
    /// Runs an operator that gets through with so many writes and no more: the next one waits for an answer that never
    /// comes. Drop it then, and it has died exactly there. Leases and events do not count.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kubewright::manager::ManagerBuilder;
    /// use kubewright_cluster::{Cluster, HarnessError};
    ///
    /// async fn a_copy_that_was_begun_is_finished(cluster: Cluster, copier: fn() -> ManagerBuilder) -> Result<(), HarnessError> {
    ///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;
    ///     for writes in 0..3 {
    ///         let operator = cluster.run_cut_off(copier(), writes).await?;
    ///         cluster.settled().await?;
    ///         drop(operator);
    ///         let _next = cluster.run(copier()).await?;
    ///         cluster.settled().await?;
    ///         assert!(cluster.find::<Secret>("default/a").await?.is_some());
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn run_cut_off(&self, operator: ManagerBuilder, writes: u32) -> Result<Operator, HarnessError> {
        let (client, left) = (self.client(), Arc::new(AtomicU32::new(writes)));
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            let passes = !is_work(&request) || take_one(&left);
            async move {
                if !passes {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        });
        self.run_through(operator, Client::new(service, namespace)).await
    }
}

fn is_work(request: &Request<Body>) -> bool {
    let own = OWN_AFFAIRS.iter().any(|part| request.uri().path().contains(part));
    request.method() != Method::GET && !own
}

fn take_one(left: &AtomicU32) -> bool {
    left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
