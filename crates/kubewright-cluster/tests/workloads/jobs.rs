//! Jobs and CronJobs.

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    coordination::v1::Lease,
    core::v1::Pod,
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::Cluster;

fn spec(script: &Value, extra: &Value) -> Value {
    let mut spec = json!({"template": {"metadata": {"annotations": script},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn job(script: &Value, extra: &Value) -> Value {
    json!({"metadata": {"name": "work"}, "spec": spec(script, extra)})
}

fn condition(job: &Job, kind: &str) -> bool {
    let conditions = job.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_its_pods_to_completion_and_is_deleted_after_its_ttl() {
    let cluster = Cluster::start(2).await;
    let extra = json!({"completions": 5, "parallelism": 2, "ttlSecondsAfterFinished": 60});
    cluster.create::<Job>(job(&json!({}), &extra)).await;
    let done = cluster.eventually::<Job>("work", |job| condition(job, "Complete")).await;
    let status = done.status.unwrap();
    assert_eq!((status.succeeded, status.active, status.failed), (Some(5), None, None));
    let pods = cluster.list::<Pod>("job-name=work").await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()));
    assert!(cluster.has_event("job-controller Job/work Completed Job completed"));
    tokio::time::sleep(Duration::from_secs(70)).await;
    let left = cluster.api::<Job>().get_opt("work").await.unwrap();
    assert!(left.is_none_or(|job| job.metadata.deletion_timestamp.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_keeps_failing_fails_at_its_backoff_limit() {
    let cluster = Cluster::start(1).await;
    let begun = tokio::time::Instant::now();
    cluster
        .create::<Job>(job(&json!({"sim.kubewright.dev/exit-code": "7"}), &json!({"backoffLimit": 2})))
        .await;
    let failed = cluster.eventually::<Job>("work", |job| condition(job, "Failed")).await;
    assert_eq!(failed.status.unwrap().failed, Some(3));
    let passed = begun.elapsed().as_secs();
    assert!((28..40).contains(&passed), "10 and 20 seconds lie between three tries: {passed}");
    assert!(cluster.has_event("Job/work BackoffLimitExceeded"));
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_completes_every_index() {
    let cluster = Cluster::start(1).await;
    let extra = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    cluster.create::<Job>(job(&json!({}), &extra)).await;
    let done = cluster.eventually::<Job>("work", |job| condition(job, "Complete")).await;
    assert_eq!(done.status.unwrap().completed_indexes.as_deref(), Some("0-2"));
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_starts_a_job_every_minute_for_an_hour() {
    let cluster = Cluster::start(1).await;
    let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": "*/10 * * * *",
                      "jobTemplate": {"spec": spec(&json!({}), &json!({}))}}});
    cluster.create::<CronJob>(cron).await;
    tokio::time::sleep(Duration::from_secs(3600 + 30)).await;
    let jobs = cluster.list::<Job>("").await;
    assert_eq!(jobs.len(), 3, "history is limited to three");
    assert!(jobs.iter().all(|job| condition(job, "Complete")));
    let cron = cluster.get::<CronJob>("tick").await;
    let status = cron.status.unwrap();
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2026-08-01T13:00:00Z");
    assert_eq!(status.active, None);
    let started =
        |minute: i64| cluster.has_event(&format!("Created job tick-{}", (1_785_585_600 + minute * 60) / 60));
    assert!((1..=6).all(|tens| started(tens * 10)));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let cluster = Cluster::start(1).await;
    cluster.create::<Job>(job(&json!({}), &json!({"suspend": true}))).await;
    cluster.eventually::<Job>("work", |job| condition(job, "Suspended")).await;
    assert!(cluster.list::<Pod>("job-name=work").await.is_empty());
    cluster.patch::<Job>("work", json!({"spec": {"suspend": false}})).await;
    cluster.eventually::<Job>("work", |job| condition(job, "Complete")).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_renew_their_leases() {
    let cluster = Cluster::start(1).await;
    let leases = Api::<Lease>::namespaced(cluster.server.client(), "kube-node-lease");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let first = leases.get("node-0").await.unwrap().spec.unwrap().renew_time.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let later = leases.get("node-0").await.unwrap().spec.unwrap().renew_time.unwrap();
    assert_eq!(later.0.duration_since(first.0).as_secs(), 20);
}
