//! The workload controllers and simulated nodes, on an embedded API server, in virtual time.

mod cluster;
mod deployments;
mod jobs;
mod sets;
