//! Owner references: from a dependent to its owner, as garbage collection and
//! `ControllerBuilder::owns` need them.
//!
//! An object has any number of owners and at most one controller. An owner is cluster-scoped or in the
//! namespace of its dependent: a reference across namespaces would make the garbage collector delete the
//! dependent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use kubewright_core::{Object, object::describe};

/// Error from setting or checking an owner reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another owner controls the object; controller-runtime's `AlreadyOwnedError`.
    #[error(
        "{object} is controlled by {controller} (uid {uid}) and cannot be controlled by {owner} too; rename one of them, or remove the owner from the object"
    )]
    AlreadyControlled {
        /// The object.
        object: String,
        /// Kind and name of its controller.
        controller: String,
        /// The uid of its controller.
        uid: String,
        /// The owner that was to be set.
        owner: String,
    },
    /// The object exists and has no reference to the owner.
    #[error(
        "{object} already exists and does not belong to {owner}; rename one of them, remove the object, or make {owner} its owner"
    )]
    NotOwned {
        /// The object.
        object: String,
        /// The expected owner.
        owner: String,
    },
    /// Owner and object are in different namespaces.
    #[error("{owner} cannot own {object}: an owner lives in the namespace of what it owns, or in none")]
    CrossNamespace {
        /// The object.
        object: String,
        /// The owner that was to be set.
        owner: String,
    },
    /// The owner has no uid, because the server has never stored it.
    #[error("{owner} cannot own {object}: it has no uid; use an owner that the server has answered with")]
    MissingUid {
        /// The object.
        object: String,
        /// The owner that was to be set.
        owner: String,
    },
}

/// Sets `owner` as the controller of `object`: the object is deleted with it, and its changes enqueue the
/// owner. Fails if another owner controls the object.
///
/// ```
/// # use kubewright::{client::{set_controller_reference, OwnerError}, k8s_openapi::api::core::v1::{ConfigMap, Pod}};
/// # let pod: Pod = serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "namespace": "shop", "uid": "1"}}))?;
/// # let other: Pod = serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "namespace": "bank", "uid": "2"}}))?;
/// let mut map = ConfigMap::default();
/// map.metadata.namespace = Some("shop".into());
/// set_controller_reference(&pod, &mut map)?;
/// assert_eq!(map.metadata.owner_references.as_ref().unwrap()[0].name, "web");
/// assert!(matches!(set_controller_reference(&other, &mut map), Err(OwnerError::CrossNamespace { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_controller_reference<O, K>(owner: &O, object: &mut K) -> Result<(), OwnerError>
where
    O: Object<DynamicType: Default>,
    K: Object<DynamicType: Default>,
{
    OwnerRef::new(owner, &O::DynamicType::default(), true).set_on(object, &K::DynamicType::default())
}

/// Adds `owner` to the owners of `object`: the object is deleted when the last of its owners is.
pub fn set_owner_reference<O, K>(owner: &O, object: &mut K) -> Result<(), OwnerError>
where
    O: Object<DynamicType: Default>,
    K: Object<DynamicType: Default>,
{
    OwnerRef::new(owner, &O::DynamicType::default(), false).set_on(object, &K::DynamicType::default())
}

/// Removes `owner` from the owners of `object`, as controller or not. Returns whether it was an owner.
pub fn remove_owner_reference<O: Object, K: Object>(owner: &O, object: &mut K) -> bool {
    let uid = owner.meta().uid.as_deref();
    let Some(owners) = &mut object.meta_mut().owner_references else { return false };
    let before = owners.len();
    owners.retain(|reference| Some(&*reference.uid) != uid);
    let removed = owners.len() < before;
    if owners.is_empty() {
        object.meta_mut().owner_references = None;
    }
    removed
}

/// A validated reference to an owner that is not on an object yet; also for kinds known only at run time.
#[derive(Debug, Clone)]
pub struct OwnerRef {
    stored: Option<OwnerReference>,
    namespace: Option<String>,
    owner: String,
}

impl OwnerRef {
    /// Creates a reference to `owner`.
    pub fn new<O: Object>(owner: &O, dyntype: &O::DynamicType, controller: bool) -> Self {
        let reference = owner.owner_ref(dyntype).filter(|reference| !reference.uid.is_empty());
        let reference = reference.map(|mut reference| {
            if controller {
                reference.controller = Some(true);
                // Under foreground deletion the owner then stays until its dependents are gone.
                reference.block_owner_deletion = Some(true);
            }
            reference
        });
        Self { stored: reference, namespace: owner.meta().namespace.clone(), owner: describe(owner, dyntype) }
    }

    /// Fails unless the reference is on the object, in the same role.
    pub fn check_on<K: Object>(&self, object: &K, dyntype: &K::DynamicType) -> Result<(), OwnerError> {
        let owners = object.meta().owner_references.as_deref().unwrap_or_default();
        let held = self.stored.as_ref().is_some_and(|wanted| {
            owners.iter().any(|held| held.uid == wanted.uid && held.controller == wanted.controller)
        });
        if held {
            return Ok(());
        }
        Err(OwnerError::NotOwned { object: describe(object, dyntype), owner: self.owner.clone() })
    }

    /// Sets the reference on an object, replacing an older one to the same owner.
    pub fn set_on<K: Object>(&self, object: &mut K, dyntype: &K::DynamicType) -> Result<(), OwnerError> {
        let owner = self.owner.clone();
        let Some(reference) = self.stored.clone() else {
            return Err(OwnerError::MissingUid { object: describe(object, dyntype), owner });
        };
        if self.namespace.is_some() && self.namespace != object.meta().namespace {
            return Err(OwnerError::CrossNamespace { object: describe(object, dyntype), owner });
        }
        let owners = object.meta().owner_references.as_deref().unwrap_or_default();
        let other = owners.iter().find(|held| held.controller == Some(true) && held.uid != reference.uid);
        if let (Some(other), Some(true)) = (other, reference.controller) {
            return Err(OwnerError::AlreadyControlled {
                controller: format!("{} {}", other.kind, other.name),
                uid: other.uid.clone(),
                object: describe(object, dyntype),
                owner,
            });
        }
        let owners = object.meta_mut().owner_references.get_or_insert_default();
        match owners.iter_mut().find(|held| held.uid == reference.uid) {
            Some(held) => *held = reference,
            None => owners.push(reference),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
    use serde_json::json;

    use super::*;

    fn pod(name: &str, namespace: &str, uid: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": namespace, "uid": uid}}))
            .unwrap()
    }

    fn map(namespace: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": "m", "namespace": namespace}})).unwrap()
    }

    #[test]
    fn a_second_controller_is_rejected_and_named() {
        let mut map = map("a");
        set_controller_reference(&pod("one", "a", "1"), &mut map).unwrap();
        set_controller_reference(&pod("one", "a", "1"), &mut map).unwrap();
        let error = set_controller_reference(&pod("two", "a", "2"), &mut map).unwrap_err().to_string();
        assert!(
            error.contains("ConfigMap a/m") && error.contains("Pod one") && error.contains("Pod a/two"),
            "{error}"
        );
        assert_eq!(map.metadata.owner_references.as_ref().unwrap().len(), 1);
        set_owner_reference(&pod("two", "a", "2"), &mut map).unwrap();
        assert_eq!(map.metadata.owner_references.as_ref().unwrap().len(), 2);
    }

    #[test]
    fn an_object_belongs_to_the_owner_of_its_reference_in_that_role() {
        let (one, two) = (pod("one", "a", "1"), pod("two", "a", "2"));
        let mut map = map("a");
        let controls = OwnerRef::new(&one, &(), true);
        let error = controls.check_on(&map, &()).unwrap_err().to_string();
        assert!(error.contains("ConfigMap a/m already exists") && error.contains("Pod a/one"), "{error}");
        set_owner_reference(&one, &mut map).unwrap();
        assert!(controls.check_on(&map, &()).is_err(), "to own is not to control");
        set_controller_reference(&one, &mut map).unwrap();
        controls.check_on(&map, &()).unwrap();
        assert!(OwnerRef::new(&two, &(), true).check_on(&map, &()).is_err());
    }

    #[test]
    fn owners_of_other_namespaces_and_without_uid_are_rejected() {
        let mut cluster_wide = Node::default();
        cluster_wide.metadata.name = Some("n".into());
        let namespaced = set_owner_reference(&pod("one", "a", "1"), &mut cluster_wide);
        assert!(matches!(namespaced, Err(OwnerError::CrossNamespace { .. })));
        assert!(matches!(
            set_owner_reference(&pod("one", "a", ""), &mut map("a")),
            Err(OwnerError::MissingUid { .. })
        ));
        cluster_wide.metadata.uid = Some("9".into());
        set_owner_reference(&cluster_wide, &mut map("a"))
            .expect("an owner without a namespace owns anywhere");
    }

    #[test]
    fn a_removed_owner_leaves_the_others() {
        let mut map = map("a");
        set_controller_reference(&pod("one", "a", "1"), &mut map).unwrap();
        set_owner_reference(&pod("two", "a", "2"), &mut map).unwrap();
        assert!(remove_owner_reference(&pod("one", "a", "1"), &mut map));
        assert!(!remove_owner_reference(&pod("one", "a", "1"), &mut map));
        assert!(remove_owner_reference(&pod("two", "a", "2"), &mut map));
        assert!(map.metadata.owner_references.is_none());
    }
}
