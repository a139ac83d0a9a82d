//! Volumes: which claim gets which volume, and when either may go.
//!
//! - [`matching`]: the smallest volume that a claim can use.
//! - [`binding`]: the two-sided handshake between a claim and a volume, and what each side is waiting for.
//! - [`provisioner`]: volumes out of nothing, for every storage class, in place of the storage systems that a simulated
//!   cluster does not have.
//! - [`stand_in`]: the provisioner by itself, beside a control plane that binds claims.
//! - [`protection`]: finalizers that keep what is in use, and the claim's `Unused` condition.

pub mod binding;
pub mod controllers;
pub mod matching;
pub mod protection;
pub mod provisioner;
pub mod stand_in;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

/// Adds the volume controllers to a manager.
pub fn register(manager: ManagerBuilder, cluster: &ControllerContext) -> ManagerBuilder {
    manager
        .controller(controllers::claims(cluster))
        .controller(controllers::volumes(cluster))
        .controller(controllers::claim_protection())
        .controller(controllers::volume_protection())
}
