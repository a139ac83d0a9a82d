//! When Jobs start: the schedule, missed runs, deadlines, policies, suspension, limits. Hours pass in milliseconds, in the
//! process. On a real control plane a minute of the operator's time takes about a second, and the Jobs take the time that
//! kube-controller-manager takes: tests of many minutes, and those in which a run must end before the next is due, are not
//! for there.

use std::time::Duration;

use crate::support::{
    Zero, active, change, define, every_minute, is_told, jobs, minutes, reason, scheduled_at, started, tick,
};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kubewright_cluster::Cluster;
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);

#[kubewright_cluster::test]
async fn an_hour_of_every_minute_is_sixty_jobs(cluster: Cluster) {
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
async fn a_period_keeps_its_beat(cluster: Cluster) {
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
async fn every_minute_has_its_job_and_no_minute_has_two(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.goes_to(&cluster, 4, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2, 3, 4]);
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0, zero.minute(4));
    assert_eq!(active(&cluster).await, Vec::<String>::new(), "all of them have ended");
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test(real)]
async fn a_job_is_made_of_the_template_and_carries_its_time(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("30s", &json!({}))).await;
    zero.goes_to(&cluster, 1, 5).await;

    let job = jobs(&cluster).await.remove(0);
    assert_eq!(job.labels()["team"], "a");
    assert_eq!(scheduled_at(&job), zero.minute(1));
    let owner = &job.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("CronJob", "tick", Some(true)));
    assert_eq!(active(&cluster).await, [job.name_any()]);
    is_told(&cluster, "SuccessfulCreate").await;
}

#[kubewright_cluster::test(real)]
async fn a_changed_schedule_counts_from_the_last_run(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.goes_to(&cluster, 1, 5).await;
    change(&cluster, json!({"schedule": "@every 2m"})).await;
    zero.goes_to(&cluster, 5, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 3, 5]);
}

#[kubewright_cluster::test]
async fn a_changed_schedule_keeps_to_the_minutes_that_it_names(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(2 * MINUTE + Duration::from_secs(5)).await;
    change(&cluster, json!({"schedule": "*/10 * * * *"})).await;
    cluster.advance(19 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 2, 10, 20]);
}

#[kubewright_cluster::test]
async fn of_missed_runs_the_latest_is_made_up_for(cluster: Cluster) {
    define(&cluster).await;
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(30 * MINUTE + Duration::from_secs(10)).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [30, 31]);
}

#[kubewright_cluster::test]
async fn more_than_a_hundred_missed_runs_are_told_and_not_guessed_at(cluster: Cluster) {
    define(&cluster).await;
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    cluster.advance(101 * MINUTE + Duration::from_secs(10)).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(5 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());
    assert_eq!(reason(&cluster).await, "TooManyMissedTimes");
    is_told(&cluster, "TooManyMissedTimes").await;

    // A deadline says what is too late anyway, and there is nothing to guess any more.
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
    // Six minutes past one: the run of one o'clock is six minutes late.
    cluster.advance(66 * MINUTE).await;
    let operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.advance(10 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, Vec::<i64>::new());

    // Four minutes past two: that of two o'clock is within its five.
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
async fn forbid_waits_for_the_run_before(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("150s", &json!({"concurrencyPolicy": "Forbid"}))).await.unwrap();
    cluster.advance(3 * MINUTE + Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1], "it still runs");
    // It ends three and a half minutes after midnight: the run that waited is that of the third.
    cluster.advance(MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 3]);
    assert_eq!(active(&cluster).await.len(), 1);
}

#[kubewright_cluster::test]
async fn replace_ends_the_run_before(cluster: Cluster) {
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
    assert_eq!(active(&cluster).await.len(), 1, "what runs goes on");
    cluster.advance(10 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [1]);
    assert_eq!((reason(&cluster).await, active(&cluster).await.len()), ("Suspended".to_owned(), 0));

    change(&cluster, json!({"suspend": false})).await;
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [1, 11], "the latest of what was missed");
}

#[kubewright_cluster::test]
async fn finished_jobs_are_kept_within_the_limits_and_the_earliest_go_first(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1});
    cluster.apply(&every_minute("1s", &limits)).await.unwrap();
    cluster.advance(5 * MINUTE + Duration::from_secs(30)).await;
    assert_eq!(minutes(&cluster, "tick").await, [4, 5]);

    // From now on they fail.
    let fails = json!({"sim.kubewright.dev/exit-code": "1", "sim.kubewright.dev/run-duration": "1s"});
    let template = json!({"spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": fails}}}});
    change(&cluster, json!({"jobTemplate": template})).await;
    cluster.advance(4 * MINUTE).await;
    assert_eq!(minutes(&cluster, "tick").await, [4, 5, 9], "limits are of each kind");

    change(&cluster, json!({"successfulJobsHistoryLimit": 0})).await;
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(minutes(&cluster, "tick").await, [9]);
}

#[kubewright_cluster::test]
async fn without_any_history_no_run_is_made_twice(cluster: Cluster) {
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
async fn a_schedule_that_makes_no_sense_is_told_and_can_be_mended(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"schedule": "now and then"}))).await.unwrap();
    cluster.advance(3 * MINUTE).await;
    assert_eq!(reason(&cluster).await, "UnparseableSchedule");
    is_told(&cluster, "UnparseableSchedule").await;
    assert!(cluster.find::<Job>("default/tick").await.unwrap().is_none());

    change(&cluster, json!({"schedule": "@every 30s"})).await;
    cluster.advance(Duration::from_secs(35)).await;
    assert_eq!(reason(&cluster).await, "Scheduled");
    assert!(!jobs(&cluster).await.is_empty());
}

#[kubewright_cluster::test]
async fn a_schedule_that_never_comes_round_says_so(cluster: Cluster) {
    define(&cluster).await;
    let _operator = cluster.run(cronjob::operator()).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({"schedule": "0 0 31 2 *"}))).await.unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(reason(&cluster).await, "NeverAgain");
}
