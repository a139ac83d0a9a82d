//! Admission policies: `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`, with CEL expressions.
//!
//! A policy has expressions for some resources; a binding says where it is in force, with which parameters and to what
//! effect. Both are objects of the cluster, looked up in storage on every write and compiled when they change.
//!
//! [`checked_status`] checks the types in a policy's expressions; in a real cluster a controller writes the result into
//! the policy's status.

mod atomics;
mod compile;
mod mutating;
mod params;
mod typecheck;
mod validating;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use self::compile::mutation as mutation_of;
pub(in crate::admission) use self::mutating::with_defaults;
pub use self::typecheck::checked_status;
pub(super) use self::{mutating::MutatingAdmissionPolicy, validating::ValidatingAdmissionPolicy};
use super::{Attributes, matching::resources_match};
use crate::{
    admission::Context,
    registry::{
        Types,
        descriptor::{Descriptor, Json},
        json::{object, text},
    },
    status::Status,
};

/// A binding, as stored.
#[derive(Debug)]
struct Binding {
    name: String,
    spec: Json,
}

impl Binding {
    fn of(stored: &Json) -> Self {
        Self {
            name: crate::registry::json::name(stored).to_owned(),
            spec: object(stored, "spec").cloned().unwrap_or_default(),
        }
    }

    /// Returns whether it puts its policy in force for a write.
    fn matches(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<bool, Status> {
        match object(&self.spec, "matchResources") {
            None => Ok(true),
            Some(criteria) => Ok(resources_match(criteria, context, attributes)?.is_some()),
        }
    }
}

/// The bindings by the policy that they name, each in the order of names.
fn by_policy(bindings: &[Arc<Binding>]) -> BTreeMap<&str, Vec<&Arc<Binding>>> {
    let mut out: BTreeMap<&str, Vec<&Arc<Binding>>> = BTreeMap::new();
    for binding in bindings {
        out.entry(text(&binding.spec, "policyName")).or_default().push(binding);
    }
    out
}

/// The type as which a write matches the constraints of a policy.
fn constraints_match(
    spec: &Json,
    context: &Context<'_>,
    attributes: &Attributes<'_>,
) -> Result<Option<Arc<Descriptor>>, Status> {
    match object(spec, "matchConstraints") {
        None => Ok(None),
        Some(criteria) => resources_match(criteria, context, attributes),
    }
}

/// Returns whether errors of a policy are ignored.
fn ignores_failures(spec: &Json) -> bool {
    text(spec, "failurePolicy") == "Ignore"
}

/// The type of a policy's parameters; an error where there is none of that name.
fn param_type(spec: &Json, types: &Types) -> Result<Option<Arc<Descriptor>>, String> {
    let Some(kind) = object(spec, "paramKind") else { return Ok(None) };
    let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
    if let Some(ty) = types.all().iter().find(|ty| ty.kind == kind && ty.api_version() == version) {
        return Ok(Some(Arc::clone(ty)));
    }
    let gvk = crate::schema::Gvk::from_api_version(version, kind);
    Err(format!("failed to find resource referenced by paramKind: '{gvk}'"))
}
