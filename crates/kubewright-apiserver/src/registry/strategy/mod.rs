//! Strategies: type-specific defaulting, preparation and validation, by group and kind.
//!
//! A [`Strategy`] consists of plain functions on JSON objects. Everything else about a type is data in its
//! descriptor.

mod autoscaler;
mod containers;
mod core;
mod definition;
mod jobs;
mod misc;
mod network;
mod pod;
mod podchecks;
mod podspec;
mod podvolumes;
mod policies;
mod quotas;
mod rbac;
mod resources;
mod scheduling;
pub mod service;
mod services;
mod templates;
mod volumes;
mod webhooks;
mod workloads;

use super::{
    descriptor::Json,
    validation::{Errors, names::NameRule},
};

/// Context of the request while an object is prepared.
#[derive(Debug)]
pub struct PrepareContext<'a> {
    /// The time, in RFC 3339.
    pub now: &'a str,
    /// The user of the request.
    pub user: &'a crate::authn::User,
}

/// Functions of a type. The defaults do nothing.
#[derive(Debug)]
pub struct Strategy {
    /// The rule for names.
    pub names: NameRule,
    /// Sets the defaults.
    pub default: fn(&mut Json),
    /// Whether an object may be created with a status: kubelets register nodes with one.
    pub keeps_status: bool,
    /// Sets and resets fields that the client does not control, on create.
    pub prepare_create: fn(&mut Json, &PrepareContext<'_>),
    /// Sets and resets fields on update: the new object, the old one.
    pub prepare_update: fn(&mut Json, &Json),
    /// Sets and resets fields on status update; everything but the status comes from the old object already.
    pub prepare_status: fn(&mut Json, &Json),
    /// Validates a new object.
    pub validate: fn(&Json, &mut Errors),
    /// Validates an update: the new object, the old one.
    pub validate_update: fn(&Json, &Json, &mut Errors),
    /// Validates a status update.
    pub validate_status: fn(&Json, &Json, &mut Errors),
    /// Validates an update through another subresource.
    pub validate_subresource: fn(&str, &Json, &Json, &mut Errors),
    /// Returns warnings about a new or updated object and its old version.
    pub warnings: fn(&Json, Option<&Json>, &mut Vec<String>),
}

fn no_defaults(_: &mut Json) {}
fn no_create_changes(_: &mut Json, _: &PrepareContext<'_>) {}
fn no_update_changes(_: &mut Json, _: &Json) {}
fn no_checks(_: &Json, _: &mut Errors) {}
fn no_update_checks(_: &Json, _: &Json, _: &mut Errors) {}
fn no_subresource_checks(_: &str, _: &Json, _: &Json, _: &mut Errors) {}
fn no_warnings(_: &Json, _: Option<&Json>, _: &mut Vec<String>) {}

/// Strategy of types without own functions.
pub const PLAIN: Strategy = Strategy {
    names: NameRule::Subdomain,
    default: no_defaults,
    keeps_status: false,
    prepare_create: no_create_changes,
    prepare_update: no_update_changes,
    prepare_status: no_update_changes,
    validate: no_checks,
    validate_update: no_update_checks,
    validate_status: no_update_checks,
    validate_subresource: no_subresource_checks,
    warnings: no_warnings,
};

static PLAIN_TYPE: Strategy = PLAIN;

/// Returns the strategy of types without own functions, such as custom resources.
pub fn plain() -> &'static Strategy {
    &PLAIN_TYPE
}

/// Returns the strategy of a built-in type.
pub fn for_kind(group: &str, kind: &str) -> &'static Strategy {
    match (group, kind) {
        ("", "Pod") => &pod::POD,
        ("", "PodTemplate") => &core::POD_TEMPLATE,
        ("", "ReplicationController") => &core::REPLICATION_CONTROLLER,
        ("", "ConfigMap") => &core::CONFIG_MAP,
        ("", "Secret") => &core::SECRET,
        ("", "Namespace") => &core::NAMESPACE,
        ("", "Node") => &core::NODE,
        ("", "PersistentVolumeClaim") => &core::CLAIM,
        ("", "PersistentVolume") => &core::VOLUME,
        ("", "LimitRange") => &quotas::LIMIT_RANGE,
        ("", "ResourceQuota") => &quotas::QUOTA,
        ("" | "events.k8s.io", "Event") => &core::EVENT,
        ("", "Endpoints") => &core::ENDPOINTS,
        ("", "Service") => &services::SERVICE,
        ("apps", "Deployment") => &workloads::DEPLOYMENT,
        ("apps", "ReplicaSet") => &workloads::REPLICA_SET,
        ("apps", "StatefulSet") => &workloads::STATEFUL_SET,
        ("apps", "DaemonSet") => &workloads::DAEMON_SET,
        ("apps", "ControllerRevision") => &workloads::CONTROLLER_REVISION,
        ("batch", "Job") => &workloads::JOB,
        ("batch", "CronJob") => &workloads::CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => &workloads::AUTOSCALER,
        ("networking.k8s.io", "Ingress") => &network::INGRESS,
        ("networking.k8s.io", "IngressClass") => &network::INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &network::NETWORK_POLICY,
        ("discovery.k8s.io", "EndpointSlice") => &network::ENDPOINT_SLICE,
        ("rbac.authorization.k8s.io", "Role") => &rbac::ROLE,
        ("rbac.authorization.k8s.io", "ClusterRole") => &rbac::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding") => &rbac::BINDING,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => &rbac::CLUSTER_BINDING,
        ("storage.k8s.io", "StorageClass") => &misc::STORAGE_CLASS,
        ("storage.k8s.io", "CSIDriver") => &misc::CSI_DRIVER,
        ("node.k8s.io", "RuntimeClass") => &misc::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => &misc::BUDGET,
        ("scheduling.k8s.io", "PriorityClass") => &misc::PRIORITY_CLASS,
        ("coordination.k8s.io", "Lease") => &misc::LEASE,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => &webhooks::MUTATING,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => &webhooks::VALIDATING,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &policies::VALIDATING,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &policies::MUTATING,
        ("admissionregistration.k8s.io", _) => &policies::BINDING,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &definition::DEFINITION,
        ("apiregistration.k8s.io", "APIService") => &misc::API_SERVICE,
        ("certificates.k8s.io", "CertificateSigningRequest") => &misc::SIGNING_REQUEST,
        _ => &PLAIN_TYPE,
    }
}
