//! Tests in process and on a real control plane, where its programs are installed.
#![cfg(feature = "real")]

mod support;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service},
};
use kubewright_cluster::{Cluster, HarnessError};
use serde_json::json;
use support::{WIDGETS, web};

const DATABASE: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

#[kubewright_cluster::test(real)]
async fn workloads_become_ready_on_simulated_nodes(cluster: Cluster) -> Result<(), HarnessError> {
    cluster.apply(&web(3)).await?;
    cluster.apply(DATABASE).await?;
    cluster.settled().await?;
    let web: Deployment = cluster.get("default/web").await?;
    assert_eq!(web.status.and_then(|status| status.ready_replicas), Some(3));
    let db: StatefulSet = cluster.get("default/db").await?;
    assert_eq!(db.status.and_then(|status| status.ready_replicas), Some(2));
    let claim: PersistentVolumeClaim = cluster.get("default/data-db-1").await?;
    assert_eq!(claim.status.and_then(|status| status.phase).as_deref(), Some("Bound"));

    cluster.delete::<Deployment>("default/web").await?;
    cluster.settled().await?;
    assert!(cluster.find::<Pod>("default/db-0").await?.is_some());
    let pods = kube::Api::<Pod>::namespaced(cluster.client(), "default");
    assert_eq!(pods.list(&kube::api::ListParams::default()).await.expect("pods are listed").items.len(), 2);
    Ok(())
}

/// Both tests leave objects behind, and neither may find those of the other.
async fn starts_empty_and_leaves_objects(cluster: &Cluster) -> Result<(), HarnessError> {
    assert!(cluster.find::<Namespace>("shop").await?.is_none());
    assert!(cluster.find::<ConfigMap>("default/left").await?.is_none());
    cluster.apply(WIDGETS).await?;
    cluster
        .apply(
            "
{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, finalizers: [example.com/never]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: left, finalizers: [example.com/never]}}
",
        )
        .await?;
    cluster.settled().await
}

#[kubewright_cluster::test(real, nodes = 0)]
async fn a_test_starts_with_an_empty_cluster(cluster: Cluster) -> Result<(), HarnessError> {
    starts_empty_and_leaves_objects(&cluster).await
}

#[kubewright_cluster::test(real, nodes = 0)]
async fn another_test_starts_with_an_empty_cluster(cluster: Cluster) -> Result<(), HarnessError> {
    starts_empty_and_leaves_objects(&cluster).await
}

#[kubewright_cluster::test(real, nodes = 0)]
async fn typed_objects_are_applied_one_by_one_or_together(cluster: Cluster) -> Result<(), HarnessError> {
    let service: Service = serde_json::from_value(
        json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}),
    )?;
    let applied = cluster.apply(&service).await?;
    assert_eq!(applied[0].types.as_ref().map(|types| types.kind.as_str()), Some("Service"));
    let mut again: Service = cluster.get("default/web").await?;
    again.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
    cluster.apply(again).await?;

    let maps: Vec<ConfigMap> = ["a", "b"]
        .into_iter()
        .map(|name| serde_json::from_value(json!({"metadata": {"name": name}})))
        .collect::<Result<_, _>>()?;
    assert_eq!(cluster.apply(&maps).await?.len(), 2);
    cluster.settled().await?;
    let report = cluster.report().await;
    for shown in ["Service default/web", "ConfigMap default/a", "ConfigMap default/b"] {
        assert!(report.contains(shown), "{report}");
    }
    Ok(())
}
