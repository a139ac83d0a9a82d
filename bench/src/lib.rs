//! Shared pieces of the benchmarks.

pub mod apiservers;
pub mod arguments;
pub mod chart;
pub mod child;
pub mod etcd;
pub mod foos;
pub mod host;
pub mod measure;
pub mod objects;
pub mod plan;
pub mod pods;
pub mod report;
pub mod requests;
pub mod results;
pub mod serve;
pub mod table;
pub mod targets;
pub mod workload;
