//! A Kubernetes cluster in a process: the embedded API server, the built-in controllers and simulated nodes.
//!
//! The controllers here are kubewright controllers like anybody else's: they read from caches, write through clients and
//! are run by a manager. What each of them decides is written as plain functions from objects to writes, so that the
//! decision can be read and tested without a cluster.
//!
//! - [`Cluster`]: begin here. [`harness`] is what tests do with it, [`test`](macro@test) gives them one.
//! - [`fork`]: clusters that begin where another one was.
//! - [`workloads`], [`lifecycle`], [`services`], [`volumes`], [`policy`]: the controllers, each module with a `register`
//!   function that adds them to a manager.
//! - [`nodes`]: the scheduler and the simulated kubelets.
//! - [`ControllerContext`]: what they share.

// What the attribute expands to names this crate, in its own tests too.
#[cfg(test)]
#[allow(unused_extern_crates, reason = "the lint does not look into expansions")]
extern crate self as kubewright_cluster;

/// Refuses tests on a real control plane where the feature for it is off.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "real")]
macro_rules! __real {
    () => {};
}
/// Refuses tests on a real control plane where the feature for it is off.
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
pub use fork::Frozen;
pub use harness::{HarnessError, Manifest, Operator};
#[cfg(feature = "test")]
pub use kubewright_macros::test;
