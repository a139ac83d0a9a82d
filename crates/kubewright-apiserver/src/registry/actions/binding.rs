//! `pods/binding`: assigns a pod to a node.

use serde_json::Value;

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        json::{Json, meta, meta_mut, object, object_mut, objects_mut, text, text_at},
        verbs::update::Writer,
    },
    status::{About, Status},
};

impl Registry {
    pub(super) async fn bind(&self, call: &Call<'_>, pod: &str, binding: &Json) -> Result<Answer, Status> {
        let node = text_at(binding, &["target", "name"]);
        let kind = text_at(binding, &["target", "kind"]);
        if !matches!(kind, "" | "Node") {
            return Err(Status::internal(format!(
                "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
            )));
        }
        if node.is_empty() {
            return Err(Status::internal("target.name: Required value"));
        }
        let ty = self.resolve("", "v1", "pods").ok_or_else(Status::no_such_resource)?;
        let on_pod = Call {
            ty: &ty,
            namespace: call.namespace,
            name: pod,
            subresource: "binding",
            user: call.user,
            // The binding has passed admission; the user does not write the pod.
            admission: None,
            options: call.options.clone(),
            warnings: parking_lot::Mutex::default(),
        };
        let conflict =
            |why: &str| Err(Status::conflict(About { group: "", kind: "pods/binding", name: pod }, why));
        self.change(
            &on_pod,
            &mut |current| {
                if meta(current).contains_key("deletionTimestamp") {
                    return conflict(&format!("pod {pod} is being deleted, cannot be assigned to a host"));
                }
                let assigned = text_at(current, &["spec", "nodeName"]);
                if !assigned.is_empty() {
                    return conflict(&format!("pod {pod} is already assigned to node {assigned:?}"));
                }
                let mut bound = current.clone();
                meta_mut(&mut bound).remove("resourceVersion");
                object_mut(&mut bound, "spec").insert("nodeName".into(), node.into());
                for (key, value) in object(meta(binding), "annotations").into_iter().flatten() {
                    object_mut(meta_mut(&mut bound), "annotations").insert(key.clone(), value.clone());
                }
                mark_scheduled(&mut bound, &self.now());
                Ok(bound)
            },
            Writer::Patch,
        )
        .await?;
        super::done()
    }
}

/// Sets the condition `PodScheduled` to true.
fn mark_scheduled(pod: &mut Json, now: &str) {
    let status = object_mut(pod, "status");
    if let Some(condition) = objects_mut(status, "conditions").find(|c| text(c, "type") == "PodScheduled") {
        if text(condition, "status") != "True" {
            condition.insert("lastTransitionTime".into(), now.into());
        }
        condition.insert("status".into(), "True".into());
        return;
    }
    let conditions = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(serde_json::json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        }));
    }
}
