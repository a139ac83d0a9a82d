//! Server-side apply.

use serde_json::{Value, json};

use super::{
    decoding::{cannot_be_handled, report},
    gvk, members,
    ownership::Endpoint,
    schema, schema_required,
};
use crate::{
    apply::ApplyError,
    registry::{
        descriptor::{Descriptor, Json},
        semantics::{Decoded, Patch},
    },
    schema::body::{self, Limits},
    status::Status,
};

/// Applies a configuration to `current`; returns the object with its `managedFields`.
pub(super) fn apply(ty: &Descriptor, current: Option<&Json>, request: &Patch<'_>) -> Result<Decoded, Status> {
    let Some(schema) = schema(ty) else { return Err(schema_required()) };
    // Unknown fields are not collected here: the merge itself rejects them.
    let read = body::decode(request.body, body::Format::Yaml, None, &Limits::default())
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let warnings = report(&read.findings, request.validation).map_err(|why| cannot_be_handled(ty, &why))?;

    let gvk = gvk(ty);
    let endpoint = Endpoint::new(ty, request.manager.subresource);
    let live = current.map(|object| Value::Object(object.clone()));
    let applied = endpoint
        .fields(&schema, &gvk, request.manager.now)
        .apply(live.as_ref(), &read.value, &request.manager.name, request.force)
        .map_err(|error| to_status(&error))?;
    Ok(Decoded { object: members(applied), warnings })
}

fn to_status(error: &ApplyError) -> Status {
    let message = error.to_string();
    match error {
        ApplyError::Conflict(conflicts) => {
            let cause = |field: String, message: String| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
            let causes = conflicts.0.iter().map(|c| cause(c.field(), c.message())).collect();
            Status::plain(error.code(), "Conflict", message).causes(causes)
        }
        ApplyError::BadRequest(_) => Status::bad_request(message),
        _ => Status::internal(message),
    }
}
