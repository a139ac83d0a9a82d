//! Workload of the sample-controller: creates Foos and waits until all have converged.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use http::Request;
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use kubewright::cache::{ListWatch, SharedInformer};
use serde_json::{Value, json};

use crate::{child::Child, measure::cpu_of};

const GROUP: &str = "samplecontroller.k8s.io";
const IN_FLIGHT: usize = 64;
/// Time without CPU usage after which an operator is idle.
const QUIET: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_mins(10);

/// Returns the definition of Foo.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("foos.{GROUP}"),
            // Groups below k8s.io belong to the community; this one is upstream's sample.
            "annotations": {"api-approved.kubernetes.io": "unapproved, experimental-only; a benchmark"},
        },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "deploymentName": {"type": "string"},
                        "replicas": {"type": "integer", "minimum": 1, "maximum": 10},
                    }},
                    "status": {"type": "object", "properties": {"availableReplicas": {"type": "integer"}}},
                }}},
            }],
        },
    })
}

/// Creates a client for the server of this kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<(), String> {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).map_err(|error| error.to_string())?;
    client.request_text(request).await.map(drop).map_err(|error| format!("POST {path}: {error}"))
}

/// Creates the definition of Foo.
pub async fn define(client: &Client) -> Result<(), String> {
    post(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition()).await
}

/// Creates Foo number `i`. A definition is served when it is established, a moment after it was created.
pub async fn create(client: &Client, i: usize) -> Result<(), String> {
    let path = format!("/apis/{GROUP}/v1alpha1/namespaces/default/foos");
    let foo = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Foo", "metadata": {"name": format!("foo-{i}")},
        "spec": {"deploymentName": format!("foo-{i}"), "replicas": 1},
    });
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = post(client, &path, &foo).await {
        if !error.contains("404") || Instant::now() > until {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Creates this many Foos.
pub async fn create_all(client: &Client, count: usize) -> Result<(), String> {
    create(client, 0).await?;
    let created: Vec<Result<(), String>> =
        stream::iter(1..count).map(|i| create(client, i)).buffer_unordered(IN_FLIGHT).collect().await;
    created.into_iter().collect()
}

/// Runs an operator until every Foo has its Deployment and its status, and the operator is idle. Returns its line
/// with the wall time and the CPU time of the whole process.
pub async fn converge(
    client: &Client,
    count: usize,
    operator: impl FnOnce() -> Result<Child, String>,
) -> Result<Value, String> {
    let foo = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1alpha1", "Foo"), "foos");
    let informer = SharedInformer::new(ListWatch::<DynamicObject>::dynamic(client.clone(), foo));
    let done = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&done);
    let _handler = informer.on_event(move |event| {
        let has_status =
            event.object().load().is_ok_and(|foo| foo.data["status"]["availableReplicas"].is_i64());
        if has_status && let Ok(mut seen) = seen.lock() {
            seen.insert(event.key());
        }
    });
    let _running = informer.start();
    informer.synced().await;

    let began = Instant::now();
    let operator = operator()?;
    let done = || done.lock().map_or(0, |done| done.len());
    while done() < count || deployments(client).await? < count {
        if began.elapsed() > PATIENCE {
            return Err(format!("{} of {count} Foos have their status", done()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let wall = began.elapsed().as_secs_f64();
    let (mut cpu, mut since) = (cpu_of(operator.id()), Instant::now());
    while since.elapsed() < QUIET && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = cpu_of(operator.id());
        if now > cpu + 0.02 {
            (cpu, since) = (now, Instant::now());
        }
    }
    let cpu = cpu_of(operator.id());
    let mut line = operator.end().await?;
    line["converged_s"] = wall.into();
    line["cpu_s"] = cpu.into();
    Ok(line)
}

async fn deployments(client: &Client) -> Result<usize, String> {
    let request = Request::get("/apis/apps/v1/namespaces/default/deployments?limit=1").body(Vec::new());
    let list: Value = client
        .request(request.map_err(|error| error.to_string())?)
        .await
        .map_err(|error| format!("cannot count Deployments: {error}"))?;
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    let here = list["items"].as_array().map_or(0, Vec::len);
    Ok(here + usize::try_from(more).unwrap_or(usize::MAX))
}
