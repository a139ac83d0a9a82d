//! Volumes: which claim gets which volume, and when either may go.
//!
//! - [`matching`]: the smallest volume that a claim can use.
//! - [`binding`]: the two-sided handshake between a claim and a volume, and what each side is waiting for.
//! - [`provisioner`]: volumes out of nothing, for every storage class, in place of the storage systems that a simulated
//!   cluster does not have.
//! - [`protection`]: finalizers that keep what is in use, and the claim's `Unused` condition.

pub mod binding;
pub mod controllers;
pub mod matching;
pub mod protection;
pub mod provisioner;

use kubewright::manager::ManagerBuilder;

use crate::Parts;

/// Adds these controllers to a manager. `simulated` is for clusters whose nodes are: there a pod waits for its claims
/// and a claim cannot wait for its pod's node.
pub fn add(manager: ManagerBuilder, parts: &Parts, simulated: bool) -> ManagerBuilder {
    manager
        .controller(controllers::claims(parts, simulated))
        .controller(controllers::volumes(parts))
        .controller(controllers::claim_protection())
        .controller(controllers::volume_protection())
}
