//! A Kubernetes cluster in a process: the embedded API server, the built-in controllers and simulated nodes.
//!
//! The controllers here are kubewright controllers like anybody else's: they read from caches, write through clients and
//! are run by a manager. What each of them decides is written as plain functions from objects to writes, so that the
//! decision can be read and tested without a cluster.
//!
//! - [`Cluster`]: begin here. [`harness`] is what tests do with it, [`test`](macro@test) gives them one.
//! - [`fork`]: clusters that begin where another one was.
//! - [`workloads`], [`lifecycle`], [`services`], [`volumes`], [`policy`]: the controllers, a room each.
//! - [`nodes`]: a scheduler and kubelets that simulate.
//! - [`Parts`]: what they share.

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
pub mod events;
pub mod fork;
pub mod harness;
pub mod lifecycle;
pub mod nodes;
mod objects;
mod parts;
pub mod policy;
pub mod services;
#[cfg(feature = "test")]
pub mod testing;
pub mod volumes;
pub mod workloads;
mod writes;

pub use cluster::{Cluster, ClusterBuilder, ClusterError, Controllers};
pub use fork::Frozen;
pub use harness::{HarnessError, Manifest, Operator};
#[cfg(feature = "test")]
pub use kubewright_macros::test;
pub use parts::Parts;

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
