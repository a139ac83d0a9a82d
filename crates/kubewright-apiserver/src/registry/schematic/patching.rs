//! JSON patch, merge patch and strategic merge patch.

use serde_json::Value;

use super::{
    decoding::{check_custom, report},
    go_type, gvk, members, schema_required,
};
use crate::{
    patch::{self, PatchError},
    registry::{
        descriptor::{Descriptor, Json},
        semantics::{Decoded, Patch, PatchKind},
        validation::Errors,
    },
    schema::{
        Gvk, Schemas,
        body::{self, Limits},
    },
    status::{About, Status},
};

/// Applies a patch to `current` and decodes the result as an object of its type.
pub(super) fn patch(ty: &Descriptor, current: &Json, request: &Patch<'_>) -> Result<Decoded, Status> {
    let schema = go_type(ty);
    if request.kind == PatchKind::Strategic && schema.is_none() {
        return Err(schema_required());
    }
    let read = patch::decode(request.body, &Limits::default()).map_err(|error| to_status(&error))?;
    let document = Value::Object(current.clone());
    let patched = match (request.kind, &schema) {
        (PatchKind::Json, _) => patch::json::apply(document, &read.value),
        (PatchKind::Strategic, Some(schema)) => patch::strategic::apply(schema, document, read.value),
        _ => patch::merge::apply(document, read.value),
    }
    .map_err(|error| to_status(&error))?;

    // A strategic merge patch works on the Go struct, which has no kind to change.
    if let Some(custom) = &ty.custom {
        check_custom(custom, &patched).map_err(|why| patched_object_invalid(&patched, &why))?;
    } else if request.kind != PatchKind::Strategic {
        check_kind(ty, &patched).map_err(|why| patched_object_invalid(&patched, &why))?;
    }
    let typed = schema.as_ref().map(|schema| (&**schema, ty.kind.as_ref()));
    let mut checked = body::check(&patched, typed, &Limits::default())
        .map_err(|error| patched_object_invalid(&patched, &error.to_string()))?;
    let mut findings = read.findings;
    findings.extend(checked.findings);
    if let Some(custom) = &ty.custom {
        findings.extend(custom.resource().prune(&mut checked.value));
    }
    let warnings =
        report(&findings, request.validation).map_err(|why| patched_object_invalid(&patched, &why))?;
    Ok(Decoded { object: members(checked.value), warnings })
}

/// Checks that a patch does not change the kind; it may remove it.
fn check_kind(ty: &Descriptor, patched: &Value) -> Result<(), String> {
    let wanted = gvk(ty);
    let said = |name: &str| patched.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let version = said("apiVersion").map_or_else(|| wanted.api_version(), str::to_owned);
    let found = Gvk::from_api_version(&version, said("kind").unwrap_or(&wanted.kind));
    if found == wanted {
        return Ok(());
    }
    if Schemas::builtin().lookup(&found).is_none() {
        return Err(format!("no kind {:?} is registered for version {version:?}", found.kind));
    }
    let package = wanted.group.split('.').next().filter(|label| !label.is_empty()).unwrap_or("core");
    Err(format!(
        "converting ({}.{}) to ({package}.{}): unknown conversion",
        found.version, found.kind, wanted.kind
    ))
}

/// Converts a patch error to a Status.
fn to_status(error: &PatchError) -> Status {
    let status = Status::plain(error.code(), error.reason(), error.message());
    if matches!(error, PatchError::Unprocessable(_)) { status.with_details() } else { status }
}

/// Returns 422: the patched object does not decode as its type. Upstream shows the object and omits its kind
/// and name.
fn patched_object_invalid(patched: &Value, why: &str) -> Status {
    let mut errors = Errors::default();
    errors.invalid("patch", body::go_string(patched), why);
    Status::invalid(About { group: "", kind: "", name: "" }, &errors)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::tests::{json as object, ty},
        *,
    };
    use crate::registry::semantics::{FieldValidation, Manager};

    fn patched(kind: PatchKind, body: &Value) -> Result<Decoded, Status> {
        let map = object(json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}));
        let body = body.to_string();
        let request = Patch {
            kind,
            body: body.as_bytes(),
            validation: FieldValidation::Warn,
            manager: Manager { name: "m".into(), subresource: "", now: "2026-08-01T00:00:00Z" },
            force: false,
        };
        patch(&ty("configmaps"), &map, &request)
    }

    #[test]
    fn a_patch_cannot_change_the_kind() {
        let refused = patched(PatchKind::Merge, &json!({"kind": "Secret"})).unwrap_err();
        assert_eq!(refused.code, 422);
        let why = "converting (v1.Secret) to (core.ConfigMap): unknown conversion";
        assert!(refused.message.ends_with(why), "{}", refused.message);
        let replace = json!([{"op": "replace", "path": "/apiVersion", "value": "v9"}]);
        let refused = patched(PatchKind::Json, &replace).unwrap_err();
        assert_eq!(refused.code, 422);
        let why = "no kind \"ConfigMap\" is registered for version \"v9\"";
        assert!(refused.message.ends_with(why), "{}", refused.message);
    }

    #[test]
    fn a_patch_may_remove_the_kind() {
        assert!(patched(PatchKind::Merge, &json!({"kind": null, "apiVersion": null})).is_ok());
    }

    #[test]
    fn a_patch_must_be_json() {
        assert_eq!(patched(PatchKind::Json, &json!({"op": "add"})).unwrap_err().code, 400);
    }
}
