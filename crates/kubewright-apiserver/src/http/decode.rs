//! Decoding of request bodies.

use serde_json::Value;

use super::negotiate::Format;
use crate::{
    protobuf::{self, ProtobufError},
    registry::descriptor::{Descriptor, Json},
    schema::body,
    status::Status,
};

/// Upper size of request bodies.
pub(crate) const MAX_BODY: usize = body::MAX_BYTES;

/// Returns the 413 of a body over the limit.
pub(crate) fn too_large() -> Status {
    Status::plain(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {MAX_BODY}"))
}

fn unrecognised(kind: &str, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
         {why}"
    ))
}

/// Decodes a body into an object without a schema.
pub(crate) fn plain(kind: &str, bytes: &[u8], format: Format) -> Result<Json, Status> {
    if format == Format::Json && bytes.is_empty() {
        return Err(unrecognised(kind, "unexpected end of JSON input (<empty>)"));
    }
    let format = match format {
        Format::Json => body::Format::Json,
        Format::Yaml => body::Format::Yaml,
    };
    let decoded = body::decode(bytes, format, None, &body::Limits::default());
    match decoded.map_err(|e| unrecognised(kind, &e.to_string()))?.value {
        Value::Object(object) => Ok(object),
        _ => Err(unrecognised(kind, "json: cannot unmarshal a value that is no object")),
    }
}

/// Converts a protobuf body to JSON. A body without kind or version has those of the URL.
pub(crate) fn protobuf(kind: &str, api_version: &str, bytes: &[u8]) -> Result<Vec<u8>, Status> {
    let mut envelope = protobuf::open(bytes).map_err(|why| {
        let shown = summary(bytes);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
        ))
    })?;
    if envelope.kind.is_empty() {
        kind.clone_into(&mut envelope.kind);
    }
    if envelope.api_version.is_empty() {
        api_version.clone_into(&mut envelope.api_version);
    }
    let (said, version) = (envelope.kind.clone(), envelope.api_version.clone());
    let refused = |why: &ProtobufError| {
        let version = version.rsplit('/').next().unwrap_or_default();
        Status::bad_request(format!("{said} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    let object = envelope.object().unwrap_or_else(|| {
        Err(ProtobufError::UnknownKind { api_version: version.clone(), kind: said.clone() })
    });
    let object = object.map_err(|why| refused(&why))?;
    serde_json::to_vec(&object).map_err(|why| Status::internal(why.to_string()))
}

/// Returns the beginning of an undecodable body, as upstream shows it.
fn summary(bytes: &[u8]) -> String {
    use std::fmt::Write;
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let mut shown = String::new();
    for byte in bytes.iter().take(30) {
        let _ = write!(shown, "{byte:02x}");
    }
    if bytes.len() > 30 {
        shown.push_str(" ...");
    }
    shown
}

/// Kind and API version of a body.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TypeMeta {
    kind: Option<String>,
    api_version: Option<String>,
}

impl TypeMeta {
    /// Returns kind and API version of an object.
    pub(crate) fn of(object: &Json) -> Self {
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        Self { kind: text("kind"), api_version: text("apiVersion") }
    }
}

/// Decodes kind and API version of a body only.
pub(crate) fn type_meta(kind: &str, bytes: &[u8], format: Format) -> Result<TypeMeta, Status> {
    match format {
        Format::Json if bytes.is_empty() => Err(unrecognised(kind, "unexpected end of JSON input (<empty>)")),
        Format::Json => {
            let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
            if first != Some(&b'{') {
                return Err(unrecognised(kind, "json: cannot unmarshal a value that is no object"));
            }
            serde_json::from_slice(bytes).map_err(|e| unrecognised(kind, &e.to_string()))
        }
        Format::Yaml => {
            let object = plain(kind, bytes, format)?;
            Ok(TypeMeta::of(&object))
        }
    }
}

/// Checks that kind and API version of a body are those of the URL, or missing.
pub(crate) fn check_kind(
    ty: &Descriptor,
    kind: &str,
    api_version: &str,
    said: &TypeMeta,
) -> Result<(), Status> {
    let said_kind = said.kind.as_deref().unwrap_or_default();
    let said_version = said.api_version.as_deref().unwrap_or_default();
    let cannot = |why: String| {
        let version = said_version.rsplit('/').next().unwrap_or_default();
        Err(Status::bad_request(format!(
            "{said_kind} in version {version:?} cannot be handled as a {kind}: {why}"
        )))
    };
    if ty.custom.is_some() && kind == ty.kind {
        // Any kind is decoded; validation reports a wrong one.
        if !said_kind.is_empty() && said_version != api_version {
            return Err(other_version(said_version, api_version));
        }
        return Ok(());
    }
    if !said_kind.is_empty() && said_kind != kind {
        return cannot(format!("converting (v1.{said_kind}) to (core.{kind}): unknown conversion"));
    }
    if !said_version.is_empty() && said_version != api_version {
        let known = said_version.split('/').next() == Some(ty.group.as_ref());
        if !known {
            return Err(other_version(said_version, api_version));
        }
        return cannot(format!("no kind {said_kind:?} is registered for version {said_version:?}"));
    }
    Ok(())
}

fn other_version(said: &str, expected: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({said}) does not match the expected API version ({expected})"
    ))
}

/// Checks the types of `metadata`, which every verb relies on.
pub(crate) fn check_metadata(kind: &str, object: &Json) -> Result<(), Status> {
    let refuse = |field: &str, found: &Value, wanted: &str| {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        Err(Status::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: json: cannot unmarshal {found} into Go struct \
             field {field} of type {wanted}"
        )))
    };
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return refuse(&format!("{kind}.metadata"), other, "v1.ObjectMeta"),
    };
    for (key, value) in metadata {
        let refuse = |wanted: &str| refuse(&format!("ObjectMeta.metadata.{key}"), value, wanted);
        let fits = match (key.as_str(), value) {
            (_, Value::Null) => true,
            ("labels" | "annotations", Value::Object(map)) => {
                map.values().all(|v| v.is_string() || v.is_null())
            }
            ("labels" | "annotations", _) => return refuse("map[string]string"),
            ("finalizers", Value::Array(list)) => list.iter().all(Value::is_string),
            ("ownerReferences" | "managedFields", Value::Array(list)) => list.iter().all(Value::is_object),
            ("generation" | "deletionGracePeriodSeconds", value) => value.is_i64() || value.is_u64(),
            ("finalizers" | "ownerReferences" | "managedFields", _) => false,
            (
                "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "selfLink"
                | "creationTimestamp" | "deletionTimestamp",
                value,
            ) => value.is_string(),
            _ => true,
        };
        if !fits {
            return refuse("string");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        for body in [&b""[..], b"{not json", b"[]", b"\"x\"", b"3", deep.as_bytes()] {
            assert_eq!(plain("ConfigMap", body, Format::Json).unwrap_err().code, 400);
            assert_eq!(type_meta("ConfigMap", body, Format::Json).unwrap_err().code, 400);
        }
    }

    #[test]
    fn yaml_is_read_as_json() {
        let body = plain("ConfigMap", b"metadata:\n  name: a\ndata:\n  k: \"1\"\n", Format::Yaml).unwrap();
        assert_eq!(body["metadata"]["name"], "a");
    }
}
