//! What the types look like and what can be done with them, told to clients: `/openapi/v3` and `/openapi/v2`.
//!
//! kubectl reads it to explain fields, to compute three-way patches and to learn that the server validates fields; other
//! tools generate code from it. Everything comes from what the server works with anyway: the table of built-in types,
//! the descriptors of what is served, and the schemas of custom resources as their authors wrote them, descriptions
//! included. Built-in types come without descriptions: this project keeps no upstream prose.
//!
//! | file | what it makes |
//! |---|---|
//! | `schema` | schemas of built-in types and of custom resources |
//! | `paths` | what can be done with a resource, independent of the version of `OpenAPI` |
//! | `v3` | one document per group version, and their index |
//! | `v2` | one document for everything, for clients that are too old for v3 |
//!
//! Documents are made when they are first asked for and kept until the types change ([`Types`] keeps them). Clients keep
//! them too, under the hash that the index gives, which is computed from what goes into a document and not from the
//! document.

mod paths;
mod schema;
mod v2;
mod v3;

use std::sync::LazyLock;

use serde_json::Value;

pub(crate) use self::{
    v2::document as v2,
    v3::{document as v3, index as v3_index},
};
use crate::{
    registry::{Types, descriptor::Descriptor},
    schema::Schemas,
};

/// What a document of a group version is made of; `None` when it has no types.
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

/// Every group version, sorted.
fn group_versions(types: &Types) -> std::collections::BTreeSet<(&str, &str)> {
    types.all().iter().map(|ty| (ty.group.as_ref(), ty.version.as_ref())).collect()
}

static TABLE: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut hash = [0; 32];
    hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, Schemas::builtin().bytes()).as_ref());
    hash
});

/// A hash of what a document is made of; it changes when the document would.
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

/// The hash of a v3 document; `None` when the group version has no types.
pub(crate) fn v3_hash(types: &Types, group: &str, version: &str) -> Option<String> {
    of_version(types, group, version).map(hash)
}

/// The hash of the v2 document.
pub(crate) fn v2_hash(types: &Types) -> String {
    hash(types.all().iter().map(std::convert::AsRef::as_ref))
}

/// `{"title": "Kubernetes", …}`
fn info() -> Value {
    serde_json::json!({"title": "Kubernetes", "version": "unversioned"})
}

#[cfg(test)]
mod tests;
