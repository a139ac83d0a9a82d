//! What an operator uses on nearly every page: `use kubewright::prelude::*;`.

#[cfg(feature = "derive")]
pub use kube::CustomResource;
pub use kube::{Resource, ResourceExt};

pub use crate::{
    Error, Help, Object, ObjectKey, Result,
    client::ApiStatus,
    controller::{Action, Context, Controller, Predicate, Reconciler, Watch},
    manager::{Cluster, Manager},
};
