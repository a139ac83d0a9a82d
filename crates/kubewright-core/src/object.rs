//! Bounds of the types that can be cached, watched and written.

use std::any::TypeId;
use std::fmt::Debug;

use k8s_openapi::ClusterResourceScope;
use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};

use crate::ObjectKey;

/// Type of Kubernetes objects: built-in, custom, dynamic (`DynamicObject`) or metadata only
/// (`PartialObjectMeta<K>`).
///
/// Implemented for every type that meets the bounds.
pub trait Object:
    Resource<DynamicType: Clone + Debug, Scope: 'static>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType: Clone + Debug, Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Whether the type is statically cluster-scoped. The scope of dynamic types is known at run time only.
pub fn is_cluster_scoped<K: Object>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
}

/// `Kind namespace/name`, for errors and logs.
pub fn describe<K: Object>(object: &K, dyntype: &K::DynamicType) -> String {
    let meta = object.meta();
    let name = meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or("without a name");
    format!("{} {}", K::kind(dyntype), ObjectKey::new(meta.namespace.as_deref(), name))
}
