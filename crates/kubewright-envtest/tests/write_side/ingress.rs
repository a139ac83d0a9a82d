//! The ingress managers of the examples.

use ingress_manager::{by_hand, with_builder};
use k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubewright::prelude::*;
use serde_json::json;

use crate::place::{Running, TestEnv, eventually};

pub(crate) async fn both_managers_reconcile_services(env: TestEnv) {
    let by_hand = tokio::spawn(by_hand::run(env.client.clone()));
    reconciles_services(&env, "by-hand").await;
    by_hand.abort();
    // Its workers stop with it, before the other one starts.
    let ended: Result<Result<()>, _> = by_hand.await;
    assert!(ended.unwrap_err().is_cancelled());

    let running = Running::begin(env.manager("ingress-manager").controller(with_builder::controller())).await;
    reconciles_services(&env, "with-builder").await;
    running.stop().await;
}

async fn reconciles_services(env: &TestEnv, name: &str) {
    let (services, ingresses) = (env.api::<Service>(), env.api::<Ingress>());
    let service = serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": {"ingress/http": "web.example.com"}},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
    }))
    .unwrap();
    services.create(&PostParams::default(), &service).await.unwrap();
    let found = async || ingresses.get_opt(name).await.unwrap();
    eventually("an ingress", async || found().await.is_some()).await;
    let first = found().await.unwrap();
    assert_eq!(first.metadata.owner_references.as_ref().unwrap()[0].name, name);

    ingresses.delete(name, &DeleteParams::default()).await.unwrap();
    eventually("another ingress after one was deleted by hand", async || {
        found().await.is_some_and(|found| found.metadata.uid != first.metadata.uid)
    })
    .await;
    let annotate =
        |host: Option<&str>| Patch::Merge(json!({"metadata": {"annotations": {"ingress/http": host}}}));
    services.patch(name, &PatchParams::default(), &annotate(None)).await.unwrap();
    eventually("no ingress without the annotation", async || found().await.is_none()).await;
    services.patch(name, &PatchParams::default(), &annotate(Some("b"))).await.unwrap();
    eventually("an ingress again", async || found().await.is_some()).await;
    services.delete(name, &DeleteParams::default()).await.unwrap();
    eventually("no ingress without its service", async || found().await.is_none()).await;
}
