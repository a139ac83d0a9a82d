//! The manager: everything an operator runs, started in the right order and stopped in reverse.
//!
//! ```text
//!  up:    Serving ─▶ Webhooks ─▶ Caches ─▶ Others ─▶ (leadership) ─▶ Elected
//!  down:  Elected ─▶ Others ─▶ Caches ─▶ Webhooks ─▶ Serving ─▶ the lease
//! ```
//!
//! - [`Manager::builder`]: begin here; the smallest program is on the page of [`controller`](crate::controller).
//! - [`Runnable`]: whatever else should run: a server, a loop, a controller. [`Stage`] says when.
//! - [`ManagerHandle`]: adds runnables while the manager runs, and stops it.
//! - [`Cluster`]: caches and client of one cluster. A manager has its own and may hold others, to watch across them.
//! - [`Candidacy`]: who decides which replica runs the elected; [`election`] by a Lease.
//!
//! # What is promised
//! - A runnable is started when all of the stage before it are [prepared](Runnable::prepare).
//! - SIGTERM and SIGINT stop the manager. What runs is told, and has 30 seconds to finish; a second signal ends that.
//! - When one runnable fails, all are stopped and its error is the manager's.
//! - When leadership is lost, the elected are dropped at once: another replica may begin any moment.
//!
//! # Pitfalls
//! - A manager that has returned an error should end its process: what was dropped may have left work half done, and the
//!   next start looks at everything again.

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
pub use candidacy::{Candidacy, Tenure};
pub use cluster::Cluster;
pub use handle::{ManagerHandle, Stopped};
pub use lifecycle::ManagerError;
pub use runnable::{Prepare, RunContext, Runnable, Stage, function};
