#![doc = include_str!("../README.md")]
//!
//! Controllers and the manager that runs them: cached client, events, leader election, metrics and health.
//!
//! ```text
//!  caches ──events──▶ predicates ──▶ handlers ──keys──▶ work queue ──▶ workers ──▶ reconciler ──writes──▶ API server
//! ```
//!
//! - [`client`]: reads from caches, never older than its own writes; writes to the server.
//! - [`controller`]: watches, predicates, handlers, workers and the context that a reconciler gets.
//! - [`manager`]: everything of a program, started in order and stopped in reverse; leader election; serving.
//! - [`events`]: Kubernetes events with correlation and rate limits.
//! - [`telemetry`]: log and spans of a program.
//!
//! Operators use these through the `kubewright` façade.

pub mod client;
pub mod controller;
mod error;
pub mod events;
pub mod manager;
#[cfg(feature = "logs")]
pub mod telemetry;

pub use error::{Error, Help, Result};
