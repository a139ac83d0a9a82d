//! The two Deployments, and helpers for Deployments and StatefulSets.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kubewright::prelude::*;

use crate::CloudManager;

/// Brings the Deployment of the front into its desired state.
pub fn front(manager: &CloudManager, deployment: &mut Deployment) {
    label(manager, "front", &mut deployment.spec.selector, &mut deployment.spec.template);
    let container = container(&mut deployment.spec.template, "front-container");
    container.image = Some(manager.spec.front.deployment.image.clone());
}

/// Brings the Deployment of the identity service into its desired state.
pub fn identity(manager: &CloudManager, deployment: &mut Deployment) {
    label(manager, "identity", &mut deployment.spec.selector, &mut deployment.spec.template);
    let container = container(&mut deployment.spec.template, "identity-container");
    container.image = Some(manager.spec.identity.deployment.image.clone());
    container.command = Some(["/bin/sh", "-c", "sleep 60m"].map(str::to_owned).to_vec());
}

/// Workload that is ready when most of its Pods are.
pub trait Workload {
    /// The numbers of ready Pods and of all Pods.
    fn pods(&self) -> (i32, i32);

    /// Whether most of the Pods are ready. A new workload has none and is not ready.
    fn is_ready(&self) -> bool {
        let (ready, all) = self.pods();
        ready > all / 2
    }
}

impl Workload for Deployment {
    fn pods(&self) -> (i32, i32) {
        let status = self.status.as_ref();
        status.map_or((0, 0), |now| (now.ready_replicas.unwrap_or(0), now.replicas.unwrap_or(0)))
    }
}

impl Workload for StatefulSet {
    fn pods(&self) -> (i32, i32) {
        self.status.as_ref().map_or((0, 0), |now| (now.ready_replicas.unwrap_or(0), now.replicas))
    }
}

/// Sets the labels and selector of a new workload. The selector of an existing one is immutable.
pub(crate) fn label(
    manager: &CloudManager,
    app: &str,
    selector: &mut LabelSelector,
    template: &mut PodTemplateSpec,
) {
    if selector.match_labels.is_none() && selector.match_expressions.is_none() {
        let labels = [("controller", manager.name_any()), ("app", app.to_owned())];
        let labels = labels.map(|(key, value)| (key.to_owned(), value));
        template.metadata.get_or_insert_default().labels.get_or_insert_default().extend(labels.clone());
        selector.match_labels = Some(labels.into());
    }
}

/// Returns the container of this name, adding it if there is none. It is changed in place, so that the
/// server's defaults are kept: replacing it would be a change each time.
pub(crate) fn container<'p>(template: &'p mut PodTemplateSpec, name: &str) -> &'p mut Container {
    let pod: &mut PodSpec = template.spec.get_or_insert_default();
    let place = pod.containers.iter().position(|container| container.name == name).unwrap_or_else(|| {
        pod.containers.push(Container { name: name.to_owned(), ..Container::default() });
        pod.containers.len() - 1
    });
    &mut pod.containers[place]
}
