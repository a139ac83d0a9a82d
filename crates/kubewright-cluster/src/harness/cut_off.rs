//! Operators that crash between two writes.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Method, Request};
use kube::client::{Body, Client};
use kubewright::manager::ManagerBuilder;

use super::{HarnessError, Operator};
use crate::Cluster;

/// Path suffixes of requests that are not counted as work.
const UNCOUNTED: [&str; 2] = ["/leases", "/events"];

impl Cluster {
    /// Runs an operator of which only the first `writes` writes reach the server: the next one waits for
    /// ever. Dropping the operator then simulates a crash at that point. Leases and events are not counted.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kubewright::manager::ManagerBuilder;
    /// use kubewright_cluster::{Cluster, HarnessError};
    ///
    /// async fn a_partial_copy_is_completed(cluster: Cluster, copier: fn() -> ManagerBuilder) -> Result<(), HarnessError> {
    ///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;
    ///     for writes in 0..3 {
    ///         let operator = cluster.run_with_write_limit(copier(), writes).await?;
    ///         cluster.settled().await?;
    ///         drop(operator);
    ///         let _next = cluster.run(copier()).await?;
    ///         cluster.settled().await?;
    ///         assert!(cluster.find::<Secret>("default/a").await?.is_some());
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn run_with_write_limit(
        &self,
        operator: ManagerBuilder,
        writes: u32,
    ) -> Result<Operator, HarnessError> {
        let (client, left) = (self.client(), Arc::new(AtomicU32::new(writes)));
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            let passes = !is_counted(&request) || decrement(&left);
            async move {
                if !passes {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        });
        self.run_with_client(operator, Client::new(service, namespace)).await
    }
}

fn is_counted(request: &Request<Body>) -> bool {
    let uncounted = UNCOUNTED.iter().any(|part| request.uri().path().contains(part));
    request.method() != Method::GET && !uncounted
}

fn decrement(left: &AtomicU32) -> bool {
    left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
