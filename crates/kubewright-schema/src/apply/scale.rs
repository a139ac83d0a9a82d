//! managedFields through the scale subresource.
//!
//! A Scale is a view of a Deployment or of some other workload: its `spec.replicas` is some path of the
//! parent. Before a write, the parent's entries that own that path become entries of the Scale
//! ([`to_scale`]); after it, what the Scale's entries say goes back into the parent ([`to_parent`]).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    managed::{Managed, ManagedError, Owned},
    path::PathElement,
    set::FieldSet,
};

/// The version in which a Scale is written.
pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// Where each version of the parent keeps its replicas; `None` for a version without a scale subresource.
pub type ReplicasPaths = BTreeMap<String, Option<Vec<PathElement>>>;

/// `spec.replicas`, where the built-in types and a Scale itself keep it.
pub fn spec_replicas() -> Vec<PathElement> {
    vec![PathElement::field("spec"), PathElement::field("replicas")]
}

/// The parent's managedFields as the Scale sees them.
pub fn to_scale(parent: &Value, paths: &ReplicasPaths) -> Result<Managed, ManagedError> {
    let mut scale = Managed::default();
    for (id, owned) in Managed::decode(parent)?.0 {
        if let Some(Some(path)) = paths.get(&owned.api_version)
            && owned.set.has(path)
        {
            let set = FieldSet::from_iter([spec_replicas()]);
            scale.0.insert(id, Owned { set, api_version: SCALE_API_VERSION.to_owned(), time: owned.time });
        }
    }
    Ok(scale)
}

/// The parent's managedFields after a write of the Scale, which was made on a parent of version `api_version`.
///
/// A manager that is new here has no time, as upstream leaves it.
pub fn to_parent(
    parent: &Value,
    scale: &Value,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Managed, ManagedError> {
    let mut scale = Managed::decode(scale)?;
    let mut out = Managed::default();
    for (id, mut owned) in Managed::decode(parent)?.0 {
        let Some(path) = paths.get(&owned.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|path| owned.set.has(path))
            && scale.0.remove(&id).is_none()
        {
            // Somebody took the replicas over through the Scale.
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
            out.0.insert(id, Owned { set, api_version: api_version.to_owned(), time: None });
        }
    }
    Ok(out)
}
