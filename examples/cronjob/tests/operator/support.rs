//! CronJobs for a cluster whose time begins at midnight of 1 January 2026, and what has become of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot even look has failed")]

use cronjob::CronJob;
use k8s_openapi::api::{batch::v1::Job, core::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};

/// Brings the definition.
pub(crate) async fn define(cluster: &Cluster) {
    cluster.apply(include_str!("../../config/crd.yaml")).await.unwrap();
}

/// A CronJob `tick` that runs every minute, with more in its spec. Its Jobs take a second, unless `takes` says otherwise.
pub(crate) fn every_minute(takes: &str, spec: &Value) -> String {
    named("tick", takes, spec)
}

/// The same under another name.
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

/// The minutes after midnight for which there are Jobs of this CronJob, in order.
pub(crate) async fn minutes(cluster: &Cluster, name: &str) -> Vec<i64> {
    let midnight: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let prefix = format!("{name}-");
    let names = jobs(cluster).await.into_iter().map(|job| job.name_any());
    let seconds = names.filter_map(|name| name.strip_prefix(&prefix)?.parse::<i64>().ok());
    let mut minutes: Vec<i64> = seconds.map(|seconds| (seconds - midnight.as_second()) / 60).collect();
    minutes.sort_unstable();
    minutes
}

/// The time for which a Job was started.
pub(crate) fn scheduled_at(job: &Job) -> jiff::Timestamp {
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

/// `tick`, as it is.
pub(crate) async fn tick(cluster: &Cluster) -> CronJob {
    cluster.get::<CronJob>("default/tick").await.unwrap()
}

/// The names of the Jobs that its status lists as running.
pub(crate) async fn active(cluster: &Cluster) -> Vec<String> {
    let active = tick(cluster).await.status.unwrap_or_default().active;
    active.into_iter().filter_map(|reference| reference.name).collect()
}

/// The reason of its condition.
pub(crate) async fn reason(cluster: &Cluster) -> String {
    let conditions = tick(cluster).await.status.unwrap_or_default().conditions;
    conditions.into_iter().map(|condition| condition.reason).collect()
}

/// Whether an event with this reason was recorded about `tick`.
pub(crate) async fn told(cluster: &Cluster, reason: &str) -> bool {
    let api = Api::<Event>::namespaced(cluster.client(), "default");
    let events = api.list(&ListParams::default()).await.unwrap();
    events.items.iter().any(|event| {
        event.reason.as_deref() == Some(reason) && event.involved_object.name.as_deref() == Some("tick")
    })
}
