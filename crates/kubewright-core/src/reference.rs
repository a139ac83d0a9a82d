//! References to the objects of events.

use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::{DynamicObject, Resource};

use crate::ObjectKey;

/// Reference to the object of an event.
///
/// Needed for objects whose kind is not part of their type; others implement [`Regarding`] themselves.
///
/// ```
/// use kubewright::{ObjectKey, events::Reference};
///
/// let node = Reference::new("v1", "Node", &ObjectKey::cluster("node-1"));
/// assert_eq!(node.to_string(), "Node node-1");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reference(pub ObjectReference);

impl Reference {
    /// Creates a reference by kind and key. Use `From<ObjectReference>` for one with a uid.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, key: &ObjectKey) -> Self {
        Self(ObjectReference {
            api_version: Some(api_version.into()),
            kind: Some(kind.into()),
            namespace: key.namespace().map(str::to_owned),
            name: Some(key.name().to_owned()),
            ..ObjectReference::default()
        })
    }
}

impl From<ObjectReference> for Reference {
    fn from(reference: ObjectReference) -> Self {
        Self(reference)
    }
}

impl From<&DynamicObject> for Reference {
    /// Takes kind and API version from the object, if it has them.
    fn from(object: &DynamicObject) -> Self {
        let (api_version, kind) = match &object.types {
            Some(types) => (Some(types.api_version.clone()), Some(types.kind.clone())),
            None => (None, None),
        };
        let meta = &object.metadata;
        Self(ObjectReference {
            api_version,
            kind,
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = ObjectKey::new(self.0.namespace.as_deref(), self.0.name.as_deref().unwrap_or("?"));
        write!(f, "{} {key}", self.0.kind.as_deref().unwrap_or("object"))
    }
}

/// Object that an event can be about. Implemented for every `kube::Resource` whose kind is part of its type,
/// for the handles of caches, and for [`Reference`].
pub trait Regarding {
    /// The reference for the event.
    fn reference(&self) -> Reference;
}

impl<K> Regarding for K
where
    K: Resource,
    K::DynamicType: Default,
{
    fn reference(&self) -> Reference {
        let dyntype = K::DynamicType::default();
        let mut reference = self.object_ref(&dyntype);
        reference.resource_version.clone_from(&self.meta().resource_version);
        Reference(reference)
    }
}

impl Regarding for Reference {
    fn reference(&self) -> Reference {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn an_object_without_a_name_can_be_displayed() {
        assert_eq!(Pod::default().reference().to_string(), "Pod ?");
    }
}
