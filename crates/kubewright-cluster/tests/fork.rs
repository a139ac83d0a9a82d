//! Forks and snapshots of clusters.

mod support;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use kube::{Api, api::ListParams};
use kubewright_cluster::{Cluster, ClusterError, ClusterSnapshot};
use serde_json::json;
use support::{WIDGETS, web};

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn pods(cluster: &Cluster) -> Result<Vec<String>, kube::Error> {
    let pods = Api::<Pod>::namespaced(cluster.client(), "default").list(&ListParams::default()).await?;
    Ok(pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

#[kubewright_cluster::test]
async fn a_fork_is_independent_with_its_own_controllers(prepared: Cluster) -> Outcome {
    prepared.apply(&web(2)).await?;
    prepared.settled().await?;
    let before = pods(&prepared).await?;
    assert_eq!(before.len(), 2);

    let revision = |cluster: &Cluster| cluster.server().registry().storage.revision();
    let version = revision(&prepared);
    let fork = prepared.fork().await?;
    assert_eq!(pods(&fork).await?, before, "it starts with the stored objects");
    assert!(revision(&fork) >= version, "revisions do not go back");
    assert_eq!(fork.clock().now(), prepared.clock().now());

    let mut web: Deployment = fork.get("default/web").await?;
    web.spec.replicas = Some(4);
    fork.apply(&web).await?;
    prepared.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}").await?;
    fork.settled().await?;
    assert_eq!(pods(&fork).await?.len(), 4);
    assert_eq!(pods(&prepared).await?, before);
    assert!(fork.find::<ConfigMap>("default/mine").await?.is_none());

    drop(fork);
    prepared.delete::<Deployment>("default/web").await?;
    prepared.settled().await?;
    assert!(pods(&prepared).await?.is_empty(), "the original continues without the fork");
    Ok(())
}

#[kubewright_cluster::test(nodes = 0)]
async fn a_fork_of_a_fork_serves_custom_resources_and_allocates_free_addresses(cluster: Cluster) -> Outcome {
    cluster.apply(WIDGETS).await?;
    cluster
        .apply("{apiVersion: v1, kind: Service, metadata: {name: first}, spec: {ports: [{port: 80}]}}")
        .await?;
    let fork = cluster.fork().await?.fork().await?;
    let applied = fork
        .apply(
            "
{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}
---
{apiVersion: v1, kind: Service, metadata: {name: second}, spec: {ports: [{port: 80}]}}
",
        )
        .await?;
    let first: k8s_openapi::api::core::v1::Service = fork.get("default/first").await?;
    let taken = first.spec.and_then(|spec| spec.cluster_ip);
    assert_ne!(applied[1].data["spec"]["clusterIP"], json!(taken));
    Ok(())
}

#[test]
fn a_snapshot_starts_clusters_in_other_runtimes_and_continues_its_time() -> Outcome {
    fn is_shareable<T: Send + Sync + Clone + 'static>(_: &T) {}
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    };
    let snapshot: ClusterSnapshot = runtime().block_on(async {
        let start = "2026-01-01T00:00:00Z".parse().expect("a time");
        let cluster = Cluster::builder().virtual_time(start).start().await?;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}").await?;
        cluster.advance(Duration::from_mins(90)).await;
        let snapshot = cluster.snapshot()?;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}").await?;
        Ok::<_, Box<dyn std::error::Error>>(snapshot)
    })?;
    is_shareable(&snapshot);
    for _ in 0..2 {
        runtime().block_on(async {
            let cluster = snapshot.start().await?;
            assert_eq!(cluster.clock().now().to_string(), "2026-01-01T01:30:00Z");
            assert!(cluster.find::<ConfigMap>("default/old").await?.is_some());
            assert!(cluster.find::<ConfigMap>("default/late").await?.is_none(), "created after the snapshot");
            assert!(cluster.find::<ConfigMap>("default/new").await?.is_none(), "created in the other copy");
            let made = cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}").await?;
            let created = made[0].metadata.creation_timestamp.as_ref().map(|time| time.0.to_string());
            assert_eq!(created.as_deref(), Some("2026-01-01T01:30:00Z"));
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
    }
    Ok(())
}

#[tokio::test]
async fn an_attached_cluster_cannot_be_forked() -> Outcome {
    let other = Cluster::start().await?;
    let attached = Cluster::builder().attach(other.client()).await?;
    assert!(matches!(attached.fork().await, Err(ClusterError::Attached)));
    Ok(())
}
