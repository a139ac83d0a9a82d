//! Indexes that several controllers look objects up by.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kubewright::{
    Object, ObjectKey,
    cache::{FieldIndex, IndexValues, KindCache, Lazy},
};

use crate::{pod, volumes::protection};

/// Pods by the node that they are bound to.
pub(crate) static PODS_BY_NODE: FieldIndex<Pod> = FieldIndex::new("spec.nodeName", |pod, values| {
    values.extend(pod::node(&*pod.load()?));
    Ok(())
});

/// Pods by each of their labels, as `namespace/key=value`.
pub(crate) static PODS_BY_LABEL: FieldIndex<Pod> = FieldIndex::new("metadata.labels", |pod, values| {
    pod.labels().for_each(|(key, value)| values.push(&label(pod.namespace(), key, value)));
    Ok(())
});

/// Pods by the keys of the claims that they mount.
pub(crate) static PODS_BY_CLAIM: FieldIndex<Pod> = FieldIndex::new("spec.volumes", |pod, values| {
    let loaded = pod.load()?;
    let claims = protection::claims_of(&loaded);
    values.extend(claims.map(|name| ObjectKey::new(pod.namespace(), &name).to_string()));
    Ok(())
});

/// Services by [one label](selector_value) of their selector.
pub(crate) static SERVICES_BY_SELECTOR: FieldIndex<Service> =
    FieldIndex::new("spec.selector", |service, values| {
        let loaded = service.load()?;
        let selector = loaded.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        // A Service without a selector selects no Pods.
        if selector.is_some_and(|selector| !selector.is_empty()) {
            selector_value(service, selector, values);
        }
        Ok(())
    });

/// Disruption budgets by [one label](selector_value) of their selector.
pub(crate) static BUDGETS_BY_SELECTOR: FieldIndex<PodDisruptionBudget> =
    FieldIndex::new("spec.selector", |budget, values| {
        let loaded = budget.load()?;
        if let Some(selector) = loaded.spec.as_ref().and_then(|spec| spec.selector.as_ref()) {
            selector_value(budget, selector.match_labels.as_ref(), values);
        }
        Ok(())
    });

/// The value of a label in [`PODS_BY_LABEL`] and in indexes by selector.
fn label(namespace: Option<&str>, key: &str, value: &str) -> String {
    format!("{}/{key}={value}", namespace.unwrap_or_default())
}

/// The value of a selector that requires no label.
fn any_label(namespace: Option<&str>) -> String {
    format!("{}/", namespace.unwrap_or_default())
}

/// Indexes an object by one of the labels that its selector requires: whatever it selects has that label.
pub(crate) fn selector_value<K>(
    object: &Lazy<K>,
    match_labels: Option<&BTreeMap<String, String>>,
    values: &mut IndexValues,
) {
    let required = match_labels.and_then(BTreeMap::first_key_value);
    values.push(
        &required.map_or_else(
            || any_label(object.namespace()),
            |(key, value)| label(object.namespace(), key, value),
        ),
    );
}

/// The objects whose selector may match the labels of `selected`, by an index of [selector values](selector_value).
pub(crate) fn possibly_selecting<K: Object, C>(
    cache: &KindCache<K>,
    index: &'static FieldIndex<K>,
    selected: &Lazy<C>,
) -> Vec<Lazy<K>> {
    let namespace = selected.namespace();
    let labels = selected.labels().map(|(key, value)| label(namespace, key, value));
    let values = labels.chain([any_label(namespace)]);
    values.flat_map(|value| cache.by_index(index, &value).unwrap_or_default()).collect()
}

/// The value under which [`PODS_BY_LABEL`] has all Pods that a selector with these labels may match; none where the
/// selector requires no label.
pub(crate) fn required_label(
    namespace: Option<&str>,
    match_labels: Option<&BTreeMap<String, String>>,
) -> Option<String> {
    let (key, value) = match_labels?.first_key_value()?;
    Some(label(namespace, key, value))
}
