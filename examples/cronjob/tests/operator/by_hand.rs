//! What people and accidents do to it: damage, deletion, renaming, restarts, objects of others.

use crate::support::{
    Zero, active, change, every_minute, foreign, is_told, jobs, named, reason, started, started_for,
    take_away, tick,
};
use cronjob::CronJob;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kubewright_cluster::Cluster;
use serde_json::json;

#[kubewright_cluster::test(real)]
async fn a_job_that_somebody_deletes_leaves_the_status_and_is_not_run_again(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("45s", &json!({}))).await;
    zero.goes_to(&cluster, 1, 5).await;
    assert_eq!(active(&cluster).await, [zero.job(1)]);

    cluster.delete::<Job>(&format!("default/{}", zero.job(1))).await.unwrap();
    zero.goes_to(&cluster, 1, 35).await;
    assert_eq!(active(&cluster).await, Vec::<String>::new());
    assert_eq!(zero.minutes(&cluster, "tick").await, Vec::<i64>::new());
    let last = tick(&cluster).await.status.unwrap().last_schedule_time.unwrap();
    assert_eq!(last.0, zero.minute(1), "it never goes back");

    zero.goes_to(&cluster, 2, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [2]);
}

#[kubewright_cluster::test(real)]
async fn a_job_that_somebody_edits_confuses_nobody(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.goes_to(&cluster, 2, 5).await;
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    for job in jobs(&cluster).await {
        let spoilt = json!({"metadata": {"annotations": {"batch.tutorial.kubebuilder.io/scheduled-at": "long ago"},
                                         "labels": {"team": null}}});
        api.patch(&job.name_any(), &PatchParams::default(), &Patch::Merge(spoilt)).await.unwrap();
    }
    zero.goes_to(&cluster, 4, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2, 3, 4]);
}

#[kubewright_cluster::test(real)]
async fn a_job_that_somebody_takes_away_is_not_touched_any_more(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({"successfulJobsHistoryLimit": 1}))).await;
    zero.goes_to(&cluster, 1, 5).await;
    take_away(&cluster, &zero.job(1)).await;

    zero.goes_to(&cluster, 4, 5).await;
    let left = zero.minutes(&cluster, "tick").await;
    assert_eq!(left, [1, 4], "one that we may clear up, and one that we may not");
}

#[kubewright_cluster::test(real)]
async fn everything_goes_with_the_cron_job(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("45s", &json!({}))).await;
    zero.goes_to(&cluster, 2, 5).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2]);

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    zero.comes_to(&cluster, "tick", &[]).await;
    cluster.settled().await.unwrap();
    assert!(jobs(&cluster).await.is_empty());
    let pods =
        Api::<Pod>::namespaced(cluster.client(), "default").list(&ListParams::default()).await.unwrap();
    assert!(pods.items.is_empty());
}

#[kubewright_cluster::test(real)]
async fn under_another_name_it_starts_afresh_and_leaves_nothing_behind(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({}))).await;
    zero.goes_to(&cluster, 2, 25).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2]);

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    // The world's clock says that it was there at minutes one and two. For those it is too late.
    let tock = named("tock", "1s", &json!({"startingDeadlineSeconds": 20}));
    cluster.apply(&tock).await.unwrap();
    zero.goes_to(&cluster, 4, 5).await;
    assert_eq!(zero.minutes(&cluster, "tock").await, [3, 4]);
    zero.comes_to(&cluster, "tick", &[]).await;
}

#[kubewright_cluster::test(real)]
async fn a_restart_in_the_middle_neither_loses_nor_repeats_a_run(cluster: Cluster) {
    let operator = started(&cluster).await;
    let zero = Zero::with(&cluster, &every_minute("90s", &json!({"concurrencyPolicy": "Allow"}))).await;
    zero.goes_to(&cluster, 2, 1).await;
    let before: Vec<_> = jobs(&cluster).await.into_iter().map(|job| job.metadata.uid).collect();

    drop(operator); // killed
    zero.goes_to(&cluster, 2, 31).await;
    let _operator = started(&cluster).await;
    zero.goes_to(&cluster, 4, 1).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2, 3, 4]);
    let after: Vec<_> = jobs(&cluster).await.into_iter().map(|job| job.metadata.uid).collect();
    assert!(before.iter().all(|uid| after.contains(uid)), "none was replaced");
    assert_eq!(reason(&cluster).await, "Scheduled");
}

#[kubewright_cluster::test(real)]
async fn a_run_that_was_started_and_not_reported_is_reported_by_the_next_operator(cluster: Cluster) {
    // It says that it has seen the CronJob, starts a Job, and dies.
    let operator = started_for(&cluster, 2).await;
    let zero = Zero::with(&cluster, &every_minute("10m", &json!({}))).await;
    zero.goes_to(&cluster, 1, 5).await;
    drop(operator);
    let made = jobs(&cluster).await.remove(0);
    assert_eq!((made.name_any(), active(&cluster).await), (zero.job(1), Vec::new()));

    let _next = started(&cluster).await;
    zero.goes_to(&cluster, 1, 35).await;
    assert_eq!(active(&cluster).await, [zero.job(1)]);
    assert_eq!(jobs(&cluster).await.remove(0).metadata.uid, made.metadata.uid);
    assert_eq!(zero.minutes(&cluster, "tick").await, [1]);
}

// Seven lives of two minutes each are too long for a real control plane; one of them is above.
#[kubewright_cluster::test]
async fn an_operator_that_dies_between_its_writes_is_carried_on_by_the_next(cluster: Cluster) {
    let zero = Zero::of(cluster.clock().now());
    for life in 0..=6 {
        let operator = started_for(&cluster, life).await;
        cluster.apply(&every_minute("10s", &json!({}))).await.unwrap();
        zero.goes_to(&cluster, 2 * i64::from(life) + 1, 5).await;
        drop(operator);
        let made = jobs(&cluster).await;

        let next = started(&cluster).await;
        zero.goes_to(&cluster, 2 * i64::from(life) + 2, 30).await;
        let all = jobs(&cluster).await;
        let is_there = |made: &Job| all.iter().any(|job| job.metadata.uid == made.metadata.uid);
        assert!(made.iter().all(is_there), "killed after {life} writes");
        let wanted: Vec<i64> = (1..=2 * i64::from(life) + 2).collect();
        assert_eq!(zero.minutes(&cluster, "tick").await, wanted, "killed after {life} writes");
        assert_eq!(active(&cluster).await, Vec::<String>::new(), "killed after {life} writes");
        next.stop().await.unwrap();
    }
}

#[kubewright_cluster::test(real)]
async fn a_foreign_job_in_the_way_is_left_alone_and_the_next_run_comes(cluster: Cluster) {
    let _operator = started(&cluster).await;
    // It is there before anything is due: suspended, the CronJob only tells what the minutes are counted from.
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({"suspend": true}))).await;
    let name = zero.job(1);
    cluster.apply(&foreign(&name)).await.unwrap();
    change(&cluster, json!({"suspend": false})).await;
    zero.goes_to(&cluster, 2, 5).await;

    let theirs = cluster.get::<Job>(&format!("default/{name}")).await.unwrap();
    assert!(theirs.owner_references().is_empty());
    assert_eq!(theirs.spec.unwrap().suspend, Some(true));
    is_told(&cluster, "NameTaken").await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2], "theirs, and our next");
}

// In the process, as the garbage collector of a real cluster takes half a minute to learn of a new kind; two of the tests
// above wait for it.
#[kubewright_cluster::test]
async fn what_is_not_ours_stays_when_the_cron_job_goes(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let zero = Zero::of(cluster.clock().now());
    cluster.apply(&foreign(&zero.job(1))).await.unwrap();
    cluster.apply(&every_minute("1s", &json!({}))).await.unwrap();
    zero.goes_to(&cluster, 3, 5).await;
    take_away(&cluster, &zero.job(2)).await;
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2, 3]);

    cluster.delete::<CronJob>("default/tick").await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(zero.minutes(&cluster, "tick").await, [1, 2]);
}

#[kubewright_cluster::test(real)]
async fn a_template_that_is_no_job_is_told(cluster: Cluster) {
    let _operator = started(&cluster).await;
    let template = json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
    let zero = Zero::with(&cluster, &every_minute("1s", &json!({"jobTemplate": template}))).await;
    zero.goes_to(&cluster, 1, 5).await;
    is_told(&cluster, "FailedCreate").await;
    assert!(jobs(&cluster).await.is_empty());
}
