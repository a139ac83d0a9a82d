//! JSON patch, merge patch and strategic merge patch.

use serde_json::Value;

use super::{decoding::report, members, needs_a_schema, schema};
use crate::{
    patch::{self, PatchError},
    registry::{
        descriptor::{Descriptor, Json},
        semantics::{Decoded, Patch, PatchKind},
        validation::Errors,
    },
    schema::body::{self, Limits},
    status::{About, Status},
};

/// The object that a patch makes of `current`, decoded again as an object of its type.
pub(super) fn patch(ty: &Descriptor, current: &Json, request: &Patch<'_>) -> Result<Decoded, Status> {
    let schema = schema(ty);
    if request.kind == PatchKind::Strategic && schema.is_none() {
        return Err(needs_a_schema());
    }
    let read = patch::decode(request.body, &Limits::default()).map_err(|error| refused(&error))?;
    let document = Value::Object(current.clone());
    let patched = match (request.kind, &schema) {
        (PatchKind::Json, _) => patch::json::apply(document, &read.value),
        (PatchKind::Strategic, Some(schema)) => patch::strategic::apply(schema, document, read.value),
        _ => patch::merge::apply(document, read.value),
    }
    .map_err(|error| refused(&error))?;

    let typed = schema.as_ref().map(|schema| (&**schema, ty.kind.as_ref()));
    let checked = body::check(&patched, typed, &Limits::default())
        .map_err(|error| does_not_fit(&patched, &error.to_string()))?;
    let mut findings = read.findings;
    findings.extend(checked.findings);
    let warnings = report(&findings, request.validation).map_err(|why| does_not_fit(&patched, &why))?;
    Ok(Decoded { object: members(checked.value), warnings })
}

/// The answer to a patch that cannot be merged.
fn refused(error: &PatchError) -> Status {
    let reason = match error {
        PatchError::BadRequest(_) => "BadRequest",
        PatchError::Unprocessable(_) => "Invalid",
        PatchError::TooLarge(_) => "RequestEntityTooLarge",
        PatchError::Internal(_) => "InternalError",
    };
    let status = Status::plain(error.code(), reason, error.message());
    if matches!(error, PatchError::Unprocessable(_)) { status.with_details() } else { status }
}

/// 422: the patched object is none of its type. Upstream shows the object, and leaves out its kind and name.
fn does_not_fit(patched: &Value, why: &str) -> Status {
    let mut errors = Errors::default();
    errors.invalid("patch", body::printed(patched), why);
    Status::invalid(About { group: "", kind: "", name: "" }, &errors)
}
