//! Runs the parts of an operator: started in order, stopped in reverse.
//!
//! ```text
//!  up:    Serving ─▶ Webhooks ─▶ Caches ─▶ Others ─▶ (leadership) ─▶ Elected
//!  down:  Elected ─▶ Others ─▶ Caches ─▶ Webhooks ─▶ Serving ─▶ the lease
//! ```
//!
//! - [`Manager::builder`]: entry point; the [`controller`](crate::controller) module has a whole program.
//! - [`Runnable`]: anything else to run, such as a server or a loop. [`Stage`] is its place in the order.
//! - [`ManagerHandle`]: adds runnables while the manager runs, and stops it.
//! - [`ClusterHandle`]: caches and client of one cluster. A manager has its own, and may run others to watch
//!   across clusters.
//! - [`LeaderElector`]: decides which replica runs the leader-elected stage; [`election`] does so by a Lease.
//!
//! # Guarantees
//! - A stage starts when all runnables of the stage before are [prepared](Runnable::prepare).
//! - SIGTERM and SIGINT stop the manager: runnables have 30 seconds to stop; a second signal aborts them.
//! - When one runnable fails, all are stopped and the manager returns its error.
//! - When leadership is lost, leader-elected runnables are aborted at once: another replica may start any
//!   moment.
//!
//! # Pitfalls
//! - End the process when the manager has returned an error: aborted runnables may have left work half done,
//!   which the next start reconciles.

mod builder;
mod candidacy;
mod cluster;
mod defaults;
pub mod election;
mod handle;
mod lifecycle;
mod runnable;
pub mod serve;
mod signals;

pub use builder::{Manager, ManagerBuilder};
pub use candidacy::{HeldLease, LeaderElector};
pub use cluster::ClusterHandle;
pub use handle::{ManagerHandle, Stopped};
pub use lifecycle::ManagerError;
pub use runnable::{RunContext, Runnable, RunnableFuture, Stage, runnable_fn};
