//! Leader election: of several replicas, one works.
//!
//! The candidates share a `Lease` (coordination.k8s.io/v1). Whoever is written into it leads, and writes it again every
//! two seconds. A candidate that has seen no change of the Lease for as long as the Lease says takes it over. Lock,
//! fields and timings are client-go's: replicas of a Go operator and of its Rust successor can share one Lease during
//! a roll-out.
//!
//! ```no_run
//! # async fn example(client: kubewright::kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use kubewright::manager::election::LeaderElection;
//!
//! let election = LeaderElection::builder(client, "sample-controller").namespace("shop").build()?;
//! election
//!     .lead(|term| async move {
//!         while term.holds() {
//!             // The work of the leader.
//! #           tokio::task::yield_now().await;
//!         }
//!     })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! - [`LeaderElection::lead`]: wait, lead, run this. The work is dropped when the lease is lost.
//! - [`LeaderElection::acquire`]: wait, and get a [`Leadership`] guard. Dropping it gives the lease back.
//! - [`Term`]: what workers hold. [`Term::holds`] before every write that only a leader may do, [`Term::ended`] or
//!   [`Term::token`] to stop.
//!
//! # Never two at once
//! A term ends at the latest [`renew_deadline`](Builder::renew_deadline) (10 s) after the last renewal that succeeded
//! was *sent*, on the clock that cannot be set back; nobody else takes over before
//! [`lease_duration`](Builder::lease_duration) (15 s) after they have *seen* it. The times inside the Lease are for
//! people and never compared: the clocks of two machines may differ by hours.
//!
//! # Pitfalls
//! - A process that was stopped (`SIGSTOP`, a throttled container) notices the end of its term late, with the first
//!   poll after it is back. [`Term::holds`] reads the time and is right even then; a token that nobody has had the time
//!   to cancel is not.
//! - The clock of a *suspended machine* stands still, on Linux. Where that can happen, or where a request may be on its
//!   way for longer than `lease_duration - renew_deadline`, let what you write to check [`Term::transitions`], which
//!   grows with every new leader.
//! - Identities must be unique. The default has a random part; a fixed one is waited for like a stranger's after a
//!   restart.
//! - Whoever deletes the Lease by hand, or empties its holder, lets somebody in while the old leader still works.

mod candidate;
mod elector;
mod identity;
mod leadership;
mod metrics;
mod record;
#[cfg(test)]
mod tests;

pub use self::{
    elector::{Builder, ElectionError, LeaderElection, LeaseLost},
    leadership::{Leadership, Term},
    metrics::ElectionMetrics,
};
