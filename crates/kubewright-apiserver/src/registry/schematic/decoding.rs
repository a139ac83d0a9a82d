//! Decoding of request bodies.

use serde_json::Value;

use super::{go_type, members};
use crate::{
    registry::{
        custom::Custom,
        descriptor::Descriptor,
        semantics::{Decoded, FieldValidation, Format},
    },
    schema::{
        body::{self, BodyError, Limits},
        go,
    },
    status::Status,
};

/// Decodes a body and applies field validation.
pub(super) fn decode(
    ty: &Descriptor,
    raw: &[u8],
    format: Format,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let format = match format {
        Format::Json => body::Format::Json,
        Format::Yaml => body::Format::Yaml,
    };
    let schema = go_type(ty);
    let typed = schema.as_ref().map(|schema| (&**schema, ty.kind.as_ref()));
    let mut decoded = body::decode(raw, format, typed, &Limits::default()).map_err(|error| match error {
        BodyError::TooLarge { .. } => crate::http::decode::too_large(),
        other => cannot_be_handled(ty, &other.to_string()),
    })?;
    if let Some(custom) = &ty.custom {
        check_custom(custom, &decoded.value).map_err(|why| cannot_be_handled(ty, &why))?;
        decoded.findings.extend(custom.resource().prune(&mut decoded.value));
    }
    let warnings = report(&decoded.findings, validation).map_err(|why| cannot_be_handled(ty, &why))?;
    Ok(Decoded { object: members(decoded.value), warnings })
}

/// Checks a custom resource as far as decoding goes: it has a kind, and its metadata matches `ObjectMeta`.
pub(super) fn check_custom(custom: &Custom, value: &Value) -> Result<(), String> {
    if value["kind"].as_str().unwrap_or_default().is_empty() {
        return Err(format!("Object 'Kind' is missing in '{value}'"));
    }
    let (Some(node), Some(value)) = (custom.resource().metadata(), value.get("metadata")) else {
        return Ok(());
    };
    if !(value.is_object() || value.is_null()) {
        let found = go::json_kind(value);
        return Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
    }
    match body::check(value, Some((node, "ObjectMeta")), &Limits::default()) {
        Err(BodyError::Type(why)) => Err(why),
        _ => Ok(()),
    }
}

/// Turns findings into warnings, an error or nothing, by the field validation of the request.
pub(super) fn report(findings: &[String], validation: FieldValidation) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Strict if !findings.is_empty() => Err(body::strict_error(findings)),
        FieldValidation::Warn => Ok(body::warnings(findings)),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

/// Returns 400: the body does not decode as the type.
pub(super) fn cannot_be_handled(ty: &Descriptor, why: &str) -> Status {
    let (kind, version) = (&ty.kind, &ty.version);
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::ty, *};

    const UNKNOWN: &[u8] = br#"{"metadata": {"name": "a"}, "data": {"a": "1"}, "foo": 1}"#;

    #[test]
    fn unknown_fields_are_dropped_and_reported_by_field_validation() {
        let read = |validation| decode(&ty("configmaps"), UNKNOWN, Format::Json, validation);
        let warned = read(FieldValidation::Warn).unwrap();
        assert!(!warned.object.contains_key("foo"));
        assert_eq!(warned.warnings, ["unknown field \"foo\""]);
        assert!(read(FieldValidation::Ignore).unwrap().warnings.is_empty());
        let refused = read(FieldValidation::Strict).unwrap_err();
        assert_eq!(refused.code, 400);
        assert!(
            refused.message.ends_with("strict decoding error: unknown field \"foo\""),
            "{}",
            refused.message
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_rejected_under_any_validation() {
        let body = br#"{"data": {"a": 1}}"#;
        let refused = decode(&ty("configmaps"), body, Format::Json, FieldValidation::Ignore).unwrap_err();
        assert_eq!(refused.code, 400);
    }
}
