//! `OpenAPI` documents: `/openapi/v3` and `/openapi/v2`.
//!
//! kubectl uses them to explain fields, to compute three-way patches and to detect server-side field
//! validation; other tools generate code from them. They are built from the table of built-in types, the
//! descriptors of served resources, and the schemas of custom resources, including their descriptions.
//! Built-in types have no descriptions: this project contains no upstream prose.
//!
//! | file | content |
//! |---|---|
//! | `schema` | schemas of built-in types and of custom resources |
//! | `paths` | paths and operations of resources, independent of the version of `OpenAPI` |
//! | `v3` | one document per group version, and their index |
//! | `v2` | one document for all types, for clients older than v3 |
//!
//! Documents are built on first request and cached in [`Types`] until the types change. Clients cache them
//! too, under the hash of the index, which is computed from the inputs of a document and not from the
//! document.

mod paths;
mod schema;
mod v2;
mod v3;

use std::sync::LazyLock;

use serde_json::Value;

pub use self::{
    v2::document as v2,
    v3::{document as v3, index as v3_index},
};
use crate::{
    registry::{Types, descriptor::Descriptor},
    schema::Schemas,
};

/// Returns the types of a group version; `None` if it has none.
fn of_version<'t>(types: &'t Types, group: &str, version: &str) -> Option<Vec<&'t Descriptor>> {
    let mut found: Vec<&Descriptor> = types
        .all()
        .iter()
        .filter(|ty| ty.group == group && ty.version == version)
        .map(std::convert::AsRef::as_ref)
        .collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    (!found.is_empty()).then_some(found)
}

/// Returns every group version, sorted.
fn group_versions(types: &Types) -> std::collections::BTreeSet<(&str, &str)> {
    types.all().iter().map(|ty| (ty.group.as_ref(), ty.version.as_ref())).collect()
}

static TABLE: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut hash = [0; 32];
    hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, Schemas::builtin().bytes()).as_ref());
    hash
});

/// Hashes the inputs of a document; the hash changes whenever the document would.
fn hash<'t>(types: impl IntoIterator<Item = &'t Descriptor>) -> String {
    use std::fmt::Write;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(env!("CARGO_PKG_VERSION").as_bytes());
    context.update(&*TABLE);
    let mut text = |part: &str| {
        context.update(part.as_bytes());
        context.update(b"\0");
    };
    for ty in types {
        for part in [&ty.group, &ty.version, &ty.kind, &ty.list_kind, &ty.plural] {
            text(part);
        }
        text(if ty.namespaced() { "namespaced" } else { "cluster" });
        ty.verbs.iter().for_each(|verb| text(verb));
        for sub in &ty.subresources {
            text(&sub.name);
            text(&sub.kind);
            sub.verbs.iter().for_each(|verb| text(verb));
        }
        if let Some(schema) = ty.openapi() {
            text(&schema.to_string());
        }
    }
    let mut hash = String::with_capacity(64);
    for byte in context.finish().as_ref() {
        let _ = write!(hash, "{byte:02X}");
    }
    hash
}

/// Returns the hash of a v3 document; `None` if the group version has no types.
pub fn v3_hash(types: &Types, group: &str, version: &str) -> Option<String> {
    of_version(types, group, version).map(hash)
}

/// Returns the hash of the v2 document.
pub fn v2_hash(types: &Types) -> String {
    hash(types.all().iter().map(std::convert::AsRef::as_ref))
}

/// Returns `{"title": "Kubernetes", …}`.
fn info() -> Value {
    serde_json::json!({"title": "Kubernetes", "version": "unversioned"})
}

#[cfg(test)]
mod tests;
