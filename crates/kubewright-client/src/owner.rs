//! Who owns an object: references from a dependent to its owner, without which garbage collection and
//! `owns` do not work.
//!
//! An object has any number of owners and at most one that controls it. An owner lives in the namespace of its dependent
//! or in none: a reference across namespaces would make the garbage collector delete the dependent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use kubewright_core::{Object, object::describe};

/// Why an object cannot have an owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Somebody else controls the object.
    #[error(
        "{object} is controlled by {controller} (uid {uid}) and cannot be controlled by {owner} too; rename one of them, or remove the owner from the object"
    )]
    Controlled {
        /// The object.
        object: String,
        /// Who controls it.
        controller: String,
        /// The identity of who controls it.
        uid: String,
        /// Who wanted to.
        owner: String,
    },
    /// The object exists, and is not the owner's.
    #[error(
        "{object} already exists and does not belong to {owner}; rename one of them, remove the object, or make {owner} its owner"
    )]
    Foreign {
        /// The object.
        object: String,
        /// Who wanted it.
        owner: String,
    },
    /// Owner and object live in different namespaces.
    #[error("{owner} cannot own {object}: an owner lives in the namespace of what it owns, or in none")]
    OtherNamespace {
        /// The object.
        object: String,
        /// Who wanted to own it.
        owner: String,
    },
    /// The owner has never been stored.
    #[error("{owner} cannot own {object}: it has no uid; use an owner that the server has answered with")]
    NoIdentity {
        /// The object.
        object: String,
        /// Who wanted to own it.
        owner: String,
    },
}

/// Makes `owner` the one that controls `object`: the object is deleted with it, and its changes wake the owner's
/// controller. Refused if somebody else controls the object.
///
/// ```
/// # use kubewright::{client::{set_controller_reference, OwnerError}, k8s_openapi::api::core::v1::{ConfigMap, Pod}};
/// # let pod: Pod = serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "namespace": "shop", "uid": "1"}}))?;
/// # let stranger: Pod = serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "namespace": "bank", "uid": "2"}}))?;
/// let mut map = ConfigMap::default();
/// map.metadata.namespace = Some("shop".into());
/// set_controller_reference(&pod, &mut map)?;
/// assert_eq!(map.metadata.owner_references.as_ref().unwrap()[0].name, "web");
/// assert!(matches!(set_controller_reference(&stranger, &mut map), Err(OwnerError::OtherNamespace { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_controller_reference<O, K>(owner: &O, object: &mut K) -> Result<(), OwnerError>
where
    O: Object<DynamicType: Default>,
    K: Object<DynamicType: Default>,
{
    Reference::to(owner, &O::DynamicType::default(), true).put_on(object, &K::DynamicType::default())
}

/// Makes `owner` one of the owners of `object`: the object is deleted when the last of them is.
pub fn set_owner_reference<O, K>(owner: &O, object: &mut K) -> Result<(), OwnerError>
where
    O: Object<DynamicType: Default>,
    K: Object<DynamicType: Default>,
{
    Reference::to(owner, &O::DynamicType::default(), false).put_on(object, &K::DynamicType::default())
}

/// Takes `owner` from the owners of `object`, as controller or not. Says whether it was one.
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

/// A reference to an owner, before it is on an object; for kinds that are described at run time as well.
#[derive(Debug, Clone)]
pub struct Reference {
    stored: Option<OwnerReference>,
    namespace: Option<String>,
    owner: String,
}

impl Reference {
    /// A reference to this owner.
    pub fn to<O: Object>(owner: &O, dyntype: &O::DynamicType, controller: bool) -> Self {
        let reference = owner.owner_ref(dyntype).filter(|reference| !reference.uid.is_empty());
        let reference = reference.map(|mut reference| {
            if controller {
                reference.controller = Some(true);
                // The owner then stays, under foreground deletion, until what it controls is gone.
                reference.block_owner_deletion = Some(true);
            }
            reference
        });
        Self { stored: reference, namespace: owner.meta().namespace.clone(), owner: describe(owner, dyntype) }
    }

    /// Refused unless the reference is on the object, in the same role.
    pub fn is_on<K: Object>(&self, object: &K, dyntype: &K::DynamicType) -> Result<(), OwnerError> {
        let owners = object.meta().owner_references.as_deref().unwrap_or_default();
        let held = self.stored.as_ref().is_some_and(|wanted| {
            owners.iter().any(|held| held.uid == wanted.uid && held.controller == wanted.controller)
        });
        if held {
            return Ok(());
        }
        Err(OwnerError::Foreign { object: describe(object, dyntype), owner: self.owner.clone() })
    }

    /// Puts the reference on an object, replacing an older one to the same owner.
    pub fn put_on<K: Object>(&self, object: &mut K, dyntype: &K::DynamicType) -> Result<(), OwnerError> {
        let owner = self.owner.clone();
        let Some(reference) = self.stored.clone() else {
            return Err(OwnerError::NoIdentity { object: describe(object, dyntype), owner });
        };
        if self.namespace.is_some() && self.namespace != object.meta().namespace {
            return Err(OwnerError::OtherNamespace { object: describe(object, dyntype), owner });
        }
        let owners = object.meta().owner_references.as_deref().unwrap_or_default();
        let other = owners.iter().find(|held| held.controller == Some(true) && held.uid != reference.uid);
        if let (Some(other), Some(true)) = (other, reference.controller) {
            return Err(OwnerError::Controlled {
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
    fn a_second_controller_is_refused_and_named() {
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
    fn an_object_belongs_to_whom_its_reference_says_and_in_that_role() {
        let (one, two) = (pod("one", "a", "1"), pod("two", "a", "2"));
        let mut map = map("a");
        let controls = Reference::to(&one, &(), true);
        let error = controls.is_on(&map, &()).unwrap_err().to_string();
        assert!(error.contains("ConfigMap a/m already exists") && error.contains("Pod a/one"), "{error}");
        set_owner_reference(&one, &mut map).unwrap();
        assert!(controls.is_on(&map, &()).is_err(), "to own is not to control");
        set_controller_reference(&one, &mut map).unwrap();
        controls.is_on(&map, &()).unwrap();
        assert!(Reference::to(&two, &(), true).is_on(&map, &()).is_err());
    }

    #[test]
    fn owners_of_other_namespaces_and_without_identity_are_refused() {
        let mut cluster_wide = Node::default();
        cluster_wide.metadata.name = Some("n".into());
        let namespaced = set_owner_reference(&pod("one", "a", "1"), &mut cluster_wide);
        assert!(matches!(namespaced, Err(OwnerError::OtherNamespace { .. })));
        assert!(matches!(
            set_owner_reference(&pod("one", "a", ""), &mut map("a")),
            Err(OwnerError::NoIdentity { .. })
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
