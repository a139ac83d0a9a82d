//! A small platform as one object: a CloudManager has a front end, an identity service and a database.
//!
//! - [`types`]: the custom resource; [`definition`]: its generated definition;
//! - [`workloads`] and [`database`]: the desired children;
//! - [`owned`]: the index of children, and clean-up;
//! - [`controller`]: the reconciler.
//!
//! It guarantees, as `tests/` checks:
//!
//! - front end, identity service and database are created in order, each when the one before is ready;
//! - `status.phase` is `ready` when the last one is, which an event reports;
//! - children that are deleted or changed by hand are restored;
//! - a child whose name changes in the spec is recreated, and the old one is deleted;
//! - a child that another owner controls is left alone, and the following ones wait;
//! - all children are deleted with the CloudManager, volumes of the database included.

pub mod controller;
pub mod database;
pub mod definition;
pub mod owned;
pub mod types;
pub mod workloads;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Secret,
};
use kubewright::{manager::ManagerBuilder, prelude::*};
pub use types::{CloudManager, CloudManagerSpec, CloudManagerStatus};

/// The whole operator, for `main`, for tests and for embedding.
pub fn operator() -> ManagerBuilder {
    Manager::builder("cloud-manager").leader_election(true).events_from("CloudManager").controller(
        Controller::of::<CloudManager>()
            .owns::<Deployment>()
            .owns::<StatefulSet>()
            .owns::<Secret>()
            .reconcile(controller::reconcile),
    )
}
