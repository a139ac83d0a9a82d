//! Controllers that say how much is left: quotas and disruption budgets.
//!
//! Neither limits anything by itself. Admission charges a quota and eviction charges a budget, both in the object's
//! status; the controllers here count again from what there is, so that the status comes right after deletions, failures
//! and changes by hand.

pub mod controllers;
pub mod disruption;
pub mod pod_usage;
pub mod quota;
pub mod scope;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

/// Adds the quota and disruption controllers to a manager.
pub fn register(manager: ManagerBuilder, cluster: &ControllerContext) -> ManagerBuilder {
    manager.controller(controllers::quotas(cluster)).controller(controllers::budgets(cluster))
}
