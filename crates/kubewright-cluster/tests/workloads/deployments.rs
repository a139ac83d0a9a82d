//! Deployments and ReplicaSets.

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::cluster::{Cluster, is_ready, template};

fn deployment(replicas: i32, image: &str, script: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
           "selector": {"matchLabels": {"app": "web"}}, "template": template("web", image, script)}})
}

fn is_rolled_out(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas == Some(replicas)
        && status.replicas == Some(replicas)
        && status.available_replicas == Some(replicas)
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_on_nodes_and_rolls_to_a_new_image() {
    let cluster = Cluster::start(3).await;
    cluster.create::<Deployment>(deployment(4, "nginx:1", &json!({}))).await;
    cluster.eventually::<Deployment>("web", |d| is_rolled_out(d, 4)).await;
    let pods = cluster.list::<Pod>("app=web").await;
    let mut nodes: Vec<String> = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!((pods.len(), nodes.len()), (4, 3), "they are spread");
    let mut addresses: Vec<String> =
        pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 4, "each has an address");
    cluster
        .patch::<Deployment>("web", json!({"spec": {"template": template("web", "nginx:2", &json!({}))}}))
        .await;
    cluster.eventually::<Deployment>("web", |d| is_rolled_out(d, 4)).await;
    let pods = cluster.pods("app=web", |pods| pods.len() == 4).await;
    assert!(
        pods.iter().all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("nginx:2"))
    );
    let sets = cluster.list::<ReplicaSet>("app=web").await;
    assert_eq!(sets.len(), 2);
    assert_eq!(sets.iter().filter(|set| set.spec.replicas == Some(0)).count(), 1);
    assert!(
        cluster
            .has_event("deployment-controller Deployment/web ScalingReplicaSet Scaled up replica set web-")
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_image_stops_a_rollout_and_a_rollback_completes_it() {
    let cluster = Cluster::start(2).await;
    cluster.create::<Deployment>(deployment(3, "nginx:1", &json!({}))).await;
    cluster.eventually::<Deployment>("web", |d| is_rolled_out(d, 3)).await;
    let broken = template("web", "nginx:broken", &json!({"sim.kubewright.dev/image-pull-error": "true"}));
    cluster
        .patch::<Deployment>("web", json!({"spec": {"template": broken, "progressDeadlineSeconds": 60}}))
        .await;
    let reason = |deployment: &Deployment, reason: &str| {
        let conditions = deployment.status.clone().unwrap_or_default().conditions.unwrap_or_default();
        conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason))
    };
    let stuck = cluster.eventually::<Deployment>("web", |d| reason(d, "ProgressDeadlineExceeded")).await;
    assert_eq!(stuck.status.unwrap().available_replicas, Some(3), "no old pod was removed");
    let good = json!({"template": {"metadata": {"annotations": {"sim.kubewright.dev/image-pull-error": null}},
                                   "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}});
    cluster.patch::<Deployment>("web", json!({"spec": good})).await;
    cluster
        .eventually::<Deployment>("web", |d| is_rolled_out(d, 3) && reason(d, "NewReplicaSetAvailable"))
        .await;
    let pods = cluster.pods("app=web", |pods| pods.len() == 3).await;
    assert!(pods.iter().all(is_ready));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced_within_its_grace_period_and_an_orphan_adopted() {
    let cluster = Cluster::start(1).await;
    let script = json!({"sim.kubewright.dev/stop-duration": "10s"});
    cluster.create::<Deployment>(deployment(1, "nginx:1", &script)).await;
    let before = cluster.pods("app=web", |pods| pods.len() == 1 && is_ready(&pods[0])).await.remove(0);
    cluster.delete::<Pod>(&before.name_any()).await;
    let both = cluster
        .pods("app=web", |pods| pods.len() == 2 && pods.iter().filter(|pod| is_ready(pod)).count() == 2)
        .await;
    assert!(both.iter().any(|pod| pod.metadata.deletion_timestamp.is_some()), "the old one is terminating");
    cluster
        .eventually::<Deployment>("web", |d| {
            d.status.as_ref().and_then(|s| s.terminating_replicas) == Some(1)
        })
        .await;
    let after = cluster.pods("app=web", |pods| pods.len() == 1).await.remove(0);
    assert_ne!(after.uid(), before.uid());
    let set = cluster.list::<ReplicaSet>("app=web").await.remove(0);
    let hash = set.labels()["pod-template-hash"].clone();
    let orphan = json!({"metadata": {"name": "orphan", "labels": {"app": "web", "pod-template-hash": hash}},
                          "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}});
    cluster.create::<Pod>(orphan).await;
    cluster.pods("app=web", |pods| pods.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn without_nodes_pods_are_pending_and_status_follows_written_pod_statuses() {
    let cluster = Cluster::start(0).await;
    cluster.create::<Deployment>(deployment(1, "nginx:1", &json!({}))).await;
    let pod = cluster.pods("app=web", |pods| pods.len() == 1).await.remove(0);
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
                       "lastTransitionTime": "2026-08-01T00:00:00Z"}]});
    cluster.pod_status(&pod.name_any(), ready).await;
    cluster.eventually::<Deployment>("web", |d| is_rolled_out(d, 1)).await;
    cluster.pod_status(&pod.name_any(), json!({"phase": "Failed"})).await;
    cluster.pods("app=web", |pods| pods.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_has_an_event_and_is_scheduled_when_there_is_room() {
    let cluster = Cluster::start(1).await;
    let hungry = json!({"metadata": {"name": "hungry", "labels": {"app": "hungry"}}, "spec": {"nodeSelector": {"disk": "ssd"},
                        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}});
    cluster.create::<Pod>(hungry).await;
    let pod = cluster
        .eventually::<Pod>("hungry", |pod| pod.status.as_ref().is_some_and(|s| s.conditions.is_some()))
        .await;
    let condition = pod.status.unwrap().conditions.unwrap().remove(0);
    assert_eq!(
        (condition.type_.as_str(), condition.reason.as_deref()),
        ("PodScheduled", Some("Unschedulable"))
    );
    assert!(cluster.has_event(
        "default-scheduler Pod/hungry FailedScheduling 0/1 nodes are available: 1 node(s) didn't match"
    ));
    cluster
        .patch::<k8s_openapi::api::core::v1::Node>("node-0", json!({"metadata": {"labels": {"disk": "ssd"}}}))
        .await;
    cluster.eventually::<Pod>("hungry", is_ready).await;
    assert!(cluster.has_event("Successfully assigned default/hungry to node-0"));
}
