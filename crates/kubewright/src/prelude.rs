//! Names that most operators use: `use kubewright::prelude::*;`.

#[cfg(feature = "derive")]
pub use kube::CustomResource;
pub use kube::{Resource, ResourceExt};

pub use crate::{
    Error, Help, Object, ObjectKey, Result,
    client::Refusal,
    controller::{Action, Context, Controller, Predicate, Reconciler, Watch},
    manager::Manager,
};
