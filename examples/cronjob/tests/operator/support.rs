//! Helpers of the operator's tests.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot even look has failed")]

use std::time::Duration;

use cronjob::CronJob;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{batch::v1::Job, coordination::v1::Lease, core::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kubewright_cluster::{Cluster, Operator};
use serde_json::{Value, json};

/// Applies the definition.
pub(crate) async fn define(cluster: &Cluster) {
    cluster.apply(include_str!("../../config/crd.yaml")).await.unwrap();
}

/// Starts the operator in the cluster, with its definition.
pub(crate) async fn started(cluster: &Cluster) -> Operator {
    started_for(cluster, u32::MAX).await
}

/// Starts it with a limited number of writes.
pub(crate) async fn started_for(cluster: &Cluster, writes: u32) -> Operator {
    define(cluster).await;
    // An aborted operator has not released its lease, and a real control plane keeps it from test to test.
    cluster.delete::<Lease>("default/cronjob").await.unwrap();
    let operator = cluster.run_with_write_limit(cronjob::operator(), writes).await.unwrap();
    operator.manager().elected().await;
    operator
}

/// Minute zero of a test: the one in which its first CronJob was created. In process that is midnight of 1
/// January 2026, on a real control plane any minute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MinuteZero(i64);

impl MinuteZero {
    /// Creates the first CronJob.
    pub(crate) async fn with(cluster: &Cluster, cron: &str) -> Self {
        let made = cluster.apply(cron).await.unwrap().remove(0);
        Self::of(made.metadata.creation_timestamp.unwrap().0)
    }

    /// The minute of this time.
    pub(crate) fn of(time: Timestamp) -> Self {
        Self(time.as_second().div_euclid(60))
    }

    /// The start of a minute.
    pub(crate) fn minute(self, minute: i64) -> Timestamp {
        Timestamp::from_second((self.0 + minute) * 60).unwrap()
    }

    /// The name of the Job of `tick` for that minute.
    pub(crate) fn job(self, minute: i64) -> String {
        format!("tick-{}", self.minute(minute).as_second())
    }

    /// Advances time to a minute and some seconds.
    pub(crate) async fn advance_to(self, cluster: &Cluster, minute: i64, seconds: i64) {
        let until = self.minute(minute) + SignedDuration::from_secs(seconds);
        let left = until.duration_since(cluster.clock().now());
        let left = Duration::try_from(left).expect("the minute has not passed yet");
        cluster.advance(left).await;
    }

    /// The minutes that have Jobs of this CronJob, in order.
    pub(crate) async fn minutes(self, cluster: &Cluster, name: &str) -> Vec<i64> {
        let prefix = format!("{name}-");
        let names = jobs(cluster).await.into_iter().map(|job| job.name_any());
        let seconds = names.filter_map(|name| name.strip_prefix(&prefix)?.parse::<i64>().ok());
        let mut minutes: Vec<i64> = seconds.map(|seconds| seconds.div_euclid(60) - self.0).collect();
        minutes.sort_unstable();
        minutes
    }

    /// Waits until exactly these minutes have Jobs. A real garbage collector discovers a new kind late.
    pub(crate) async fn wait_for_jobs(self, cluster: &Cluster, name: &str, wanted: &[i64]) {
        let what = format!("that there are Jobs of {name} for the minutes {wanted:?}");
        let there = async |cluster: &Cluster| Ok((self.minutes(cluster, name).await == wanted).then_some(()));
        cluster.eventually(&what, there).await.unwrap();
    }
}

/// A CronJob `tick` that runs every minute, with more fields. Its Jobs take a second, or `takes`.
pub(crate) fn every_minute(takes: &str, spec: &Value) -> String {
    named("tick", takes, spec)
}

/// The same with another name.
pub(crate) fn named(name: &str, takes: &str, spec: &Value) -> String {
    let mut cron = json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {"template": {
                    "metadata": {"annotations": {"sim.kubewright.dev/run-duration": takes}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
                }},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        cron["spec"][key] = value.clone();
    }
    cron.to_string()
}

/// The minutes after midnight that have Jobs of this CronJob, in order.
pub(crate) async fn minutes(cluster: &Cluster, name: &str) -> Vec<i64> {
    MinuteZero::of("2026-01-01T00:00:00Z".parse().unwrap()).minutes(cluster, name).await
}

/// The scheduled time of a Job.
pub(crate) fn scheduled_at(job: &Job) -> Timestamp {
    job.annotations()["batch.tutorial.kubebuilder.io/scheduled-at"].parse().unwrap()
}

/// All Jobs.
pub(crate) async fn jobs(cluster: &Cluster) -> Vec<Job> {
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    api.list(&ListParams::default()).await.unwrap().items
}

/// Changes the spec of `tick`.
pub(crate) async fn change(cluster: &Cluster, spec: Value) {
    let api = Api::<CronJob>::namespaced(cluster.client(), "default");
    api.patch("tick", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
}

/// The current `tick`.
pub(crate) async fn tick(cluster: &Cluster) -> CronJob {
    cluster.get::<CronJob>("default/tick").await.unwrap()
}

/// The names of the Jobs that its status lists as active.
pub(crate) async fn active(cluster: &Cluster) -> Vec<String> {
    let active = tick(cluster).await.status.unwrap_or_default().active;
    active.into_iter().filter_map(|reference| reference.name).collect()
}

/// The reason of its condition.
pub(crate) async fn reason(cluster: &Cluster) -> String {
    let conditions = tick(cluster).await.status.unwrap_or_default().conditions;
    conditions.into_iter().map(|condition| condition.reason).collect()
}

/// Waits until an event with this reason is recorded about `tick`: events are written asynchronously.
pub(crate) async fn has_event(cluster: &Cluster, reason: &str) {
    let recorded = async |cluster: &Cluster| {
        let api = Api::<Event>::namespaced(cluster.client(), "default");
        let events = api.list(&ListParams::default()).await.unwrap();
        let about = |event: &Event| {
            event.reason.as_deref() == Some(reason) && event.involved_object.name.as_deref() == Some("tick")
        };
        Ok(events.items.iter().any(about).then_some(()))
    };
    cluster.eventually(&format!("an event {reason} of tick"), recorded).await.unwrap();
}

/// A Job of another owner, with a name that may conflict.
pub(crate) fn unowned_job(name: &str) -> String {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "theirs", "image": "busybox"}]}});
    let spec = json!({"suspend": true, "template": template});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}).to_string()
}

/// Removes the owners of a Job.
pub(crate) async fn remove_owners(cluster: &Cluster, name: &str) {
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(orphaned)).await.unwrap();
}
