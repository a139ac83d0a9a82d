//! `kube-root-ca.crt`: the certificate authority of the API server, in every namespace.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kubewright::{
    ObjectKey,
    cache::Lazy,
    controller::{Action, Context, Controller, Watch},
};

use crate::{ControllerContext, writes::ignore_already_exists};

/// The name of the `ConfigMap`.
pub const NAME: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

/// The `ConfigMap` that a namespace should have; `None` when it has it. What else somebody wrote into the data goes,
/// other metadata stays.
pub fn plan(namespace: &str, certificate: &str, existing: Option<&ConfigMap>) -> Option<ConfigMap> {
    let data = BTreeMap::from([(KEY.to_owned(), certificate.to_owned())]);
    let described = |meta: &ObjectMeta| {
        meta.annotations
            .as_ref()
            .and_then(|map| map.get(DESCRIPTION.0))
            .is_some_and(|text| text == DESCRIPTION.1)
    };
    if existing.is_some_and(|held| held.data.as_ref() == Some(&data) && described(&held.metadata)) {
        return None;
    }
    let mut wanted = existing.cloned().unwrap_or_default();
    wanted.metadata.name = Some(NAME.to_owned());
    wanted.metadata.namespace = Some(namespace.to_owned());
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    annotations.insert(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned());
    wanted.data = Some(data);
    Some(wanted)
}

/// The controller that keeps the map in every namespace.
pub fn controller(cluster: &ControllerContext) -> Controller {
    let certificate = Arc::clone(cluster.certificate());
    Controller::of::<Namespace>()
        .named("root-ca-certificate-publisher")
        .watches(Watch::mapped(|map: &Lazy<ConfigMap>| {
            map.namespace().filter(|_| map.name() == NAME).map(ObjectKey::cluster)
        }))
        .reconcile(move |cx: Context<Namespace>| {
            let certificate = Arc::clone(&certificate);
            async move {
                if cx.handle().is_none_or(Lazy::is_deleting) {
                    return Ok(Action::done());
                }
                let name = cx.key().name();
                let existing = cx.get::<ConfigMap>(&ObjectKey::namespaced(name, NAME)).await?;
                match plan(name, &certificate, existing.as_deref()) {
                    Some(wanted) if existing.is_some() => drop(cx.client().update(&wanted).await?),
                    Some(wanted) => ignore_already_exists(cx.client().create(&wanted).await)?,
                    None => {}
                }
                Ok(Action::done())
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_made_once_and_restored_when_it_was_edited() {
        let made = plan("ns", "PEM", None).unwrap();
        assert_eq!(plan("ns", "PEM", Some(&made)), None);
        let mut edited = made.clone();
        edited.data.as_mut().unwrap().insert("more".into(), "x".into());
        edited.metadata.labels = Some(BTreeMap::from([("mine".into(), "yes".into())]));
        let restored = plan("ns", "PEM", Some(&edited)).unwrap();
        assert_eq!(restored.data, made.data);
        assert_eq!(restored.metadata.labels, edited.metadata.labels);
        assert!(plan("ns", "NEW", Some(&made)).is_some(), "a new authority is published");
    }
}
