//! The same test on the programs that Kubernetes is made of.
//!
//! A control plane takes seconds to start, so a test program has one, and its tests take turns on it. Each begins by
//! removing what the one before has left: everything that was not there when the control plane was new.
//!
//! Pitfall: what a test changes in an object that was there before it, such as a label of the namespace `default`, stays.

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

/// The control plane of this program. Never dropped: its processes end with the program.
static SHARED: Mutex<Option<Plane>> = Mutex::new(None);

/// How long the control plane may take to become what it is when nobody uses it.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many kinds are listed at a time.
const AT_ONCE: usize = 16;
/// Made again by controllers as soon as they are gone, or of no consequence.
const LEFT_ALONE: [&str; 4] = ["events", "leases", "apiservices", "componentstatuses"];

/// Runs something on the control plane, while nobody else does; `None` where there is no control plane to start.
pub(super) fn take_turns<T>(on: impl AsyncFnOnce(Client, &mut Option<Plane>) -> T) -> Option<T> {
    let binaries = Binaries::find().filter(|found| found.path("kube-controller-manager").is_some())?;
    // A test that fails does so after its turn; were it otherwise, the next one still begins by cleaning up.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("there is no runtime for the test: {error}"));
    Some(runtime.block_on(async {
        if shared.is_none() {
            let started = ControlPlane::builder().controllers(true).start(&binaries).await;
            let plane = started.unwrap_or_else(|error| panic!("the control plane does not start: {error}"));
            *shared = Some(Plane { plane, furniture: None });
        }
        let config = shared.as_ref().map(|shared| shared.plane.config());
        // Connections belong to a runtime, and every test has its own.
        let client = config.and_then(|config| Client::try_from(config).ok());
        let client = client.unwrap_or_else(|| panic!("there is no client for the control plane"));
        on(client, &mut shared).await
    }))
}

/// A control plane, and what is in it that no test has made.
pub(super) struct Plane {
    plane: ControlPlane,
    /// The uids of what was there in the beginning.
    furniture: Option<BTreeSet<String>>,
}

/// An object that can be deleted.
type Found = (std::sync::Arc<ResourceInfo>, PartialObjectMeta<DynamicObject>);

impl Plane {
    /// Makes the control plane as new.
    pub(super) async fn clean(&mut self, client: &Client) -> Result<(), HarnessError> {
        let clients = Clients::new(client.clone());
        let Some(furniture) = &self.furniture else {
            furnished(client).await?;
            let found = everything(&clients).await?;
            self.furniture = Some(found.into_iter().filter_map(|(_, object)| object.metadata.uid).collect());
            return Ok(());
        };
        let started = tokio::time::Instant::now();
        loop {
            let left: Vec<Found> = everything(&clients)
                .await?
                .into_iter()
                .filter(|(resource, object)| {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    !furniture.contains(uid) && !is_replaced(resource, name)
                })
                .collect();
            let Some((resource, object)) = left.first() else { return Ok(()) };
            if started.elapsed() > PATIENCE {
                let name = object.metadata.name.clone().unwrap_or_default();
                let what = format!("the removal of {resource} {name}, which an earlier test made,");
                return Err(HarnessError::Never { what, waited: started.elapsed() });
            }
            for (resource, object) in &left {
                remove(client, resource, object).await?;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Objects that controllers put back into the namespaces that stay.
fn is_replaced(resource: &ResourceInfo, name: &str) -> bool {
    matches!(
        (resource.plural.as_str(), name),
        ("serviceaccounts", "default") | ("configmaps", "kube-root-ca.crt")
    )
}

/// Waits until the controllers have given every namespace what it needs, and have nothing else to do.
async fn furnished(client: &Client) -> Result<(), HarnessError> {
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

/// The metadata of everything that can be deleted.
async fn everything(clients: &Clients) -> Result<Vec<Found>, HarnessError> {
    let served = clients.discovery().refresh().await.map_err(|error| HarnessError::Operator(error.into()))?;
    let listed = served.preferred().into_iter().filter(|resource| {
        let usable = ["delete", "list"].iter().all(|verb| resource.supports(verb));
        usable && !LEFT_ALONE.contains(&resource.plural.as_str())
    });
    // There are dozens of kinds, and this is done several times between any two tests.
    let lists = listed.map(async |resource| {
        let list = api_of(clients.client(), &resource, None).list_metadata(&ListParams::default()).await;
        (resource, list)
    });
    let lists: Vec<_> = futures::stream::iter(lists).buffered(AT_ONCE).collect().await;
    let mut found = Vec::new();
    for (resource, list) in lists {
        match list {
            Ok(list) => found.extend(list.items.into_iter().map(|object| (resource.clone(), object))),
            // A custom kind that is on its way out is served no more, or not at all times.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405 | 429) => {}
            Err(error) => return Err(HarnessError::Operator(error.into())),
        }
    }
    Ok(found)
}

/// Deletes an object, whoever wanted to keep it: the operator that would have let it go runs no more.
async fn remove(
    client: &Client,
    resource: &ResourceInfo,
    object: &PartialObjectMeta<DynamicObject>,
) -> Result<(), HarnessError> {
    let metadata = &object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let api = api_of(client.clone(), resource, metadata.namespace.as_deref());
    let mut written = Vec::new();
    // A Pod that others delete keeps its grace period, and the node that would end it has gone with its test.
    let lingers = metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0);
    if metadata.deletion_timestamp.is_none() || lingers {
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
            // Gone, or changed: the next round shows.
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
    async fn a_pod_that_waits_for_a_node_that_is_gone_is_removed() {
        let cluster = Cluster::builder().controllers(Controllers::None).start().await.unwrap();
        let clients = Clients::new(cluster.client());
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: gone, containers: [{name: a, image: a}]}}";
        cluster.apply(pod).await.unwrap();
        let pods = kube::Api::<Pod>::default_namespaced(cluster.client());
        pods.delete("web", &DeleteParams::default()).await.unwrap();
        assert!(pods.get("web").await.unwrap().metadata.deletion_timestamp.is_some(), "it waits");

        let found = everything(&clients).await.unwrap();
        let (resource, pod) =
            found.iter().find(|(_, object)| object.metadata.name.as_deref() == Some("web")).unwrap();
        remove(&clients.client(), resource, pod).await.unwrap();
        assert!(pods.get_opt("web").await.unwrap().is_none());
    }
}
