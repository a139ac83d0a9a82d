//! The CronJob type. `config/crd.yaml` is generated from it.
#![expect(unreachable_pub, reason = "KubeSchema derives from a copy of the type that is private")]

use k8s_openapi::{
    api::{batch::v1::JobTemplateSpec, core::v1::ObjectReference},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::KubeSchema;
use kubewright::prelude::*;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Spec of a CronJob.
#[derive(CustomResource, Serialize, Deserialize, KubeSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    namespaced,
    status = "CronJobStatus",
    doc = "A CronJob starts Jobs on a schedule.",
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(name = "Last Schedule", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 52")
        .message("must be no more than 52 characters: the names of its Jobs are eleven longer")
)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// The schedule in cron format: `*/5 * * * *`, `@daily`, `@every 90s`. The time zone is UTC.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// The deadline in seconds for starting a run that missed its scheduled time. There is none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do with a run that is due while another is unfinished.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Suspends further runs. Running Jobs are not affected.
    #[serde(default)]
    pub suspend: bool,
    /// The template of the Jobs: labels, annotations and spec.
    #[schemars(schema_with = "job_template")]
    pub job_template: JobTemplateSpec,
    /// The number of completed Jobs to keep; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// The number of failed Jobs to keep; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What to do with a run that is due while another is unfinished.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Runs concurrently.
    #[default]
    Allow,
    /// Skips the run.
    Forbid,
    /// Replaces the unfinished run.
    Replace,
}

/// Status of a CronJob.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The running Jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "references")]
    pub active: Vec<ObjectReference>,
    /// The scheduled time of the latest run. It never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub last_schedule_time: Option<Time>,
    /// The condition `Available`: whether there will be a next run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Schema of the fields that every Job has; the API server validates the rest when it creates a Job. A full
/// schema of a Pod would be larger than the rest of the definition, and outdated with the next Kubernetes
/// release.
fn job_template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What to run: a Job's labels, annotations and spec.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
            "spec": {
                "type": "object",
                "required": ["template"],
                "properties": {
                    "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The time for which the latest Job was started. It never goes back.",
        "type": "string",
        "format": "date-time",
        "nullable": true,
    })
}

fn references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The Jobs that run now.",
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "name": {"type": "string"},
                "namespace": {"type": "string"},
                "uid": {"type": "string"},
            },
            "x-kubernetes-map-type": "atomic",
        },
    })
}

fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Whether the next run will come, and why not.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string"},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string"},
                "message": {"type": "string"},
            },
        },
    })
}
