//! Workload controllers and simulated nodes on an embedded API server, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod deployments;
mod jobs;
mod sets;
