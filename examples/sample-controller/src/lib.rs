//! The sample controller of Kubernetes: each Foo has a Deployment.
//!
//! - [`foo`]: the custom resource;
//! - [`deployment`]: the desired Deployment of a Foo;
//! - [`controller`]: the reconciler.
//!
//! It guarantees, as `tests/` checks:
//!
//! - a Foo controls a Deployment of the name in its spec, with the specified replicas and image;
//! - `status.availableReplicas` is the number of available replicas, and is written only when it changes;
//! - a Deployment of that name that the Foo does not control is left alone, and reported by an event;
//! - a Foo whose Deployment name changes gets another Deployment and keeps the old one, as in the original;
//! - the Deployments are deleted with the Foo.

pub mod controller;
pub mod deployment;
pub mod foo;

use std::time::Duration;

pub use foo::{Foo, FooSpec, FooStatus};
use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{manager::ManagerBuilder, prelude::*};

/// The whole operator, for `main`, for tests and for embedding.
pub fn operator() -> ManagerBuilder {
    Manager::builder("sample-controller").leader_election(true).controller(
        Controller::of::<Foo>()
            .owns::<Deployment>()
            // The deletion of a Deployment of another owner does not trigger a reconcile.
            .resync(Duration::from_secs(30))
            .workers(2)
            .reconcile(controller::reconcile),
    )
}
