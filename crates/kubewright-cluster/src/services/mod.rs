//! Which addresses are behind a Service.
//!
//! - [`endpoint`]: what one pod is for one Service: addresses, ports, conditions.
//! - [`slices`]: the `EndpointSlice`s of a Service with a selector.
//! - [`legacy`]: the `Endpoints` object of the same Service, for clients that still read it.
//! - [`mirror`]: slices for `Endpoints` that somebody wrote by hand for a Service without a selector.
//!
//! All of it is arithmetic on objects: the [`controllers`] read the caches, ask these plans, and write what they say.

pub mod controllers;
pub mod endpoint;
pub mod legacy;
pub mod mirror;
pub mod slices;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

/// Adds the controllers of Services to a manager.
pub fn register(manager: ManagerBuilder, cluster: &ControllerContext) -> ManagerBuilder {
    manager
        .controller(controllers::endpoint_slices(cluster))
        .controller(controllers::endpoints())
        .controller(controllers::mirroring(cluster))
}
