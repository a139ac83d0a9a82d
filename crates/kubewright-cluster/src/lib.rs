//! A Kubernetes cluster in a process: the embedded API server, the built-in controllers and simulated nodes.
//!
//! The controllers here are kubewright controllers like anybody else's: they read from caches, write through clients and
//! are run by a manager. What each of them decides is written as plain functions from objects to writes, so that the
//! decision can be read and tested without a cluster.

mod duration;
pub mod nodes;
pub mod workloads;
