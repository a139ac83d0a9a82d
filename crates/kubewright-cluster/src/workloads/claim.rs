//! Whose child an object is: adopting what matches and is nobody's, releasing what no longer matches.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::selector;
use crate::objects::controller_of;

/// What an owner does about an object of the kind it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is the owner's.
    Keep,
    /// It is nobody's and matches: take it.
    Adopt,
    /// It is the owner's and no longer matches: let it go.
    Release,
    /// It is none of the owner's business.
    Ignore,
}

/// What `owner` does about an object. An owner that is going takes nothing and lets nothing go.
pub(crate) fn claim(owner: &ObjectMeta, selector: &LabelSelector, object: &ObjectMeta) -> Claim {
    let going = owner.deletion_timestamp.is_some();
    let matches = selector::matches(selector, object.labels.as_ref());
    match controller_of(object) {
        Some(controller) if Some(&controller.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        Some(_) if going => Claim::Ignore,
        Some(_) => Claim::Release,
        None if going || !matches || object.deletion_timestamp.is_some() => Claim::Ignore,
        None if object.namespace != owner.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The strategic merge patch that makes `owner` the controller. The uid keeps it from hitting a namesake.
pub(crate) fn adoption(object: &ObjectMeta, owner: &OwnerReference, finalizer: Option<&str>) -> Value {
    let mut patch = json!({"metadata": {"uid": object.uid, "ownerReferences": [owner]}});
    if let Some(finalizer) = finalizer {
        patch["metadata"]["finalizers"] = json!([finalizer]);
    }
    patch
}

/// The strategic merge patch that takes `owner` off the object's owners.
pub(crate) fn release(object: &ObjectMeta, owner: &ObjectMeta, finalizer: Option<&str>) -> Value {
    let mut patch =
        json!({"metadata": {"uid": object.uid, "ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}});
    if let Some(finalizer) = finalizer {
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
    }
    patch
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn meta(name: &str, label: &str, owner: Option<&str>) -> ObjectMeta {
        let owner = owner.map(|uid| OwnerReference {
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            uid: Some(name.into()),
            labels: Some([("app".to_owned(), label.to_owned())].into()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }

    fn going(mut meta: ObjectMeta) -> ObjectMeta {
        meta.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        meta
    }

    #[test]
    fn an_owner_takes_what_is_nobodys_and_lets_go_what_no_longer_matches() {
        let owner = meta("me", "x", None);
        let chosen = LabelSelector {
            match_labels: Some([("app".to_owned(), "web".to_owned())].into()),
            match_expressions: None,
        };
        for (object, expected) in [
            (meta("p", "web", Some("me")), Claim::Keep),
            (meta("p", "other", Some("me")), Claim::Release),
            (meta("p", "web", Some("another")), Claim::Ignore),
            (meta("p", "web", None), Claim::Adopt),
            (meta("p", "other", None), Claim::Ignore),
            (going(meta("p", "web", None)), Claim::Ignore),
        ] {
            assert_eq!(claim(&owner, &chosen, &object), expected, "{object:?}");
        }
        let leaving = going(owner);
        assert_eq!(claim(&leaving, &chosen, &meta("p", "web", None)), Claim::Ignore);
        assert_eq!(claim(&leaving, &chosen, &meta("p", "other", Some("me"))), Claim::Ignore);
        assert_eq!(claim(&leaving, &chosen, &meta("p", "web", Some("me"))), Claim::Keep);
    }
}
