//! Helpers for metadata, selectors and quantities that all controllers share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference, Time},
};
use kube::core::{Selector, SelectorExt};
use kubewright_apiserver::registry::quantity;

/// The field manager of the built-in controllers.
pub(crate) const FIELD_MANAGER: &str = "kube-controller-manager";

/// The value of a label.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The reference to the controller of an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` is the controller of the object.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, owner: &ObjectMeta) -> bool {
    controller_of(meta).is_some_and(|found| Some(&found.uid) == owner.uid.as_ref())
}

/// The reference that makes `owner` the controller of another object.
pub(crate) fn controller_reference<K: k8s_openapi::Resource>(owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: K::API_VERSION.to_owned(),
        kind: K::KIND.to_owned(),
        name: owner.name.clone().unwrap_or_default(),
        uid: owner.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A time as objects have it, in whole seconds.
pub(crate) fn timestamp(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// None for zero, as Go's `omitempty` writes it.
pub(crate) fn omit_zero(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

/// The number of items, as statuses have it.
pub(crate) fn count<T>(items: impl IntoIterator<Item = T>) -> i32 {
    i32::try_from(items.into_iter().count()).unwrap_or(i32::MAX)
}

/// Whether the label selector matches; an absent or invalid one matches nothing.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(Ok(selector)) = selector.map(|selector| Selector::try_from(selector.clone())) else {
        return false;
    };
    let empty = BTreeMap::new();
    selector.matches(labels.unwrap_or(&empty))
}

/// The quantity in thousandths, as Go's `MilliValue`; 0 if it is absent or invalid.
pub(crate) fn milli_value(quantity: Option<&Quantity>) -> i128 {
    quantity.and_then(|quantity| quantity::parse_text(&quantity.0)).unwrap_or(0)
}
