//! A whole cluster: controllers and simulated nodes, from a manifest to Pods behind a Service.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Endpoints, Node, PersistentVolumeClaim, Pod},
};
use kubewright_cluster::Cluster;

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn cluster() -> Cluster {
    let start = "2026-08-01T00:00:00Z".parse().expect("a time");
    Cluster::builder().nodes(3).virtual_time(start).start().await.expect("a cluster starts")
}

const WEB: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
";

const DATABASE: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: postgres}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_behind_its_service() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(WEB).await?;
    cluster
        .eventually("the Deployment is available", async |cluster| {
            let found: Deployment = cluster.get("default/web").await?;
            Ok(found.status.filter(|status| status.available_replicas == Some(3)))
        })
        .await?;
    let addresses = cluster
        .eventually("three endpoints", async |cluster| {
            let found: Option<Endpoints> = cluster.find("default/web").await?;
            let subsets = found.and_then(|endpoints| endpoints.subsets).unwrap_or_default();
            let addresses = subsets.into_iter().filter_map(|subset| subset.addresses).flatten().count();
            Ok((addresses == 3).then_some(addresses))
        })
        .await?;
    assert_eq!(addresses, 3);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_gets_its_volumes() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(DATABASE).await?;
    cluster
        .eventually("the StatefulSet is ready", async |cluster| {
            let found: StatefulSet = cluster.get("default/db").await?;
            Ok(found.status.filter(|status| status.ready_replicas == Some(2)))
        })
        .await?;
    let claim: PersistentVolumeClaim = cluster.get("default/data-db-1").await?;
    assert_eq!(claim.status.and_then(|status| status.phase).as_deref(), Some("Bound"));
    let class = claim.spec.and_then(|spec| spec.storage_class_name);
    assert_eq!(class.as_deref(), Some("standard"), "the default class");
    let pod: Pod = cluster.get("default/db-1").await?;
    assert!(pod.spec.is_some_and(|spec| spec.node_name.is_some()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nodes_stay_ready_for_an_hour() -> Outcome {
    let cluster = cluster().await;
    cluster.advance(Duration::from_hours(1)).await;
    for name in ["node-0", "node-1", "node-2"] {
        let node: Node = cluster.get(name).await?;
        assert_eq!(node.spec.and_then(|spec| spec.taints).unwrap_or_default(), [], "{name}");
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        assert!(conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"), "{name}");
    }
    Ok(())
}
