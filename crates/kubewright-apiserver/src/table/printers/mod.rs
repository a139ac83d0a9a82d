//! Printers of built-in types.

mod config;
mod pods;
mod rbac;
mod services;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    age::age,
    columns::{AGE, Column, NAME, PLAIN},
};
use crate::registry::json::{Json, at, list, meta, name, object, objects, text};

/// Columns and cell functions of a type.
pub(super) struct Printer {
    /// The columns.
    pub(super) columns: &'static [Column],
    /// Returns the cells of an object, one per column.
    pub(super) cells: fn(&Json, Timestamp) -> Vec<Value>,
    /// Returns the conditions of a row.
    pub(super) conditions: fn(&Json) -> Option<Value>,
}

fn no_conditions(_: &Json) -> Option<Value> {
    None
}

const fn printer(columns: &'static [Column], cells: fn(&Json, Timestamp) -> Vec<Value>) -> Printer {
    Printer { columns, cells, conditions: no_conditions }
}

static FALLBACK: Printer =
    printer(PLAIN, |object, _| vec![name(object).into(), text(meta(object), "creationTimestamp").into()]);

static NAMED: Printer = printer(&[NAME, AGE], |object, now| vec![name(object).into(), age(object, now)]);

/// Returns the printer of a type.
pub(super) fn for_kind(group: &str, kind: &str) -> &'static Printer {
    match (group, kind) {
        ("", "Pod") => &pods::POD,
        ("", "PodTemplate") => &pods::TEMPLATE,
        ("", "Node") => &pods::NODE,
        ("", "Namespace") => &config::NAMESPACE,
        ("", "ConfigMap") => &config::CONFIG_MAP,
        ("", "Secret") => &config::SECRET,
        ("", "ResourceQuota") => &config::QUOTA,
        ("" | "events.k8s.io", "Event") => &config::EVENT,
        ("", "ServiceAccount") => &NAMED,
        ("", "Service") => &services::SERVICE,
        ("", "Endpoints") => &services::ENDPOINTS,
        ("networking.k8s.io", "Ingress") => &services::INGRESS,
        ("networking.k8s.io", "IngressClass") => &services::INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &services::NETWORK_POLICY,
        ("discovery.k8s.io", "EndpointSlice") => &services::ENDPOINT_SLICE,
        ("", "ReplicationController") => &workloads::REPLICATION_CONTROLLER,
        ("apps", "Deployment") => &workloads::DEPLOYMENT,
        ("apps", "ReplicaSet") => &workloads::REPLICA_SET,
        ("apps", "StatefulSet") => &workloads::STATEFUL_SET,
        ("apps", "DaemonSet") => &workloads::DAEMON_SET,
        ("apps", "ControllerRevision") => &workloads::REVISION,
        ("batch", "Job") => &workloads::JOB,
        ("batch", "CronJob") => &workloads::CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => &workloads::AUTOSCALER,
        ("policy", "PodDisruptionBudget") => &workloads::BUDGET,
        ("", "PersistentVolume") => &storage::VOLUME,
        ("", "PersistentVolumeClaim") => &storage::CLAIM,
        ("storage.k8s.io", "StorageClass") => &storage::CLASS,
        ("storage.k8s.io", "CSIDriver") => &storage::DRIVER,
        ("storage.k8s.io", "CSINode") => &storage::CSI_NODE,
        ("storage.k8s.io", "VolumeAttachment") => &storage::ATTACHMENT,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &rbac::BINDING,
        ("coordination.k8s.io", "Lease") => &config::LEASE,
        ("scheduling.k8s.io", "PriorityClass") => &config::PRIORITY_CLASS,
        ("node.k8s.io", "RuntimeClass") => &config::RUNTIME_CLASS,
        ("certificates.k8s.io", "CertificateSigningRequest") => &rbac::SIGNING_REQUEST,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => &config::WEBHOOKS,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &config::POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => &config::POLICY_BINDING,
        ("", "LimitRange") | ("apiextensions.k8s.io", "CustomResourceDefinition") => &config::CREATED,
        ("apiregistration.k8s.io", "APIService") => &config::API_SERVICE,
        _ => &FALLBACK,
    }
}

/// Returns a text, or `<none>`.
fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// Returns an integer at a path; 0 if absent.
fn number_at(object: &Json, path: &[&str]) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

/// Formats a number or text.
fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Returns names and images of the containers of a pod spec.
fn containers(spec: Option<&Json>) -> (Value, Value) {
    let of = |key: &str| -> String {
        let all: Vec<&str> =
            spec.into_iter().flat_map(|s| objects(s, "containers")).map(|c| text(c, key)).collect();
        all.join(",")
    };
    (of("name").into(), of("image").into())
}

/// Formats a selector; `<none>` if it is empty.
fn selector(value: Option<&Value>) -> Value {
    or_none(
        &value.and_then(Value::as_object).map(crate::registry::actions::selector_text).unwrap_or_default(),
    )
}

/// Formats a map as `k=v,k=v`.
fn pairs(map: Option<&Json>) -> Value {
    let all: Vec<String> =
        map.into_iter().flatten().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    or_none(&all.join(","))
}

/// Returns the pod template of a workload.
fn template(object_: &Json) -> Option<&Json> {
    object(object_, "spec").and_then(|s| object(s, "template")).and_then(|t| object(t, "spec"))
}

/// Returns the length of a list.
fn count(parent: &Json, key: &str) -> usize {
    list(parent, key).len()
}
