//! What a Rust type must be able to do to be cached, watched and written.

use std::any::TypeId;
use std::fmt::Debug;

use k8s_openapi::ClusterResourceScope;
use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};

use crate::ObjectKey;

/// A kind of object: built-in, custom, dynamic (`DynamicObject`) or metadata only (`PartialObjectMeta<K>`).
///
/// Implemented for everything that fits; there is nothing to implement by hand.
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

/// Whether the type says that its objects live in no namespace. A dynamic kind does not say.
pub fn is_cluster_scoped<K: Object>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
}

/// `Kind namespace/name`, as errors and logs name an object.
pub fn describe<K: Object>(object: &K, dyntype: &K::DynamicType) -> String {
    let meta = object.meta();
    let name = meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or("without a name");
    format!("{} {}", K::kind(dyntype), ObjectKey::new(meta.namespace.as_deref(), name))
}
