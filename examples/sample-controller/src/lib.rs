//! The sample controller of Kubernetes: a Foo asks for a Deployment, and has it.
//!
//! - [`foo`]: what a user writes, and what is reported back;
//! - [`deployment`]: what the Deployment of a Foo looks like;
//! - [`controller`]: how it comes about.
//!
//! It keeps these promises, and `tests/` holds it to them:
//!
//! - a Foo has a Deployment of the name it asks for, which it controls; replicas and image stay as they should be;
//! - `status.availableReplicas` says how many are up, and is written only when that changes;
//! - a Deployment of that name that the Foo does not control is left alone, and an event says so;
//! - a Foo that asks for another name gets another Deployment. It keeps the former one, as the original does;
//! - everything goes with the Foo.

pub mod controller;
pub mod deployment;
pub mod foo;

use std::time::Duration;

pub use foo::{Foo, FooSpec, FooStatus};
use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{manager::ManagerBuilder, prelude::*};

/// The whole operator, for `main`, for tests and for whoever runs it inside of another program.
pub fn operator() -> ManagerBuilder {
    Manager::builder("sample-controller").leader_election(true).controller(
        Controller::of::<Foo>()
            .owns::<Deployment>()
            // Nobody tells us when a Deployment goes that was in our way: it was not ours.
            .resync(Duration::from_secs(30))
            .workers(2)
            .reconcile(controller::reconcile),
    )
}
