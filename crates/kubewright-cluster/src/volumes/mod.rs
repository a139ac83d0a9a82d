//! Volumes: which claim gets which volume, and when either may go.
//!
//! - [`matching`]: the smallest volume that a claim can use.
//! - [`binding`]: the two-sided handshake between a claim and a volume, and what each side is waiting for.
//! - [`provisioner`]: volumes out of nothing, for every storage class, in place of the storage systems that a simulated
//!   cluster does not have.
//! - [`protection`]: finalizers that keep what is in use, and the claim's `Unused` condition.

pub mod binding;
pub mod matching;
pub mod protection;
pub mod provisioner;
