//! Shared pieces of the benchmarks.

pub mod pods;
pub mod report;
pub mod serve;
pub mod workload;
