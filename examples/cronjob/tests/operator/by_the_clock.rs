//! When Jobs start: schedules, missed runs, deadlines, policies, suspension, limits. In process, hours pass
//! in milliseconds. On a real control plane a minute of the operator's time takes about a second, and Jobs
//! take as long as kube-controller-manager does: long tests, and those in which a run must end before the
//! next is due, run in process only.

use std::time::Duration;

use crate::support::{
    MinuteZero, active, change, define, every_minute, has_event, jobs, minutes, reason, scheduled_at,
    started, tick,
};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kubewright_cluster::Cluster;
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);

#[kubewright_cluster::test]
async fn every_minute_of_an_hour_has_a_job(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(60 * MINUTE + Duration::from_secs(5)).await;

    assert_eq!(minutes(&cluster, "tick").await, (1..=60).collect::<Vec<i64>>());
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0.to_string(), "2026-01-01T01:00:00Z");
    assert_eq!(active(&cluster).await, Vec::<String>::new(), "all of them have ended");
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test]
async fn the_period_of_every_is_kept(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"schedule": "@every 10s"}))).await.unwrap();
    cluster.advance(5 * MINUTE + Duration::from_secs(5)).await;
    let mut times: Vec<jiff::Timestamp> = jobs(&cluster).await.iter().map(scheduled_at).collect();
    times.sort_unstable();
    assert_eq!(times.len(), 30);
    assert!(times.windows(2).all(|two| two[1].duration_since(two[0]).as_secs() == 10), "{times:?}");
}

#[kubewright_cluster::test(real)]
async fn every_minute_has_exactly_one_job(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = MinuteZero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.advance_to(&cluster, 4, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2, 3, 4]);
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0, zero.minute(4));
    assert_eq!(active(&cluster).await, Vec::<String>::new(), "all of them have ended");
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test(real)]
async fn a_job_has_the_template_and_its_scheduled_time(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = MinuteZero::with(&cluster, &every_minute("30s", &json!({}))).await;
    zero.advance_to(&cluster, 1, 5).await;

    let job = jobs(&cluster).await.remove(0);
    assert_eq!(job.labels()["team"], "a");
    assert_eq!(scheduled_at(&job), zero.minute(1));
    let owner = &job.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("CronJob", "tick", Some(true)));
    assert_eq!(active(&cluster).await, [job.name_any()]);
    has_event(&cluster, "SuccessfulCreate").await;
}

#[kubewright_cluster::test(real)]
async fn a_changed_schedule_counts_from_the_last_run(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = MinuteZero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.advance_to(&cluster, 1, 5).await;
    change(&cluster, json!({"schedule": "@every 2m"})).await;
    zero.advance_to(&cluster, 5, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 3, 5]);
}

#[kubewright_cluster::test]
async fn a_changed_schedule_uses_its_own_minutes(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;
    change(&cluster, json!({"schedule": "*/10 * * * *"})).await;
    cluster.advance(19 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2, 10, 20]);
}

#[kubewright_cluster::test]
async fn of_missed_runs_the_latest_is_started(cluster: Cluster) {
    define(&cluster).await;
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(30 * MINUTE + Duration::from_secs(10)).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [30, 31]);
}

#[kubewright_cluster::test]
async fn more_than_a_hundred_missed_runs_are_reported_and_not_started(cluster: Cluster) {
    define(&cluster).await;
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(101 * MINUTE + Duration::from_secs(10)).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(5 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());
    assert_eq!(reason(&cluster).await, "TooManyMissedTimes");
    has_event(&cluster, "TooManyMissedTimes").await;

    // With a deadline most missed runs are too late, so fewer are counted.
    change(&cluster, json!({"startingDeadlineSeconds": 90})).await;
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(minutes(&cluster, "tick").await, [106]);
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test]
async fn a_run_whose_deadline_has_passed_is_not_started(cluster: Cluster) {
    define(&cluster).await;
    let hourly = json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 300});
    cluster.apply(&every_minute("1s", &hourly)).await.unwrap();
    // At 1:06 the run of one o'clock is six minutes late.
    cluster.advance(66 * MINUTE).await;
    let operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(10 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());

    // At 2:04 the run of two o'clock is within its deadline of five minutes.
    operator.stop().await.unwrap();
    cluster.advance(48 * MINUTE).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(minutes(&cluster, "tick").await, [120]);
}

#[kubewright_cluster::test]
async fn allow_lets_runs_overlap(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("150s", &json!({"concurrencyPolicy": "Allow"}))).await.unwrap();
    cluster.advance(3 * MINUTE + Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2, 3]);
    assert_eq!(active(&cluster).await.len(), 3);
}

#[kubewright_cluster::test]
async fn forbid_skips_runs_while_one_is_unfinished(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("150s", &json!({"concurrencyPolicy": "Forbid"}))).await.unwrap();
    cluster.advance(3 * MINUTE + Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1], "it still runs");
    // It ends three and a half minutes after midnight: the run of minute three is started then.
    cluster.advance(MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 3]);
    assert_eq!(active(&cluster).await.len(), 1);
}

#[kubewright_cluster::test]
async fn replace_deletes_the_unfinished_run(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("150s", &json!({"concurrencyPolicy": "Replace"}))).await.unwrap();
    cluster.advance(3 * MINUTE + Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [3]);
    assert_eq!(active(&cluster).await.len(), 1);
}

#[kubewright_cluster::test]
async fn suspend_starts_nothing_and_stops_nothing(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("90s", &json!({}))).await.unwrap();
    cluster.advance(MINUTE + Duration::from_secs(5)).await;
    change(&cluster, json!({"suspend": true})).await;
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(active(&cluster).await.len(), 1, "the running Job is not affected");
    cluster.advance(10 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1]);
    assert_eq!((reason(&cluster).await, active(&cluster).await.len()), ("Suspended".to_owned(), 0));

    change(&cluster, json!({"suspend": false})).await;
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 11], "the latest of the missed runs");
}

#[kubewright_cluster::test]
async fn finished_jobs_beyond_the_limits_are_deleted_earliest_first(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1});
    cluster.apply(&every_minute("1s", &limits)).await.unwrap();
    cluster.advance(5 * MINUTE + Duration::from_secs(30)).await;
    assert_eq!(minutes(&cluster, "tick").await, [4, 5]);

    // The following Jobs fail.
    let fails = json!({"sim.kubewright.dev/exit-code": "1", "sim.kubewright.dev/run-duration": "1s"});
    let template = json!({"spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": fails}}}});
    change(&cluster, json!({"jobTemplate": template})).await;
    cluster.advance(4 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [4, 5, 9], "the limits are independent");

    change(&cluster, json!({"successfulJobsHistoryLimit": 0})).await;
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [9]);
}

#[kubewright_cluster::test]
async fn with_a_history_limit_of_zero_no_run_is_repeated(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    let limits = json!({"successfulJobsHistoryLimit": 0});
    cluster.apply(&every_minute("1s", &limits)).await.unwrap();
    cluster.advance(MINUTE + Duration::from_millis(500)).await;
    let first = jobs(&cluster).await.remove(0).metadata.uid;
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(
        minutes(&cluster, "tick").await,
        Vec::<i64>::new(),
        "{first:?} has come and gone, and no other"
    );
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0.to_string(), "2026-01-01T00:01:00Z");
}

#[kubewright_cluster::test]
async fn an_invalid_schedule_is_reported_and_can_be_corrected(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"schedule": "now and then"}))).await.unwrap();
    cluster.advance(3 * MINUTE).await;
    assert_eq!(reason(&cluster).await, "UnparseableSchedule");
    has_event(&cluster, "UnparseableSchedule").await;
    assert!(cluster.find::<Job>("default/tick").await.unwrap().is_none());

    change(&cluster, json!({"schedule": "@every 30s"})).await;
    cluster.advance(Duration::from_secs(35)).await;
    assert_eq!(reason(&cluster).await, "Scheduled");
    assert!(!jobs(&cluster).await.is_empty());
}

#[kubewright_cluster::test]
async fn a_schedule_without_a_next_run_is_reported(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"schedule": "0 0 31 2 *"}))).await.unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(reason(&cluster).await, "NeverAgain");
}
