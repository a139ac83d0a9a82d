//! The verbs of the API, each implemented once for all types.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod update;
pub(crate) mod watch;

use super::{
    call::Call,
    descriptor::{Descriptor, Json},
    schematic,
};
use crate::status::Status;

/// Fills in defaults and brings the object into the form in which it is stored.
pub(crate) fn canonicalise_and_default(ty: &Descriptor, object: &mut Json) {
    schematic::canonicalise(ty, object);
    // The defaults of a custom resource are in its schema, and have just been filled in.
    if ty.custom.is_none() {
        default_again(ty, object);
    }
}

/// Fills in the defaults of an object that the server has changed since its first defaulting.
pub(super) fn default_again(ty: &Descriptor, object: &mut Json) {
    (ty.strategy.default)(object);
    schematic::canonicalise(ty, object);
}

/// Checks that the object has the name of the URL.
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

/// Checks that the object is in the namespace of the URL; an object that names none is put into it.
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
