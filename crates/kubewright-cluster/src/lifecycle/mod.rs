//! What every cluster does for objects of any kind, and for the first objects of each namespace and node.
//!
//! - [`collector`]: the garbage collector.
//! - [`namespaces`]: the end of a namespace.
//! - [`monitors`]: metadata of every kind, for those who look at all kinds alike.
//! - [`accounts`], [`root_ca`], [`token_secrets`]: what a namespace and its accounts are given.
//! - [`aggregation`]: `ClusterRole`s that are sums of others.
//! - [`pod_gc`], [`expiry`]: sweeps.
//! - [`node_ttl`], [`node_health`]: annotations and taints of nodes.
//!
//! Clean-up after a deleted CRD is not here: the API server does it within the deletion.

pub mod accounts;
pub mod aggregation;
pub mod collector;
pub mod expiry;
pub mod monitors;
pub mod namespaces;
pub mod node_health;
pub mod node_ttl;
pub mod pod_gc;
pub mod root_ca;
pub mod token_secrets;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

/// Adds these controllers to a manager, but for [`node_health`], which is for clusters whose nodes report.
pub fn register(manager: ManagerBuilder, cluster: &ControllerContext) -> ManagerBuilder {
    manager
        .runnable(collector::Collector::new(cluster))
        .controller(namespaces::controller(cluster))
        .controller(accounts::controller())
        .controller(root_ca::controller(cluster))
        .controller(token_secrets::controller(cluster))
        .controller(aggregation::controller())
        .controller(node_ttl::controller())
        .runnable(pod_gc::runnable(cluster))
        .runnable(expiry::runnable(cluster))
}
