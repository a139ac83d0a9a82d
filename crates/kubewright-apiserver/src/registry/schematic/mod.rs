//! [`Semantics`] by schema, built on the pure modules of this crate.
//!
//! | operation | module |
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
    semantics::{Decoded, FieldValidation, Format, Manager, Patch, PatchKind, Semantics},
};
use crate::{
    schema::{Gvk, TypeRef, canonical},
    status::Status,
};

/// Semantics by the schemas of the types.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schematic;

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

impl Semantics for Schematic {
    fn decode(
        &self,
        ty: &Descriptor,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded, Status> {
        decoding::decode(ty, body, format, validation)
    }

    fn canonicalise(&self, ty: &Descriptor, object: &mut Json) {
        if let Some(custom) = &ty.custom {
            custom.settle(object);
        } else if let Some(schema) = schema(ty) {
            as_value(object, |value| canonical::canonicalise(&schema, value));
        }
    }

    fn at_rest(&self, ty: &Descriptor, object: &mut Json) {
        if let Some(schema) = go_type(ty) {
            as_value(object, |value| canonical::nullify_empty(&schema, value));
        }
    }

    fn empty(&self, ty: &Descriptor) -> Json {
        go_type(ty).map(|schema| members(canonical::empty_object(&schema))).unwrap_or_default()
    }

    fn patch(&self, ty: &Descriptor, current: Option<&Json>, patch: &Patch<'_>) -> Result<Decoded, Status> {
        match (patch.kind, current) {
            (PatchKind::Apply, _) => applying::apply(ty, current, patch),
            (_, Some(current)) => patching::patch(ty, current, patch),
            (_, None) => Err(Status::internal("only an apply can create an object")),
        }
    }

    fn track(&self, ty: &Descriptor, before: Option<&Json>, after: &mut Json, manager: &Manager<'_>) {
        ownership::track(ty, before, after, manager);
    }

    fn track_created(&self, ty: &Descriptor, object: &mut Json, manager: &Manager<'_>) -> Option<String> {
        ownership::track_created(ty, object, manager)
    }

    fn keep_times(&self, before: &Json, after: &mut Json) {
        ownership::keep_times(before, after);
    }
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
        Schematic.canonicalise(&ty("roles"), &mut role);
        assert_eq!(role["rules"], json!([]));
        Schematic.at_rest(&ty("roles"), &mut role);
        assert_eq!(role["rules"], Value::Null);
    }

    #[test]
    fn a_type_without_a_schema_is_stored_as_sent_and_cannot_be_applied() {
        let mut unknown = ty("configmaps");
        unknown.kind = "Unknown".into();
        let sent = json(json!({"kind": "Unknown", "apiVersion": "v1", "metadata": {"name": "a"}, "x": []}));
        let mut object = sent.clone();
        Schematic.canonicalise(&unknown, &mut object);
        Schematic.at_rest(&unknown, &mut object);
        assert_eq!(object, sent);
        for (kind, code) in [(PatchKind::Apply, 415), (PatchKind::Strategic, 415), (PatchKind::Merge, 200)] {
            let patch = Patch {
                kind,
                body: b"{\"kind\": \"Unknown\", \"apiVersion\": \"v1\"}",
                validation: FieldValidation::Warn,
                manager: Manager { name: "m".into(), subresource: "", now: "2026-08-01T00:00:00Z" },
                force: false,
            };
            let answer = Schematic.patch(&unknown, Some(&sent), &patch);
            assert_eq!(answer.map_or_else(|status| status.code, |_| 200), code, "{kind:?}");
        }
    }
}
