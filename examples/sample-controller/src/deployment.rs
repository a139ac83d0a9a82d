//! The Deployment of a Foo.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, PodSpec},
};
use kubewright::prelude::*;

use crate::Foo;

/// Brings a new or existing Deployment into the state that the Foo specifies. Other fields are kept: defaults
/// of the server, and changes of other clients.
pub fn desired(foo: &Foo, deployment: &mut Deployment) {
    let labels = [("app", "nginx".to_owned()), ("controller", foo.name_any())];
    let labels = labels.map(|(key, value)| (key.to_owned(), value));

    let spec = &mut deployment.spec;
    spec.replicas = foo.spec.replicas.or(spec.replicas);
    spec.selector.match_labels.get_or_insert_default().extend(labels.clone());
    spec.template.metadata.get_or_insert_default().labels.get_or_insert_default().extend(labels);
    container(spec.template.spec.get_or_insert_default(), "nginx").image = Some("nginx:latest".to_owned());
}

/// The number of available replicas of a Deployment.
pub fn available(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Returns the container of this name, adding it if there is none.
fn container<'p>(pod: &'p mut PodSpec, name: &str) -> &'p mut Container {
    let place = pod.containers.iter().position(|container| container.name == name).unwrap_or_else(|| {
        pod.containers.push(Container { name: name.to_owned(), ..Container::default() });
        pod.containers.len() - 1
    });
    &mut pod.containers[place]
}
