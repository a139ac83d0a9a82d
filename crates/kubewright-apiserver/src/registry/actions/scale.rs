//! `/scale`: a workload as its number of replicas.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
        json::{Json, at, meta, meta_mut, object, object_mut, objects, text},
        validation::Errors,
        verbs::update::Writer,
    },
    status::{About, Status},
};

/// The Scale of a workload.
pub(super) fn of(ty: &Descriptor, workload: &Json) -> Value {
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

impl Registry {
    /// PUT of `/scale`.
    pub async fn put_scale(&self, call: &Call<'_>, scale: &Json) -> Result<Answer, Status> {
        self.change_scale(call, &mut |_| Ok(scale.clone()), Writer::Put).await
    }

    /// A change of `/scale`: `change` sees and makes Scale objects.
    pub async fn change_scale(
        &self,
        call: &Call<'_>,
        change: &mut crate::registry::verbs::update::Change<'_>,
        writer: Writer,
    ) -> Result<Answer, Status> {
        let workload = self
            .change(
                call,
                &mut |current| {
                    let Value::Object(before) = of(call.ty, current) else { return Ok(current.clone()) };
                    let scale = change(&before)?;
                    let replicas = at(&scale, &["spec", "replicas"]).cloned().unwrap_or_else(|| 0.into());
                    check(call, &scale, &replicas)?;
                    let mut changed = current.clone();
                    object_mut(&mut changed, "spec").insert("replicas".into(), replicas);
                    let version = text(meta(&scale), "resourceVersion");
                    if version.is_empty() || version == text(meta(&before), "resourceVersion") {
                        meta_mut(&mut changed).remove("resourceVersion");
                    } else {
                        meta_mut(&mut changed).insert("resourceVersion".into(), version.into());
                    }
                    Ok(changed)
                },
                if writer == Writer::Apply { Writer::Apply } else { Writer::Patch },
            )
            .await?;
        Ok(Answer::value(of(call.ty, &Arc::clone(call.ty).decode(&workload))))
    }
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
