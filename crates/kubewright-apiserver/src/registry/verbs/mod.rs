//! The verbs: one implementation each, for all types.

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod options;
pub mod patch;
pub mod update;
pub mod watch;

use super::{
    Registry,
    call::Call,
    descriptor::{Descriptor, Json},
};
use crate::status::Status;

/// Fills in defaults and brings the object into the form in which it is stored.
pub(crate) fn settle(registry: &Registry, ty: &Descriptor, object: &mut Json) {
    registry.semantics.canonicalise(ty, object);
    // The defaults of a custom resource are in its schema, and have just been filled in.
    if ty.custom.is_none() {
        resettle(registry, ty, object);
    }
}

/// The same for an object that was settled before and has been changed by the server since.
pub(super) fn resettle(registry: &Registry, ty: &Descriptor, object: &mut Json) {
    (ty.strategy.default)(object);
    registry.semantics.canonicalise(ty, object);
}

/// Checks that the body is of the type and namespace that the URL says.
/// What is written must have the name that the URL says.
pub(super) fn check_name(call: &Call<'_>, name: &str) -> Result<(), Status> {
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    Ok(())
}

pub(super) fn check_target(call: &Call<'_>, object: &mut Json) -> Result<(), Status> {
    let metadata = super::json::meta_mut(object);
    if call.ty.namespaced() {
        match super::json::text(metadata, "namespace") {
            "" => {
                metadata.insert("namespace".into(), call.namespace.into());
            }
            namespace if namespace == call.namespace => {}
            _ => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
        }
    } else {
        metadata.remove("namespace");
    }
    Ok(())
}
