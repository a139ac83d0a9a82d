//! A small platform as one object: a CloudManager asks for a front, an identity service and a database, and has them.
//!
//! - [`types`]: what a user writes, and what is reported back; [`definition`]: the definition that is made of it;
//! - [`workloads`] and [`database`]: what the children look like;
//! - [`owned`]: the index by which old children are found;
//! - [`controller`]: how it comes about, in order.
//!
//! It keeps these promises, and `tests/` holds it to them:
//!
//! - front, identity service and database come up one after the other, each when the one before is ready;
//! - `status.phase` says `ready` when the last one is, and an event tells of it;
//! - children that are deleted or changed by hand come back as they should be;
//! - a child that is asked for under another name is made anew, and the old one goes;
//! - a child that somebody else controls is left alone, and the rest waits for it;
//! - everything goes with the CloudManager, the volumes of the database too.

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

/// The whole operator, for `main`, for tests and for whoever runs it inside of another program.
pub fn operator() -> ManagerBuilder {
    Manager::builder("cloud-manager")
        .leader_election(true)
        .events_from("CloudManager")
        .controller(
            Controller::of::<CloudManager>()
                .owns::<Deployment>()
                .owns::<StatefulSet>()
                .owns::<Secret>()
                .reconcile(controller::reconcile),
        )
}
