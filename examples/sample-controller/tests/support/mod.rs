//! Helpers of the operator's tests.

use std::fmt::Debug;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Event},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
};
use kubewright::{
    Result,
    client::{Clients, Impersonation},
    manager::election::LeaderElection,
};
use kubewright_cluster::{Cluster, HarnessError, Operator};
use sample_controller::Foo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinHandle;

/// Starts the operator in the cluster, with its definition.
pub(crate) async fn started(cluster: &Cluster) -> Result<Operator> {
    started_for(cluster, u32::MAX).await
}

/// Starts it with a limited number of writes.
pub(crate) async fn started_for(cluster: &Cluster, writes: u32) -> Result<Operator> {
    cluster.apply(include_str!("../../config/crd.yaml")).await?;
    // An aborted operator has not released its lease, and a real cluster would wait for it to expire.
    cluster.delete::<Lease>("default/sample-controller").await?;
    let operator = cluster.run_with_write_limit(sample_controller::operator(), writes).await?;
    operator.manager().elected().await;
    Ok(operator)
}

/// Starts the operator with the rights of its service account.
pub(crate) async fn operator_of_a_pod(cluster: &Cluster) -> Result<JoinHandle<Result<()>>> {
    let account = Impersonation::user("system:serviceaccount:sample-controller:sample-controller")
        .group("system:serviceaccounts")
        .group("system:authenticated");
    let client = Clients::new(cluster.client()).impersonate(account).client();
    let election = LeaderElection::builder(client.clone(), "sample-controller")
        .namespace("sample-controller") // the namespace of the operator's Pod
        .clock(cluster.clock().clone())
        .build()?;
    let manager = sample_controller::operator()
        .client(client)
        .leader_elector(election)
        .clock(cluster.clock().clone())
        .signals(false)
        .build()
        .await?;
    Ok(tokio::spawn(manager.run()))
}

/// The manifest of a Foo.
pub(crate) fn foo(name: &str, deployment: &str, replicas: Option<i32>) -> String {
    let replicas = replicas.map_or(String::new(), |replicas| format!("\n  replicas: {replicas}"));
    format!(
        "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata:\n  name: {name}\n\
         spec:\n  deploymentName: {deployment:?}{replicas}\n"
    )
}

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
    // A strategic merge patch, as kubectl sends: list elements are merged by name.
    api::<K>(cluster).patch(name, &PatchParams::default(), &Patch::Strategic(change)).await?;
    Ok(())
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

/// The names of all objects of a kind.
pub(crate) async fn names<K>(cluster: &Cluster) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let list = api::<K>(cluster).list(&ListParams::default()).await?;
    Ok(list.items.iter().map(ResourceExt::name_any).collect())
}

/// The type, reason and message of a Foo's events.
pub(crate) async fn events(cluster: &Cluster, name: &str) -> Result<Vec<(String, String, String)>> {
    let uid = cluster.get::<Foo>(&format!("default/{name}")).await?.metadata.uid.unwrap_or_default();
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let events = api::<Event>(cluster).list(&about).await?;
    let describe = |event: Event| {
        let parts = [event.type_, event.reason, event.message].map(Option::unwrap_or_default);
        parts.into()
    };
    Ok(events.items.into_iter().map(describe).collect())
}

/// The available replicas in a Foo's status.
pub(crate) async fn available(cluster: &Cluster, name: &str) -> Result<Option<i32>> {
    let foo: Foo = cluster.get(&format!("default/{name}")).await?;
    Ok(foo.status.map(|status| status.available_replicas))
}

/// Waits until a Foo's status has this many replicas.
pub(crate) async fn until_available(cluster: &Cluster, name: &str, replicas: i32) -> Result<()> {
    let key = format!("default/{name}");
    let reported = async |cluster: &Cluster| {
        let foo: Foo = cluster.get(&key).await?;
        Ok(foo.status.filter(|status| status.available_replicas == replicas))
    };
    cluster.eventually("the Foo reports its replicas", reported).await?;
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

/// The image of the first container.
pub(crate) fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Whether a Foo controls a Deployment.
pub(crate) fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    deployment
        .owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == foo.metadata.uid.as_ref())
}
