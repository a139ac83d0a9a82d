//! Mapping of managedFields between a resource and its scale subresource.
//!
//! A Scale is a view of a Deployment or another workload: its `spec.replicas` maps to a path of the parent.
//! Before a write, the parent's entries that own that path become entries of the Scale ([`to_scale`]); after
//! it, the Scale's entries are mapped back to the parent ([`to_parent`]).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    managed::{ManagedFields, ManagedFieldsError, OwnedFields},
    path::PathElement,
    set::FieldSet,
};

/// API version of a Scale.
pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// Path of the replicas per version of the parent; `None` for a version without a scale subresource.
pub type ReplicasPaths = BTreeMap<String, Option<Vec<PathElement>>>;

/// Returns the path `spec.replicas` of the built-in types and of a Scale itself.
pub fn spec_replicas() -> Vec<PathElement> {
    vec![PathElement::field("spec"), PathElement::field("replicas")]
}

/// Returns the managedFields of the Scale, given its parent.
pub fn to_scale(parent: &Value, paths: &ReplicasPaths) -> Result<ManagedFields, ManagedFieldsError> {
    let mut scale = ManagedFields::default();
    for (id, owned) in ManagedFields::decode(parent)?.0 {
        if let Some(Some(path)) = paths.get(&owned.api_version)
            && owned.set.has(path)
        {
            let set = FieldSet::from_iter([spec_replicas()]);
            scale
                .0
                .insert(id, OwnedFields { set, api_version: SCALE_API_VERSION.to_owned(), time: owned.time });
        }
    }
    Ok(scale)
}

/// Returns the parent's managedFields after a write of the Scale, for a parent of version `api_version`.
///
/// A new manager has no time, as upstream.
pub fn to_parent(
    parent: &Value,
    scale: &Value,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<ManagedFields, ManagedFieldsError> {
    let mut scale = ManagedFields::decode(scale)?;
    let mut out = ManagedFields::default();
    for (id, mut owned) in ManagedFields::decode(parent)?.0 {
        let Some(path) = paths.get(&owned.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|path| owned.set.has(path))
            && scale.0.remove(&id).is_none()
        {
            // Another manager took the replicas over through the Scale.
            owned.set = owned.set.difference(&FieldSet::from_iter([path]));
            if owned.set.is_empty() {
                continue;
            }
        }
        out.0.insert(id, owned);
    }
    for (id, owned) in scale.0 {
        if let Some(Some(path)) = paths.get(api_version)
            && owned.set.has(&spec_replicas())
        {
            let set = FieldSet::from_iter([path]);
            out.0.insert(id, OwnedFields { set, api_version: api_version.to_owned(), time: None });
        }
    }
    Ok(out)
}
