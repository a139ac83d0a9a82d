//! A whole operator with a custom kind that is installed after the operator has started.

use std::time::Duration;

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::place::{Running, TestEnv, eventually};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "sample.example.com", version = "v1alpha1", kind = "Foo", namespaced, status = "FooStatus")]
#[serde(rename_all = "camelCase")]
struct FooSpec {
    deployment_name: String,
    replicas: Option<i32>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FooStatus {
    available_replicas: i32,
}

/// Keeps one Deployment per Foo.
async fn reconcile(cx: Context<Foo>) -> Result<Action> {
    let Some(sample) = cx.object()? else { return Ok(Action::done()) };
    let deployment = cx
        .create_or_update(&sample.spec.deployment_name, |deployment: &mut Deployment| {
            desired(&sample, deployment)
        })
        .controlled_by(&*sample)
        .await?;
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    cx.status(|status: &mut FooStatus| status.available_replicas = available).await?;
    cx.event("Synced", "Foo synced successfully");
    Ok(Action::done())
}

fn desired(sample: &Foo, deployment: &mut Deployment) -> Result<()> {
    let spec = &mut deployment.spec;
    spec.replicas = sample.spec.replicas;
    if spec.template.spec.is_none() {
        spec.selector = serde_json::from_value(json!({"matchLabels": {"foo": sample.name_any()}}))?;
        spec.template = serde_json::from_value(json!({
            "metadata": {"labels": {"foo": sample.name_any()}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        }))?;
    }
    Ok(())
}

pub(crate) async fn it_waits_until_its_kind_is_served(env: TestEnv) {
    let controller = Controller::of::<Foo>().owns::<Deployment>().workers(2).reconcile(reconcile);
    let running = Running::begin(env.manager("sample-controller").controller(controller)).await;
    let caches = running.handle.own_cluster().caches().clone();
    eventually("it asks for its kinds", async || caches.unsynced() == ["Foo"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let definitions = Api::<CustomResourceDefinition>::all(env.client.clone());
    definitions.create(&PostParams::default(), &Foo::crd()).await.unwrap();
    let (foos, deployments) = (env.api::<Foo>(), env.api::<Deployment>());
    let spec = FooSpec { deployment_name: "example-foo".to_owned(), replicas: Some(1) };
    eventually("a Foo can be created", async || {
        foos.create(&PostParams::default(), &Foo::new("example", spec.clone())).await.is_ok()
    })
    .await;
    let found = async || deployments.get_opt("example-foo").await.unwrap();
    eventually("the deployment", async || found().await.is_some()).await;
    let first = found().await.unwrap();
    let owner = &first.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("Foo", "example", Some(true)));
    let fields = first.metadata.managed_fields.as_ref().unwrap();
    assert!(fields.iter().any(|field| field.manager.as_deref() == Some("sample-controller")), "{fields:?}");

    let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    deployments.patch_status("example-foo", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let status = async || foos.get("example").await.unwrap().status.map(|status| status.available_replicas);
    eventually("the status follows that of the deployment", async || status().await == Some(1)).await;

    deployments.delete("example-foo", &DeleteParams::background()).await.unwrap();
    eventually("another deployment", async || {
        found().await.is_some_and(|found| found.metadata.uid != first.metadata.uid)
    })
    .await;
    eventually("and its status", async || status().await == Some(0)).await;
    running.stop().await;
    let events = env.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let synced: Vec<_> = events.iter().filter(|event| event.reason.as_deref() == Some("Synced")).collect();
    assert_eq!(synced.len(), 1, "repeats are counted: {synced:?}");
    assert!(synced[0].count > Some(1), "{:?}", synced[0]);
}
