//! What every cluster does for objects of any kind, and for the first objects of each namespace and node.
//!
//! - [`collector`]: the garbage collector.
//! - [`namespaces`]: the end of a namespace.
//! - [`root_ca`], [`token_secrets`]: what a namespace and its accounts are given.
//! - [`aggregation`]: `ClusterRole`s that are sums of others.
//! - [`pod_gc`], [`expiry`]: sweeps.
//! - [`node_ttl`], [`node_health`]: annotations and taints of nodes.
//!
//! Clean-up after a deleted CRD is not here: the API server does it within the deletion.

pub mod aggregation;
pub mod collector;
pub mod expiry;
pub mod namespaces;
pub mod node_health;
pub mod node_ttl;
pub mod pod_gc;
pub mod root_ca;
pub mod token_secrets;
