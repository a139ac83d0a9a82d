//! Helpers of the operator's tests.

use std::{collections::BTreeSet, fmt::Debug};

use cloud_manager::CloudManager;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        coordination::v1::Lease,
        core::v1::{Event, ResourceQuota, Secret},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
};
use kubewright::Result;
use kubewright_cluster::{Cluster, HarnessError, Operator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Starts the operator in the cluster, with its definition and the storage class of the samples.
pub(crate) async fn started(cluster: &Cluster) -> Result<Operator> {
    started_for(cluster, u32::MAX).await
}

/// Starts the operator, applies the sample and waits until it is ready.
pub(crate) async fn started_with_sample(cluster: &Cluster) -> Result<Operator> {
    let operator = started(cluster).await?;
    cluster.apply(SAMPLE).await?;
    until_ready(cluster).await?;
    cluster.settled().await?;
    Ok(operator)
}

/// Starts it with a limited number of writes.
pub(crate) async fn started_for(cluster: &Cluster, writes: u32) -> Result<Operator> {
    cluster.apply(include_str!("../../config/crd.yaml")).await?;
    cluster.apply(include_str!("../../config/samples/storage-class.yaml")).await?;
    // An aborted operator has not released its lease, and a real cluster would wait for it to expire.
    cluster.delete::<Lease>("default/cloud-manager").await?;
    let operator = cluster.run_with_write_limit(cloud_manager::operator(), writes).await?;
    operator.manager().elected().await;
    Ok(operator)
}

/// The sample CloudManager.
pub(crate) const SAMPLE: &str = include_str!("../../config/samples/cloud-manager.yaml");

fn api<K>(cluster: &Cluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(cluster.client(), "default")
}

/// Changes an object by hand.
pub(crate) async fn patch<K>(cluster: &Cluster, name: &str, change: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    api::<K>(cluster).patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

/// Changes the spec of the sample.
pub(crate) async fn patch_spec(cluster: &Cluster, spec: Value) -> Result<()> {
    patch::<CloudManager>(cluster, "cloudmanager-sample", json!({"spec": spec})).await
}

/// Deletes an object with this propagation policy.
pub(crate) async fn delete<K>(cluster: &Cluster, name: &str, how: PropagationPolicy) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    api::<K>(cluster).delete(name, &params).await?;
    Ok(())
}

/// The names of all objects of a kind, in order.
pub(crate) async fn names<K>(cluster: &Cluster) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let list = api::<K>(cluster).list(&ListParams::default()).await?;
    let mut names: Vec<String> = list.items.iter().map(ResourceExt::name_any).collect();
    names.sort();
    Ok(names)
}

/// The source, reason and message of the sample's events.
pub(crate) async fn events(cluster: &Cluster) -> Result<Vec<(String, String, String)>> {
    let manager: CloudManager = cluster.get("default/cloudmanager-sample").await?;
    let about = format!("involvedObject.uid={}", manager.metadata.uid.unwrap_or_default());
    let events = api::<Event>(cluster).list(&ListParams::default().fields(&about)).await?;
    let describe = |event: Event| {
        let source = event.reporting_component.filter(|name| !name.is_empty());
        let source = source.or(event.source.and_then(|source| source.component));
        [source, event.reason, event.message].map(Option::unwrap_or_default).into()
    };
    Ok(events.items.into_iter().map(describe).collect())
}

/// The phase in the sample's status.
pub(crate) async fn phase(cluster: &Cluster) -> Result<String> {
    let manager: CloudManager = cluster.get("default/cloudmanager-sample").await?;
    Ok(manager.status.unwrap_or_default().phase)
}

/// The image of the first container.
pub(crate) fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Whether the sample controls an object.
pub(crate) async fn is_ours(cluster: &Cluster, object: &impl Resource) -> Result<bool> {
    let manager: CloudManager = cluster.get("default/cloudmanager-sample").await?;
    let owners = object.meta().owner_references.iter().flatten();
    let uid = manager.metadata.uid.as_ref();
    Ok(owners.into_iter().any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid))
}

/// Waits until the sample is ready.
pub(crate) async fn until_ready(cluster: &Cluster) -> Result<()> {
    let ready = async |cluster: &Cluster| {
        let manager: CloudManager = cluster.get("default/cloudmanager-sample").await?;
        Ok(manager.status.filter(|status| status.phase == "ready"))
    };
    cluster.eventually("the sample is ready", ready).await?;
    Ok(())
}

/// Waits until there is no object of a kind. A real garbage collector discovers a new kind late.
pub(crate) async fn until_none<K>(cluster: &Cluster) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let gone = async |cluster: &Cluster| {
        let left = names::<K>(cluster).await.map_err(|error| HarnessError::Operator(error.into()))?;
        Ok(left.is_empty().then_some(()))
    };
    Ok(cluster.eventually("there is none left", gone).await?)
}

/// Limits the Pods of the namespace by a quota.
pub(crate) async fn allow_pods(cluster: &Cluster, count: u32) -> Result<()> {
    let quota = format!(
        "{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: pods, namespace: default}}, \
         spec: {{hard: {{pods: \"{count}\"}}}}}}"
    );
    cluster.apply(quota.as_str()).await?;
    let in_force = async |cluster: &Cluster| {
        let quota: ResourceQuota = cluster.get("default/pods").await?;
        let hard = quota.status.and_then(|status| status.hard);
        Ok(hard.filter(|hard| hard.get("pods").is_some_and(|pods| pods.0 == count.to_string())))
    };
    cluster.eventually("the quota is in force", in_force).await?;
    Ok(())
}

/// The uids of the sample's parts.
pub(crate) async fn parts(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let front = cluster.find::<Deployment>("default/ake-front").await?.and_then(|part| part.metadata.uid);
    let identity =
        cluster.find::<Deployment>("default/cm-identity").await?.and_then(|part| part.metadata.uid);
    let secret = cluster.find::<Secret>("default/cm-dbauth").await?.and_then(|part| part.metadata.uid);
    let db = cluster.find::<StatefulSet>("default/cm-db").await?.and_then(|part| part.metadata.uid);
    Ok([front, identity, secret, db].into_iter().flatten().collect())
}
