//! What the tests of the operator have in common.

use std::fmt::Debug;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Event},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
};
use kubewright::{
    Result,
    client::{Clients, Impersonation},
};
use kubewright_cluster::{Cluster, Operator};
use sample_controller::Foo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinHandle;

pub async fn cluster() -> Cluster {
    let start = "2026-01-01T00:00:00Z".parse().expect("a time");
    Cluster::builder().nodes(3).virtual_time(start).start().await.expect("a cluster starts")
}

/// The operator at work in the cluster, with its definition.
pub async fn started(cluster: &Cluster) -> Result<Operator> {
    cluster.apply(include_str!("../../config/crd.yaml")).await?;
    Ok(cluster.run(sample_controller::operator()).await?)
}

/// The operator with the rights that it has in a pod of its own.
pub async fn operator_of_a_pod(cluster: &Cluster) -> Result<JoinHandle<Result<()>>> {
    let account = Impersonation::user("system:serviceaccount:sample-controller:sample-controller")
        .group("system:serviceaccounts")
        .group("system:authenticated");
    let client = Clients::new(cluster.client()).impersonate(account).client();
    let manager = sample_controller::operator()
        .client(Client::new(client, "sample-controller"))
        .clock(cluster.clock().clone())
        .signals(false)
        .build()
        .await?;
    Ok(tokio::spawn(manager.run()))
}

/// A Foo as its user writes it.
pub fn foo(name: &str, deployment: &str, replicas: Option<i32>) -> String {
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
pub async fn patch<K>(cluster: &Cluster, name: &str, change: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    // As kubectl does it: elements of a list are told apart by their names.
    api::<K>(cluster).patch(name, &PatchParams::default(), &Patch::Strategic(change)).await?;
    Ok(())
}

/// Deletes an object in one of the ways there are.
pub async fn delete<K>(cluster: &Cluster, name: &str, how: PropagationPolicy) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    api::<K>(cluster).delete(name, &params).await?;
    Ok(())
}

/// The names of all objects of a kind.
pub async fn names<K>(cluster: &Cluster) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let list = api::<K>(cluster).list(&ListParams::default()).await?;
    Ok(list.items.iter().map(ResourceExt::name_any).collect())
}

/// What was told of a Foo: type, reason and message of its events.
pub async fn events(cluster: &Cluster, name: &str) -> Result<Vec<(String, String, String)>> {
    let about = ListParams::default().fields(&format!("involvedObject.kind=Foo,involvedObject.name={name}"));
    let events = api::<Event>(cluster).list(&about).await?;
    let told = |event: Event| {
        let parts = [event.type_, event.reason, event.message].map(Option::unwrap_or_default);
        parts.into()
    };
    Ok(events.items.into_iter().map(told).collect())
}

/// What a Foo reports.
pub async fn available(cluster: &Cluster, name: &str) -> Result<Option<i32>> {
    let foo: Foo = cluster.get(&format!("default/{name}")).await?;
    Ok(foo.status.map(|status| status.available_replicas))
}

/// The image of the first container.
pub fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Whether a Foo controls a Deployment.
pub fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    deployment
        .owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == foo.metadata.uid.as_ref())
}
