//! `/scale`: a workload as its number of replicas.

use serde_json::{Value, json};

use crate::{
    apply::{
        ManagedFields, ManagedFieldsError,
        scale::{ReplicasPaths, spec_replicas, to_parent, to_scale},
    },
    crd::resource::scale::{ScaleError, ScalePaths},
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
        json::{Json, as_value, at, meta, meta_mut, object, object_mut, objects, text},
        semantics::{Manager, Patch, PatchKind},
        validation::Errors,
        verbs::{
            check_name,
            update::{Change, Writer},
        },
    },
    status::{About, Status},
};

/// Replicas that nobody has set: a Scale must not be written back with them.
const UNSET: i64 = i32::MIN as i64;

/// The Scale of an object: of a workload, or of a custom resource by the paths of its definition.
pub(crate) fn of(ty: &Descriptor, object: &Json) -> Result<Value, Status> {
    let Some(paths) = custom_paths(ty) else { return Ok(of_workload(ty, object)) };
    paths.view(&Value::Object(object.clone())).map_err(|error| match error {
        ScaleError::NoReplicas(_) => {
            Status::plain(500, "InternalError", format!("Internal error occurred: {error}"))
                .causes(vec![json!({"message": error.to_string()})])
        }
        ScaleError::WrongType(why) => Status::internal(why),
    })
}

fn custom_paths(ty: &Descriptor) -> Option<&ScalePaths> {
    ty.custom.as_ref()?.resource().scale()
}

/// The Scale that a write begins with.
fn before(ty: &Descriptor, object: &Json) -> Result<Json, Status> {
    let view = match custom_paths(ty).filter(|paths| !paths.has_replicas(object)) {
        Some(paths) => {
            let unset = json!({"spec": {"replicas": UNSET}});
            paths
                .view(&paths.write(&Value::Object(object.clone()), &unset))
                .map_err(|e| Status::internal(e.to_string()))
        }
        None => of(ty, object),
    }?;
    match view {
        Value::Object(scale) => Ok(scale),
        _ => Err(Status::internal("a Scale is an object")),
    }
}

/// The object with the replicas of a Scale.
pub(crate) fn with_replicas(ty: &Descriptor, object: &Json, replicas: Value) -> Json {
    let mut changed = object.clone();
    match custom_paths(ty) {
        Some(paths) => {
            let scale = json!({"spec": {"replicas": replicas}});
            as_value(&mut changed, |value| *value = paths.write(value, &scale));
        }
        None => {
            object_mut(&mut changed, "spec").insert("replicas".into(), replicas);
        }
    }
    changed
}

fn of_workload(ty: &Descriptor, workload: &Json) -> Value {
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

/// Where the versions of a type keep their replicas.
fn paths(ty: &Descriptor) -> ReplicasPaths {
    if let Some(custom) = &ty.custom {
        return custom.replicas_paths();
    }
    ReplicasPaths::from([(ty.api_version(), Some(spec_replicas()))])
}

/// The type that bodies of `/scale` have.
pub(crate) fn scale_type(ty: &Descriptor) -> Result<Descriptor, Status> {
    let sub = ty.subresource("scale").ok_or_else(Status::method_not_allowed)?;
    let (group, version, kind) = (sub.group.clone(), sub.version.clone(), sub.kind.clone());
    Ok(Descriptor { group, version, kind, custom: None, ..ty.clone() })
}

fn unreadable(error: &ManagedFieldsError) -> Status {
    Status::internal(format!("failed to decode managed fields: {error}"))
}

fn managers(object: &Json) -> &Value {
    meta(object).get("managedFields").unwrap_or(&Value::Null)
}

fn set_managers(object: &mut Json, managed: &ManagedFields) {
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
                    let mut before = before(call.ty, current)?;
                    let managed = to_scale(managers(current), &paths).map_err(|e| unreadable(&e))?;
                    set_managers(&mut before, &managed);
                    let scale = change(&before)?;
                    let replicas = at(&scale, &["spec", "replicas"]).cloned().unwrap_or_else(|| 0.into());
                    check(call, &scale, &replicas)?;
                    let mut changed = with_replicas(call.ty, current, replicas);
                    let api_version = call.ty.api_version();
                    let managed = to_parent(managers(current), managers(&scale), &api_version, &paths)
                        .map_err(|e| unreadable(&e))?;
                    set_managers(&mut changed, &managed);
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
        Ok(Answer::value(of(call.ty, &call.ty.decode(&workload))?))
    }
}

fn manager<'a>(call: &'a Call<'_>, now: &'a str) -> Manager<'a> {
    Manager { name: call.options.field_manager.as_str().into(), subresource: "scale", now }
}

fn check(call: &Call<'_>, scale: &Json, replicas: &Value) -> Result<(), Status> {
    let name = text(meta(scale), "name");
    if let Some(paths) = custom_paths(call.ty) {
        return check_custom(call, name, paths, replicas);
    }
    let mut errors = Errors::default();
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else if name != call.name {
        return check_name(call, name);
    }
    if replicas.as_i64().is_none_or(|r| r < 0) {
        errors.invalid("spec.replicas", replicas.clone(), "must be greater than or equal to 0");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(About { group: "autoscaling", kind: "Scale", name: call.name }, &errors))
}

/// Everything else about the replicas of a custom resource is for its schema to say.
fn check_custom(call: &Call<'_>, name: &str, paths: &ScalePaths, replicas: &Value) -> Result<(), Status> {
    check_name(call, name)?;
    if replicas.as_i64() == Some(UNSET) {
        let path = &paths.spec_replicas;
        return Err(Status::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
    }
    Ok(())
}
