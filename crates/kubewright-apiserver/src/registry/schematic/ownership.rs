//! `managedFields` of creates, updates and patches.
//!
//! An endpoint resets some fields to their stored values: the main resource resets `status`, and `/status`
//! resets `spec`. Writers do not become owners of reset fields. The fields per type are upstream's.

use serde_json::Value;

use super::{go_type, gvk, members, schema};
use crate::{
    apply::{FieldManager, FieldSet, keep_times_if_unchanged},
    crd::resource::Versions,
    registry::{
        custom::Custom,
        descriptor::{Descriptor, Json},
        json::as_value,
        semantics::Manager,
    },
    schema::{Gvk, TypeRef},
};

/// Paths into an object, from its root.
type Paths = &'static [&'static [&'static str]];

const STATUS: Paths = &[&["status"]];
const SPEC: Paths = &[&["spec"]];

/// Kinds whose `/status` also resets all of `metadata`.
const STATUS_RESETS_METADATA: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// Fields that can be owned through one endpoint of a type.
pub(super) struct Endpoint<'s> {
    subresource: &'s str,
    reset: FieldSet,
    only: Option<Paths>,
    versions: Option<&'s Versions>,
}

impl<'s> Endpoint<'s> {
    pub(super) fn new(ty: &'s Descriptor, subresource: &'s str) -> Self {
        let only: Option<Paths> = match (ty.group.as_ref(), ty.kind.as_ref(), subresource) {
            ("", "Pod", "ephemeralcontainers") => Some(&[&["spec", "ephemeralContainers"]]),
            ("", "Pod", "resize") => Some(&[
                &["spec", "containers", "*", "resources"],
                &["spec", "containers", "*", "resizePolicy"],
                &["spec", "initContainers", "*", "resources"],
                &["spec", "initContainers", "*", "resizePolicy"],
            ]),
            _ => None,
        };
        let reset = FieldSet::from_field_names(reset_fields(ty, subresource).iter().copied());
        let versions = ty.custom.as_ref().map(Custom::versions);
        Self { subresource, reset, only, versions }
    }

    /// Returns the field manager for writes through this endpoint.
    pub(super) fn fields<'a>(&'a self, schema: &'a TypeRef, gvk: &'a Gvk, now: &'a str) -> FieldManager<'a> {
        let fields = FieldManager::new(schema, gvk, now).with_subresource(self.subresource);
        let fields = match self.versions {
            Some(versions) => fields.with_converter(versions),
            None => fields,
        };
        match self.only {
            Some(only) => fields.with_allowed_paths(only),
            None => fields.with_reset_fields(&self.reset),
        }
    }
}

/// Returns the fields that an endpoint resets.
fn reset_fields(ty: &Descriptor, subresource: &str) -> Paths {
    match (ty.group.as_ref(), ty.kind.as_ref(), subresource) {
        ("certificates.k8s.io", "CertificateSigningRequest", "status") => {
            &[&["spec"], &["status", "conditions"]]
        }
        ("certificates.k8s.io", "CertificateSigningRequest", "approval") => {
            &[&["spec"], &["status", "certificate"]]
        }
        // The spec of a signing request is immutable.
        ("certificates.k8s.io", "CertificateSigningRequest", _) => &[&["spec"], &["status"]],
        ("apps", "Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
        ("", "Pod", "status") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        (_, _, "status") if ty.custom.is_some() => &[&["spec"], &["metadata"]],
        (group, kind, "status") if STATUS_RESETS_METADATA.contains(&(group, kind)) => {
            &[&["spec"], &["metadata"]]
        }
        (_, _, "status") => SPEC,
        _ if ty.subresource("status").is_some() => STATUS,
        _ => &[],
    }
}

/// Records the changes of a write.
pub(super) fn track(ty: &Descriptor, before: Option<&Json>, after: &mut Json, manager: &Manager<'_>) {
    let Some(schema) = schema(ty) else { return };
    let gvk = gvk(ty);
    let endpoint = Endpoint::new(ty, manager.subresource);
    let live = before.map(|object| Value::Object(object.clone()));
    let new = Value::Object(std::mem::take(after));
    let fields = endpoint.fields(&schema, &gvk, manager.now);
    *after = members(fields.update(live.as_ref(), new, &manager.name));
}

/// Returns the `managedFields` that [`track`] would write to a new object, as JSON text. Custom resources
/// need the tree and return `None`.
pub(super) fn track_created(ty: &Descriptor, object: &mut Json, manager: &Manager<'_>) -> Option<String> {
    let schema = go_type(ty)?;
    let (gvk, endpoint) = (gvk(ty), Endpoint::new(ty, manager.subresource));
    let mut text = None;
    as_value(object, |new| {
        text = endpoint.fields(&schema, &gvk, manager.now).managed_fields_for_create(new, &manager.name);
    });
    text
}

/// Restores the old times if `managedFields` would differ only in them.
pub(super) fn keep_times(before: &Json, after: &mut Json) {
    let old = Value::Object(before.clone());
    as_value(after, |new| keep_times_if_unchanged(&old, new));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::tests::{json as object, ty},
        *,
    };

    fn owned(ty: &Descriptor, before: &Json, mut after: Json, subresource: &str) -> Value {
        let manager = Manager { name: "m".into(), subresource, now: "2026-08-01T00:00:00Z" };
        track(ty, Some(before), &mut after, &manager);
        let entries = after["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let own = |entry: &&Value| entry["manager"] == "m";
        entries.iter().find(own).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }

    #[test]
    fn each_endpoint_tracks_only_the_fields_written_through_it() {
        let ty = ty("deployments");
        let mut before = object(json!({
            "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}, "spec": {"replicas": 1},
            "status": {},
        }));
        let creator = Manager { name: "creator".into(), subresource: "", now: "2026-08-01T00:00:00Z" };
        track(&ty, None, &mut before, &creator);
        let mut after = before.clone();
        after["spec"]["replicas"] = 2.into();
        after["status"] = json!({"replicas": 2});
        after["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(
            owned(&ty, &before, after.clone(), ""),
            json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:replicas": {}}})
        );
        assert_eq!(owned(&ty, &before, after, "status"), json!({"f:status": {"f:replicas": {}}}));
    }

    #[test]
    fn times_of_unchanged_managers_are_kept() {
        let entry = |time: &str| {
            object(json!({"metadata": {"managedFields": [
                {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": time,
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}},
            ]}}))
        };
        let before = entry("2026-08-01T00:00:00Z");
        let mut after = entry("2026-08-01T00:00:09Z");
        keep_times(&before, &mut after);
        assert_eq!(after, before);
    }
}
