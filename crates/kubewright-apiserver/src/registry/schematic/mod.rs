//! Decoding, patching and field ownership of objects by the schemas of their types.
//!
//! All functions are pure: no storage, no clock, no randomness.
//!
//! | task | module |
//! |---|---|
//! | decode a body | `decoding`, over [`schema::body`](crate::schema::body) |
//! | merge a patch | `patching`, over [`patch`](crate::patch) |
//! | apply a configuration | `applying`, over [`apply`](crate::apply) |
//! | update managedFields | `ownership`, over [`apply`](crate::apply) |
//! | canonicalise an object | [`schema::canonical`](crate::schema::canonical) |
//!
//! A type has the schema of its CRD or a built-in one. Objects of a type without a schema are stored as sent:
//! nothing is pruned or tracked, and strategic merge patch and apply, which need a schema, get 415.
//!
//! Pitfall: the order matters. Bodies are decoded, canonicalised, defaulted, and only then tracked; an apply
//! merges and tracks first. Values that the server assigns (cluster IPs, finalizers, tolerations) are set
//! after tracking, because they have no field manager.

mod applying;
mod decoding;
mod ownership;
mod patching;

use serde_json::Value;

use super::{
    descriptor::{Descriptor, Json},
    json::as_value,
    semantics::{Decoded, FieldValidation, Format, Manager, Patch, PatchKind},
};
use crate::{
    schema::{Gvk, TypeRef, canonical},
    status::Status,
};

fn gvk(ty: &Descriptor) -> Gvk {
    Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref())
}

fn schema(ty: &Descriptor) -> Option<TypeRef> {
    ty.schema()
}

/// Returns the schema of a built-in type, by which bodies are decoded and objects canonicalised.
fn go_type(ty: &Descriptor) -> Option<TypeRef> {
    schema(ty).filter(|_| ty.custom.is_none())
}

/// Returns the members of a value that was checked to be an object.
fn members(value: Value) -> Json {
    match value {
        Value::Object(members) => members,
        _ => Json::new(),
    }
}

/// Returns 415 with the patch types that work without a schema.
fn schema_required() -> Status {
    crate::http::negotiate::unsupported("application/json-patch+json, application/merge-patch+json")
        .with_details()
}

/// Decodes a body into an object of the type: checks types, drops unknown fields, reports duplicates. The body's `kind`
/// and `apiVersion` have been checked already.
pub(crate) fn decode(
    ty: &Descriptor,
    body: &[u8],
    format: Format,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    decoding::decode(ty, body, format, validation)
}

/// Brings an object into the form in which Go's structs print it: no nulls, no empty lists where they mean nothing, and
/// fields that are printed even when they are unset.
pub(crate) fn canonicalise(ty: &Descriptor, object: &mut Json) {
    if let Some(custom) = &ty.custom {
        custom.canonicalise(object);
    } else if let Some(schema) = schema(ty) {
        as_value(object, |value| canonical::canonicalise(&schema, value));
    }
}

/// Drops what does not survive storage: empty lists.
pub(crate) fn at_rest(ty: &Descriptor, object: &mut Json) {
    if let Some(schema) = go_type(ty) {
        as_value(object, |value| canonical::nullify_empty(&schema, value));
    }
}

/// Returns the empty object of a type, without metadata: what bookmarks carry.
pub(crate) fn empty(ty: &Descriptor) -> Json {
    go_type(ty).map(|schema| members(canonical::empty_object(&schema))).unwrap_or_default()
}

/// Returns the object that a patch makes of `current` (`None` when an apply creates). `current` has `kind` and
/// `apiVersion`, and so has the result.
pub(crate) fn patch(ty: &Descriptor, current: Option<&Json>, patch: &Patch<'_>) -> Result<Decoded, Status> {
    match (patch.kind, current) {
        (PatchKind::Apply, _) => applying::apply(ty, current, patch),
        (_, Some(current)) => patching::patch(ty, current, patch),
        (_, None) => Err(Status::internal("only an apply can create an object")),
    }
}

/// Records in `managedFields` what a create or update changed. `before` is the stored object; an unchanged object stays
/// unchanged.
pub(crate) fn track(ty: &Descriptor, before: Option<&Json>, after: &mut Json, manager: &Manager<'_>) {
    ownership::track(ty, before, after, manager);
}

/// Returns what [`track`] would write into a new object as the text of its `managedFields`, where that is found without
/// making a tree of it. `None` where it is not: then the object has to be tracked.
pub(crate) fn track_created(ty: &Descriptor, object: &mut Json, manager: &Manager<'_>) -> Option<String> {
    ownership::track_created(ty, object, manager)
}

/// Makes a write whose only effect would be new times in `managedFields` no write at all.
pub(crate) fn keep_times(before: &Json, after: &mut Json) {
    ownership::keep_times(before, after);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::builtin;

    pub(super) fn ty(plural: &str) -> Descriptor {
        builtin::descriptors().into_iter().find(|ty| ty.plural == plural).unwrap()
    }

    pub(super) fn json(value: Value) -> Json {
        members(value)
    }

    #[test]
    fn every_built_in_type_has_a_schema() {
        let without: Vec<_> =
            builtin::descriptors().iter().filter(|ty| schema(ty).is_none()).map(gvk).collect();
        assert_eq!(without, []);
    }

    #[test]
    fn an_empty_list_that_go_always_encodes_is_read_back_as_null() {
        let mut role = json(json!({"metadata": {"name": "a"}, "rules": []}));
        canonicalise(&ty("roles"), &mut role);
        assert_eq!(role["rules"], json!([]));
        at_rest(&ty("roles"), &mut role);
        assert_eq!(role["rules"], Value::Null);
    }

    #[test]
    fn a_type_without_a_schema_is_stored_as_sent_and_cannot_be_applied() {
        let mut unknown = ty("configmaps");
        unknown.kind = "Unknown".into();
        let sent = json(json!({"kind": "Unknown", "apiVersion": "v1", "metadata": {"name": "a"}, "x": []}));
        let mut object = sent.clone();
        canonicalise(&unknown, &mut object);
        at_rest(&unknown, &mut object);
        assert_eq!(object, sent);
        for (kind, code) in [(PatchKind::Apply, 415), (PatchKind::Strategic, 415), (PatchKind::Merge, 200)] {
            let patch = Patch {
                kind,
                body: b"{\"kind\": \"Unknown\", \"apiVersion\": \"v1\"}",
                validation: FieldValidation::Warn,
                manager: Manager { name: "m".into(), subresource: "", now: "2026-08-01T00:00:00Z" },
                force: false,
            };
            let answer = super::patch(&unknown, Some(&sent), &patch);
            assert_eq!(answer.map_or_else(|status| status.code, |_| 200), code, "{kind:?}");
        }
    }
}
