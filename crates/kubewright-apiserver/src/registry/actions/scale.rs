//! `/scale`: a workload as its number of replicas.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    apply::{
        Managed, ManagedError,
        scale::{ReplicasPaths, spec_replicas, to_parent, to_scale},
    },
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
        json::{Json, at, meta, meta_mut, object, object_mut, objects, text},
        semantics::{Manager, Patch, PatchKind},
        validation::Errors,
        verbs::update::{Change, Writer},
    },
    status::{About, Status},
};

/// The Scale of a workload.
pub(crate) fn of(ty: &Descriptor, workload: &Json) -> Value {
    let mut metadata = Json::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = meta(workload).get(key) {
            metadata.insert(key.into(), value.clone());
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = at(workload, &["spec", "replicas"]).filter(|r| r.as_i64() != Some(0)) {
        spec["replicas"] = replicas.clone();
    }
    let mut status =
        json!({"replicas": at(workload, &["status", "replicas"]).cloned().unwrap_or_else(|| 0.into())});
    let selector = at(workload, &["spec", "selector"])
        .and_then(Value::as_object)
        .map(|s| if ty.kind == "ReplicationController" { labels_text(s) } else { selector_text(s) });
    if let Some(selector) = selector.filter(|s| !s.is_empty()) {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

fn labels_text(labels: &Json) -> String {
    let parts: Vec<String> =
        labels.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    parts.join(",")
}

/// A selector as query parameters write it.
pub(crate) fn selector_text(selector: &Json) -> String {
    let mut parts: Vec<(String, String)> = object(selector, "matchLabels")
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), format!("{k}={}", v.as_str().unwrap_or_default())))
        .collect();
    for expression in objects(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values: Vec<&str> =
            crate::registry::json::list(expression, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let shown = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), shown));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// Where a workload keeps its replicas.
fn paths(ty: &Descriptor) -> ReplicasPaths {
    ReplicasPaths::from([(ty.api_version(), Some(spec_replicas()))])
}

/// The type that bodies of `/scale` have.
pub(crate) fn scale_type(ty: &Descriptor) -> Result<Descriptor, Status> {
    let sub = ty.subresource("scale").ok_or_else(Status::method_not_allowed)?;
    let (group, version, kind) = (sub.group.clone(), sub.version.clone(), sub.kind.clone());
    Ok(Descriptor { group, version, kind, ..ty.clone() })
}

fn unreadable(error: &ManagedError) -> Status {
    Status::internal(format!("failed to decode managed fields: {error}"))
}

fn managers(object: &Json) -> &Value {
    meta(object).get("managedFields").unwrap_or(&Value::Null)
}

fn set_managers(object: &mut Json, managed: &Managed) {
    let entries = managed.encode();
    if entries.is_empty() {
        meta_mut(object).remove("managedFields");
    } else {
        meta_mut(object).insert("managedFields".into(), Value::Array(entries));
    }
}

impl Registry {
    /// PUT of `/scale`.
    pub async fn put_scale(&self, call: &Call<'_>, scale: &Json) -> Result<Answer, Status> {
        let ty = scale_type(call.ty)?;
        let now = self.now();
        let manager = manager(call, &now);
        self.change_scale(call, &mut |before| Ok(self.tracked(&ty, before, scale.clone(), &manager))).await
    }

    /// PATCH of `/scale`.
    pub async fn patch_scale(&self, call: &Call<'_>, kind: PatchKind, body: &[u8]) -> Result<Answer, Status> {
        let ty = scale_type(call.ty)?;
        let now = self.now();
        let patch = Patch {
            kind,
            body,
            validation: call.options.field_validation,
            manager: manager(call, &now),
            force: call.options.force.unwrap_or(false),
        };
        self.change_scale(call, &mut |before| {
            let decoded = self.semantics.patch(&ty, Some(before), &patch)?;
            for warning in decoded.warnings {
                call.warn(warning);
            }
            // An apply has recorded its manager already.
            if kind == PatchKind::Apply {
                return Ok(decoded.object);
            }
            Ok(self.tracked(&ty, before, decoded.object, &patch.manager))
        })
        .await
    }

    fn tracked(&self, ty: &Descriptor, before: &Json, mut scale: Json, manager: &Manager<'_>) -> Json {
        self.semantics.canonicalise(ty, &mut scale);
        self.semantics.track(ty, Some(before), &mut scale, manager);
        scale
    }

    /// A change of `/scale`: `change` sees and makes Scale objects, with the managers of their replicas.
    async fn change_scale(&self, call: &Call<'_>, change: &mut Change<'_>) -> Result<Answer, Status> {
        let paths = paths(call.ty);
        let workload = self
            .change(
                call,
                &mut |current| {
                    let Value::Object(mut before) = of(call.ty, current) else { return Ok(current.clone()) };
                    let managed = to_scale(managers(current), &paths).map_err(|e| unreadable(&e))?;
                    set_managers(&mut before, &managed);
                    let scale = change(&before)?;
                    let replicas = at(&scale, &["spec", "replicas"]).cloned().unwrap_or_else(|| 0.into());
                    check(call, &scale, &replicas)?;
                    let mut changed = current.clone();
                    let api_version = call.ty.api_version();
                    let managed = to_parent(managers(current), managers(&scale), &api_version, &paths)
                        .map_err(|e| unreadable(&e))?;
                    set_managers(&mut changed, &managed);
                    object_mut(&mut changed, "spec").insert("replicas".into(), replicas);
                    let version = text(meta(&scale), "resourceVersion");
                    if version.is_empty() || version == text(meta(&before), "resourceVersion") {
                        meta_mut(&mut changed).remove("resourceVersion");
                    } else {
                        meta_mut(&mut changed).insert("resourceVersion".into(), version.into());
                    }
                    Ok(changed)
                },
                Writer::Patch,
            )
            .await?;
        Ok(Answer::value(of(call.ty, &Arc::clone(call.ty).decode(&workload))))
    }
}

fn manager<'a>(call: &'a Call<'_>, now: &'a str) -> Manager<'a> {
    Manager { name: call.options.field_manager.as_str().into(), subresource: "scale", now }
}

fn check(call: &Call<'_>, scale: &Json, replicas: &Value) -> Result<(), Status> {
    let name = text(meta(scale), "name");
    let mut errors = Errors::default();
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else if name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    if replicas.as_i64().is_none_or(|r| r < 0) {
        errors.invalid("spec.replicas", replicas.clone(), "must be greater than or equal to 0");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(About { group: "autoscaling", kind: "Scale", name: call.name }, &errors))
}
