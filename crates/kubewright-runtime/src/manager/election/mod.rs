//! Leader election: of several replicas, one leads.
//!
//! The candidates share a `Lease` (coordination.k8s.io/v1). Its holder leads and renews it every two seconds.
//! A candidate that has seen no change of the Lease for its lease duration takes it over. Lock, fields and
//! timings are client-go's: replicas of a Go operator and of its Rust successor can share one Lease during a
//! roll-out.
//!
//! ```no_run
//! # async fn example(client: kubewright::kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use kubewright::manager::election::LeaderElection;
//!
//! let election = LeaderElection::builder(client, "sample-controller").namespace("shop").build()?;
//! election
//!     .lead(|leadership| async move {
//!         while leadership.is_leader() {
//!             // The work of the leader.
//! #           tokio::task::yield_now().await;
//!         }
//!     })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! - [`LeaderElection::lead`]: waits, then runs a future while leading. It is dropped when the lease is lost.
//! - [`LeaderElection::acquire`]: waits and returns a [`Leadership`] guard. Dropping it releases the lease.
//! - [`LeadershipHandle`]: for the leader's work. Check [`is_leader`](LeadershipHandle::is_leader) before
//!   every write that only the leader may do; [`ended`](LeadershipHandle::ended) and
//!   [`cancellation_token`](LeadershipHandle::cancellation_token) tell when to stop.
//!
//! # At most one leader
//! A leader stops leading at the latest [`renew_deadline`](LeaderElectionBuilder::renew_deadline) (10 s)
//! after its last successful renewal was *sent*, on a monotonic clock; no other candidate takes over before
//! [`lease_duration`](LeaderElectionBuilder::lease_duration) (15 s) after it has *seen* that renewal. The
//! timestamps in the Lease are informational and never compared, so the clocks of machines may differ.
//!
//! # Pitfalls
//! - A process that was stopped (`SIGSTOP`, a throttled container) notices the loss of its lease late, with
//!   its first poll. [`is_leader`](LeadershipHandle::is_leader) reads the clock and is right even then; a
//!   token that has not been cancelled yet is not.
//! - The monotonic clock of a *suspended machine* stands still on Linux. Where that can happen, or where a
//!   request may be in flight for longer than `lease_duration - renew_deadline`, use
//!   [`transitions`](LeadershipHandle::transitions) as a fencing token.
//! - Identities must be unique. The default has a random part; with a fixed one, a restarted candidate waits
//!   for its own lease to expire.
//! - Deleting the Lease by hand, or emptying its holder, lets another candidate lead while the old leader
//!   still works.

mod candidate;
mod elector;
mod identity;
mod leadership;
mod metrics;
mod record;
#[cfg(test)]
mod tests;

pub use self::{
    elector::{ElectionError, LeaderElection, LeaderElectionBuilder, LeaseLost},
    leadership::{Leadership, LeadershipHandle},
    metrics::ElectionMetrics,
};
