//! Shared pieces of the benchmarks.

#![allow(clippy::missing_panics_doc)] // a benchmark that cannot go on has nothing better to do

pub mod apiservers;
pub mod arguments;
pub mod chart;
pub mod child;
pub mod etcd;
pub mod foos;
pub mod host;
pub mod load;
pub mod measure;
pub mod mixed;
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
