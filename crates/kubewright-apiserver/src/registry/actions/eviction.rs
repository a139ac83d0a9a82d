//! `pods/eviction`: deletes a pod if its disruption budget allows it.

use serde_json::json;

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        json::{Json, meta, object, objects, text, text_at},
        selector::LabelSelector,
        verbs::{delete::DeleteOptions, update::Writer},
    },
    status::Status,
};

impl Registry {
    pub(super) async fn evict(&self, call: &Call<'_>, eviction: &Json) -> Result<Answer, Status> {
        let named = crate::registry::json::name(eviction);
        if !named.is_empty() && named != call.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let stored = self.find(call)?;
        let pod = call.ty.decode(&stored);
        let mut options = DeleteOptions::parse(object(eviction, "deleteOptions"), std::iter::empty())?;
        options.dry_run |= call.options.dry_run;
        let on_pod = Call {
            ty: call.ty,
            namespace: call.namespace,
            name: call.name,
            subresource: "",
            user: call.user,
            // The eviction itself has passed admission.
            admission: None,
            options: call.options.clone(),
            warnings: parking_lot::Mutex::default(),
        };
        let finished = matches!(text_at(&pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending");
        if !finished && !meta(&pod).contains_key("deletionTimestamp") {
            self.spend_budget(call, &pod, options.dry_run).await?;
        }
        self.delete(&on_pod, &options).await?;
        super::done()
    }

    /// Takes one disruption from the pod's budget, or returns 429.
    async fn spend_budget(&self, call: &Call<'_>, pod: &Json, dry_run: bool) -> Result<(), Status> {
        let Some(ty) = self.resolve("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
        let labels = object(meta(pod), "labels");
        let budgets: Vec<Json> = self
            .storage
            .snapshot()
            .collection(&ty.storage)
            .range(Some(call.namespace), None)
            .map(|(_, o)| ty.decode(o))
            .filter(|budget| {
                budget
                    .get("spec")
                    .and_then(|s| s.get("selector"))
                    .and_then(LabelSelector::from_object)
                    .is_some_and(|s| s.matches(|key| labels?.get(key)?.as_str()))
            })
            .collect();
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                return Err(Status::internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let name = crate::registry::json::name(budget).to_owned();
        let ready = object(pod, "status").is_some_and(|s| {
            objects(s, "conditions").any(|c| text(c, "type") == "Ready" && text(c, "status") == "True")
        });
        let number = |path: &str| {
            budget.get("status").and_then(|s| s.get(path)).and_then(serde_json::Value::as_i64).unwrap_or(0)
        };
        if !ready && number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0 {
            return Ok(());
        }
        let refuse = |why: String| {
            Status::plain(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
            )
            .causes(vec![json!({"reason": "DisruptionBudget", "message": why})])
        };
        let generation = crate::registry::objectmeta::generation(budget);
        if number("observedGeneration") < generation {
            return Err(refuse(format!(
                "The disruption budget {name} is still being processed by the server."
            ))
            .retry_after(10));
        }
        if number("disruptionsAllowed") <= 0 {
            return Err(refuse(format!(
                "The disruption budget {name} needs {} healthy pods and has {} currently",
                number("desiredHealthy"),
                number("currentHealthy")
            )));
        }
        if dry_run {
            return Ok(());
        }
        let on_budget = Call {
            ty: &ty,
            namespace: call.namespace,
            name: &name,
            subresource: "status",
            user: call.user,
            admission: call.admission,
            options: call.options.clone(),
            warnings: parking_lot::Mutex::default(),
        };
        let now = self.now();
        self.change(
            &on_budget,
            &mut |current| {
                let mut changed = current.clone();
                let status = crate::registry::json::object_mut(&mut changed, "status");
                let allowed =
                    status.get("disruptionsAllowed").and_then(serde_json::Value::as_i64).unwrap_or(0);
                status.insert("disruptionsAllowed".into(), (allowed - 1).into());
                crate::registry::json::object_mut(status, "disruptedPods")
                    .insert(call.name.to_owned(), now.as_str().into());
                Ok(changed)
            },
            Writer::Patch,
        )
        .await?;
        Ok(())
    }
}
