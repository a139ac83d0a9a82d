//! What people and accidents do to it: damage, deletion, renaming, restarts, objects of others.

use std::time::Duration;

use crate::support::{active, define, every_minute, jobs, minutes, named, reason, tick, told};
use cronjob::CronJob;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kubewright_cluster::Cluster;
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);

#[kubewright_cluster::test]
async fn a_job_that_somebody_deletes_leaves_the_status_and_is_not_run_again(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("45s", &json!({}))).await.unwrap();
    cluster.advance(MINUTE + Duration::from_secs(5)).await;
    let running = active(&cluster).await.remove(0);

    cluster.delete::<Job>(&format!("default/{running}")).await.unwrap();
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(active(&cluster).await, Vec::<String>::new());
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0.to_string(), "2026-01-01T00:01:00Z", "it never goes back");

    cluster.advance(MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [2]);
}

#[kubewright_cluster::test]
async fn a_job_that_somebody_edits_confuses_nobody(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    for job in jobs(&cluster).await {
        let spoilt = json!({"metadata": {"annotations": {"batch.tutorial.kubebuilder.io/scheduled-at": "long ago"},
                                         "labels": {"team": null}}});
        api.patch(&job.name_any(), &PatchParams::default(), &Patch::Merge(spoilt)).await.unwrap();
    }
    cluster.advance(2 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2, 3, 4]);
}

#[kubewright_cluster::test]
async fn a_job_that_somebody_takes_away_is_not_touched_any_more(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"successfulJobsHistoryLimit": 1}))).await.unwrap();
    cluster.advance(MINUTE + Duration::from_secs(5)).await;
    let name = jobs(&cluster).await.remove(0).name_any();
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(orphaned)).await.unwrap();

    cluster.advance(3 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 4], "one that we may clear up, and one that we may not");
    cluster.delete::<CronJob>("default/tick").await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(minutes(&cluster, "tick").await, [1]);
}

#[kubewright_cluster::test]
async fn everything_goes_with_the_cron_job(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("45s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2]);

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    cluster.settled().await.unwrap();
    assert!(jobs(&cluster).await.is_empty());
    let pods =
        Api::<Pod>::namespaced(cluster.client(), "default").list(&ListParams::default()).await.unwrap();
    assert!(pods.items.is_empty());
}

#[kubewright_cluster::test]
async fn under_another_name_it_starts_afresh_and_leaves_nothing_behind(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    cluster.apply(&named("tock", "1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());
    assert_eq!(minutes(&cluster, "tock").await, [3, 4]);
}

#[kubewright_cluster::test]
async fn a_restart_in_the_middle_neither_loses_nor_repeats_a_run(cluster: Cluster) {
    define(&cluster).await;
    let operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("90s", &json!({"concurrencyPolicy": "Allow"}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(1)).await;
    let before: Vec<_> = jobs(&cluster).await.into_iter().map(|job| job.metadata.uid).collect();

    drop(operator); // killed
    cluster.advance(Duration::from_secs(30)).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(2 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2, 3, 4]);
    let after: Vec<_> = jobs(&cluster).await.into_iter().map(|job| job.metadata.uid).collect();
    assert!(before.iter().all(|uid| after.contains(uid)), "none was replaced");
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test]
async fn a_foreign_job_in_the_way_is_left_alone_and_the_next_run_comes(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    let midnight: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let name = format!("tick-{}", midnight.as_second() + 60);
    let foreign = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
                 "containers": [{"name": "theirs", "image": "busybox"}]}}}});
    cluster.apply(&foreign.to_string()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;

    let theirs = cluster.get::<Job>(&format!("default/{name}")).await.unwrap();
    assert!(theirs.owner_references().is_empty());
    assert_eq!(theirs.spec.unwrap().suspend, Some(true));
    assert!(told(&cluster, "NameTaken").await);
    assert_eq!(minutes(&cluster, "tick").await, [1, 2], "theirs, and our next");

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(minutes(&cluster, "tick").await, [1]);
}

#[kubewright_cluster::test]
async fn a_template_that_is_no_job_is_told(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    let template = json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
    cluster.apply(&every_minute("1s", &json!({"jobTemplate": template}))).await.unwrap();
    cluster.advance(2 * MINUTE).await;
    assert!(told(&cluster, "FailedCreate").await);
    assert!(jobs(&cluster).await.is_empty());
}
