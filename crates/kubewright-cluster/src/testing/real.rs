//! Tests on a real control plane.
//!
//! A control plane takes seconds to start, so the tests of a program share one and run on it one at a time.
//! Each begins by deleting all objects that were not there when the control plane was new.
//!
//! Pitfall: changes of objects that were there before, such as a label of the namespace `default`, persist.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt as _;
use kube::{
    Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{DynamicObject, PartialObjectMeta},
};
use kubewright::client::{Clients, ResourceInfo};
use kubewright_envtest::{Binaries, ControlPlane};
use serde_json::json;

use crate::{Cluster, harness::HarnessError, lifecycle::monitors::api_of};

/// The control plane of this test program. Never dropped: its processes end with the program.
static SHARED: Mutex<Option<SharedControlPlane>> = Mutex::new(None);

/// Time-out for cleaning up.
const CLEANUP_TIMEOUT: Duration = Duration::from_mins(1);
/// Number of concurrent lists.
const CONCURRENT_LISTS: usize = 16;
/// Resources that controllers recreate at once, or that do not matter.
const IGNORED_RESOURCES: [&str; 4] = ["events", "leases", "apiservices", "componentstatuses"];

/// Runs a closure with exclusive access to the control plane; `None` if its programs are missing.
pub(super) fn with_control_plane<T>(
    run: impl AsyncFnOnce(Client, &mut Option<SharedControlPlane>) -> T,
) -> Option<T> {
    let binaries = Binaries::find().filter(|found| found.path("kube-controller-manager").is_some())?;
    // The next test cleans up after one that panicked.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("there is no runtime for the test: {error}"));
    Some(runtime.block_on(async {
        if shared.is_none() {
            let started = ControlPlane::builder().controllers(true).start(&binaries).await;
            let plane = started.unwrap_or_else(|error| panic!("the control plane does not start: {error}"));
            *shared = Some(SharedControlPlane { plane, initial_uids: None });
        }
        let config = shared.as_ref().map(|shared| shared.plane.config());
        // Connections belong to a runtime, and each test has its own.
        let client = config.and_then(|config| Client::try_from(config).ok());
        let client = client.unwrap_or_else(|| panic!("there is no client for the control plane"));
        run(client, &mut shared).await
    }))
}

/// Control plane and the objects that it began with.
pub(super) struct SharedControlPlane {
    plane: ControlPlane,
    /// The uids of the initial objects.
    initial_uids: Option<BTreeSet<String>>,
}

/// An object that can be deleted.
type Found = (std::sync::Arc<ResourceInfo>, PartialObjectMeta<DynamicObject>);

impl SharedControlPlane {
    /// Deletes the objects of earlier tests.
    pub(super) async fn clean(&mut self, client: &Client) -> Result<(), HarnessError> {
        let clients = Clients::new(client.clone());
        let Some(initial_uids) = &self.initial_uids else {
            wait_until_initialized(client).await?;
            let found = list_deletable(&clients).await?;
            self.initial_uids =
                Some(found.into_iter().filter_map(|(_, object)| object.metadata.uid).collect());
            return Ok(());
        };
        let started = tokio::time::Instant::now();
        loop {
            let left: Vec<Found> = list_deletable(&clients)
                .await?
                .into_iter()
                .filter(|(resource, object)| {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    !initial_uids.contains(uid) && !is_recreated(resource, name)
                })
                .collect();
            let Some((resource, object)) = left.first() else { return Ok(()) };
            if started.elapsed() > CLEANUP_TIMEOUT {
                let name = object.metadata.name.clone().unwrap_or_default();
                let what = format!("the removal of {resource} {name}, which an earlier test made,");
                return Err(HarnessError::ConditionTimeout { what, waited: started.elapsed() });
            }
            for (resource, object) in &left {
                remove(client, resource, object).await?;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Objects that controllers recreate in the initial namespaces.
fn is_recreated(resource: &ResourceInfo, name: &str) -> bool {
    matches!(
        (resource.plural.as_str(), name),
        ("serviceaccounts", "default") | ("configmaps", "kube-root-ca.crt")
    )
}

/// Waits until the controllers have created the initial objects and settled.
async fn wait_until_initialized(client: &Client) -> Result<(), HarnessError> {
    let cluster = Cluster::builder().attach(client.clone()).await;
    let cluster = cluster.map_err(|error| HarnessError::Operator(error.into()))?;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        for (kind, name) in [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")] {
            let what = format!("{kind} {namespace}/{name} of a new control plane");
            cluster
                .eventually(&what, async |cluster| {
                    let word = kind.to_lowercase();
                    let found = cluster.clients().dynamic().find(&word).await?.namespace(namespace);
                    Ok(found.get_opt(name).await?)
                })
                .await?;
        }
    }
    cluster.settled().await
}

/// Lists the metadata of all objects that can be deleted.
async fn list_deletable(clients: &Clients) -> Result<Vec<Found>, HarnessError> {
    let served = clients.discovery().refresh().await.map_err(|error| HarnessError::Operator(error.into()))?;
    let listed = served.preferred().into_iter().filter(|resource| {
        let usable = ["delete", "list"].iter().all(|verb| resource.supports(verb));
        usable && !IGNORED_RESOURCES.contains(&resource.plural.as_str())
    });
    // Lists dozens of kinds, several times between two tests.
    let lists = listed.map(async |resource| {
        let list = api_of(clients.client(), &resource, None).list_metadata(&ListParams::default()).await;
        (resource, list)
    });
    let lists: Vec<_> = futures::stream::iter(lists).buffered(CONCURRENT_LISTS).collect().await;
    let mut found = Vec::new();
    for (resource, list) in lists {
        match list {
            Ok(list) => found.extend(list.items.into_iter().map(|object| (resource.clone(), object))),
            // A custom kind whose definition is being deleted may not be served.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405 | 429) => {}
            Err(error) => return Err(HarnessError::Operator(error.into())),
        }
    }
    Ok(found)
}

/// Deletes an object and its finalizers: the operator that would remove them has stopped.
async fn remove(
    client: &Client,
    resource: &ResourceInfo,
    object: &PartialObjectMeta<DynamicObject>,
) -> Result<(), HarnessError> {
    let metadata = &object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let api = api_of(client.clone(), resource, metadata.namespace.as_deref());
    let mut written = Vec::new();
    // The grace period of a Pod never ends: its node has stopped with its test.
    let in_grace_period = metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0);
    if metadata.deletion_timestamp.is_none() || in_grace_period {
        let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
        written.push(api.delete(name, &params).await.map(drop));
    }
    let held = metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    if held && resource.plural != "customresourcedefinitions" {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        written.push(api.patch(name, &PatchParams::default(), &patch).await.map(drop));
    }
    for result in written {
        match result {
            Ok(()) => {}
            // Deleted or changed: the next round shows.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405 | 409 | 422) => {}
            Err(error) => return Err(HarnessError::Operator(error.into())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::Controllers;

    #[tokio::test]
    async fn a_pod_of_a_stopped_node_is_removed() {
        let cluster = Cluster::builder().controllers(Controllers::None).start().await.unwrap();
        let clients = Clients::new(cluster.client());
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: gone, containers: [{name: a, image: a}]}}";
        cluster.apply(pod).await.unwrap();
        let pods = kube::Api::<Pod>::default_namespaced(cluster.client());
        pods.delete("web", &DeleteParams::default()).await.unwrap();
        assert!(pods.get("web").await.unwrap().metadata.deletion_timestamp.is_some(), "it waits");

        let found = list_deletable(&clients).await.unwrap();
        let (resource, pod) =
            found.iter().find(|(_, object)| object.metadata.name.as_deref() == Some("web")).unwrap();
        remove(&clients.client(), resource, pod).await.unwrap();
        assert!(pods.get_opt("web").await.unwrap().is_none());
    }
}
