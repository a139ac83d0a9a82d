//! StatefulSets and DaemonSets.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, StatefulSet},
    core::v1::{Node, PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use serde_json::json;

use crate::cluster::{Cluster, is_ready, template};

#[tokio::test(start_paused = true)]
async fn a_stateful_set_starts_and_updates_in_order() {
    let cluster = Cluster::start(2).await;
    cluster
        .create::<StatefulSet>(
            json!({"metadata": {"name": "db"}, "spec": {"replicas": 3, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "pg:1", &json!({}))}}),
        )
        .await;
    let ready =
        |set: &StatefulSet| set.status.as_ref().is_some_and(|status| status.ready_replicas == Some(3));
    cluster.eventually::<StatefulSet>("db", ready).await;
    let pods = cluster.list::<Pod>("app=db").await;
    let begun = |name: &str| {
        let pod = pods.iter().find(|pod| pod.name_any() == name).unwrap();
        pod.metadata.creation_timestamp.clone().unwrap()
    };
    assert!(begun("db-0") <= begun("db-1") && begun("db-1") <= begun("db-2"));
    cluster
        .patch::<StatefulSet>("db", json!({"spec": {"template": template("db", "pg:2", &json!({}))}}))
        .await;
    let done = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        status.current_revision == status.update_revision
            && status.updated_replicas == Some(3)
            && status.ready_replicas == Some(3)
            && status.observed_generation == set.metadata.generation
    };
    cluster.eventually::<StatefulSet>("db", done).await;
    let pods = cluster.list::<Pod>("app=db").await;
    assert!(pods.iter().all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("pg:2")));
    cluster.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
    let pods = cluster.pods("app=db", |pods| pods.len() == 1).await;
    assert_eq!(pods[0].name_any(), "db-0");
}

#[tokio::test(start_paused = true)]
async fn claims_outlive_their_pods() {
    let cluster = Cluster::start(0).await;
    cluster
        .create::<StatefulSet>(
            json!({"metadata": {"name": "db"}, "spec": {"replicas": 1, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "pg:1", &json!({})),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}]}}),
        )
        .await;
    cluster.eventually::<Pod>("db-0", |_| true).await;
    let before = cluster.get::<PersistentVolumeClaim>("data-db-0").await;
    cluster.patch::<StatefulSet>("db", json!({"spec": {"replicas": 0}})).await;
    cluster.pods("app=db", <[Pod]>::is_empty).await;
    cluster.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
    cluster.eventually::<Pod>("db-0", |_| true).await;
    assert_eq!(cluster.get::<PersistentVolumeClaim>("data-db-0").await.uid(), before.uid());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_follows_taints_and_updates() {
    let cluster = Cluster::start(3).await;
    cluster
        .patch::<Node>("node-2", json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}))
        .await;
    cluster
        .create::<DaemonSet>(json!({"metadata": {"name": "agent"}, "spec": {
            "selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "a:1", &json!({}))}}))
        .await;
    let available = |count: i32| {
        move |set: &DaemonSet| {
            let status = set.status.clone().unwrap_or_default();
            status.number_available == Some(count) && status.desired_number_scheduled == count
        }
    };
    cluster.eventually::<DaemonSet>("agent", available(2)).await;
    cluster.patch::<Node>("node-2", json!({"spec": {"taints": null}})).await;
    cluster.eventually::<DaemonSet>("agent", available(3)).await;
    let pods = cluster.list::<Pod>("app=agent").await;
    assert!(pods.iter().all(is_ready));
    cluster
        .patch::<DaemonSet>("agent", json!({"spec": {"template": template("agent", "a:2", &json!({}))}}))
        .await;
    let updated = |set: &DaemonSet| {
        let status = set.status.clone().unwrap_or_default();
        status.updated_number_scheduled == Some(3)
            && status.number_available == Some(3)
            && status.observed_generation == set.metadata.generation
    };
    cluster.eventually::<DaemonSet>("agent", updated).await;
}
