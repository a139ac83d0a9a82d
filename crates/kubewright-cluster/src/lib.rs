//! In-process Kubernetes cluster: an embedded API server, the built-in controllers and simulated nodes.
//!
//! The controllers are ordinary kubewright controllers: they read from caches, write through clients and are
//! run by a manager. Decisions are plain functions from objects to writes, so that they can be read and
//! tested without a cluster.
//!
//! - [`Cluster`]: entry point. [`harness`] has the methods for tests, [`test`](macro@test) gives a test its
//!   cluster.
//! - [`fork`]: forks and snapshots of clusters.
//! - [`workloads`], [`lifecycle`], [`services`], [`volumes`], [`policy`]: the controllers by topic, each module with a
//!   `register` function that adds them to a manager.
//! - [`nodes`]: the scheduler and simulated kubelets.
//! - [`ControllerContext`]: shared dependencies of the controllers.

// The attribute's expansion names this crate, in its own tests too.
#[cfg(test)]
#[allow(unused_extern_crates, reason = "the lint does not look into expansions")]
extern crate self as kubewright_cluster;

/// Compile error for tests on a real control plane without the feature `real`.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "real")]
macro_rules! __real {
    () => {};
}
/// Compile error for tests on a real control plane without the feature `real`.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "real"))]
macro_rules! __real {
    () => {
        ::core::compile_error!("`real` needs the feature `real` of kubewright-cluster");
    };
}

mod cluster;
mod controller_context;
pub mod events;
pub mod fork;
pub mod harness;
mod indexes;
pub mod lifecycle;
pub mod nodes;
mod objects;
mod pod;
pub mod policy;
pub mod services;
#[cfg(feature = "test")]
pub mod testing;
pub mod volumes;
pub mod workloads;
mod writes;

pub use cluster::{Cluster, ClusterBuilder, ClusterError, Controllers};
pub use controller_context::ControllerContext;
pub use fork::ClusterSnapshot;
pub use harness::{HarnessError, Manifest, Operator};
#[cfg(feature = "test")]
pub use kubewright_macros::test;

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
