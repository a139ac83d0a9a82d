//! The reconciler of stateful sets.

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kubewright::{
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        handlers::{Selecting, enqueue_adopters},
        history,
        replicaset::claim_pods,
        selector,
        step::{Note, Object, Step},
    },
    World, is_member, plan, words,
};
use crate::ControllerContext;

/// The controller of stateful sets.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<StatefulSet>()
        .index(StatefulSet::index())
        .owns::<Pod>()
        .watches(Watch::handled(enqueue_adopters::<StatefulSet, Pod>))
        .workers(super::super::WORKERS)
        .reconcile(StatefulSets { events: cluster.event_sink("statefulset-controller") })
}

struct StatefulSets {
    events: Arc<dyn EventSink>,
}

impl Reconciler<StatefulSet> for StatefulSets {
    async fn reconcile(&self, cx: Context<StatefulSet>) -> Result<Action> {
        let Some(set) = cx.object()? else { return Ok(Action::done()) };
        let chosen = &set.spec.selector;
        if selector::is_everything(chosen) {
            return Ok(Action::done());
        }
        let all: Vec<Arc<Pod>> = exec::candidates(&cx, &set.metadata, chosen).await?;
        let (pods, mut claims) =
            claim_pods::<StatefulSet>(&set.metadata, chosen, &all, None, |pod| is_member(&set, pod));
        let pods: Vec<Pod> = pods.into_iter().map(Cow::into_owned).collect();
        let all = exec::candidates(&cx, &set.metadata, chosen).await?;
        let all: Vec<ControllerRevision> = exec::to_owned(all);
        let (revisions, adoptions) = history::claim_revisions::<StatefulSet>(&set.metadata, chosen, &all);
        claims.extend(adoptions);
        let mounted: Vec<PersistentVolumeClaim> = match &set.spec.volume_claim_templates {
            Some(templates) if !templates.is_empty() => claims_of(&cx, templates).await?,
            _ => Vec::new(),
        };
        let world = World { pods: &pods, revisions: &revisions, claims: &mounted };
        let plan = plan(&set, world, cx.clock().now());
        let mut exec = Exec::new(&cx, &set, &*self.events);
        exec.run(claims).await?;
        if let Err(failed) = exec.run(plan.steps).await {
            if let Some(note) = failure(&set, &failed.step, &failed.error.to_string()) {
                exec.say(&note);
            }
            return Err(failed.into());
        }
        if let Some(problem) = plan.problem {
            exec.say(&Note::warning("FailedCreate", problem.clone()));
            return Err(Error::message(problem));
        }
        Ok(plan.after.map_or(Action::done(), Action::requeue_after))
    }
}

/// The claims in the namespace of the set that are named as claims of its Pods are.
async fn claims_of(
    cx: &Context<StatefulSet>,
    templates: &[PersistentVolumeClaim],
) -> Result<Vec<PersistentVolumeClaim>> {
    let names = templates.iter().filter_map(|template| template.metadata.name.as_deref());
    let prefixes: Vec<String> = names.map(|name| format!("{name}-{}-", cx.key().name())).collect();
    let mut claims = Vec::new();
    for claim in
        cx.list::<PersistentVolumeClaim>().namespace(cx.key().namespace().unwrap_or_default()).await?
    {
        if prefixes.iter().any(|prefix| claim.name().starts_with(prefix.as_str())) {
            claims.push(Arc::unwrap_or_clone(claim.load()?));
        }
    }
    Ok(claims)
}

/// What to say about a step that failed.
fn failure(set: &StatefulSet, step: &Step, error: &str) -> Option<Note> {
    let (verb, object) = match step {
        Step::Create(object) => ("create", object),
        Step::Update(object) => ("update", object),
        Step::Delete(object) => ("delete", object),
        _ => return None,
    };
    let kind = match object {
        Object::Pod(_) => "Pod",
        Object::Claim(_) => "Claim",
        _ => return None,
    };
    let (reason, title) = words(verb);
    let owner = set.metadata.name.as_deref().unwrap_or_default();
    let message = format!("{title} {kind} {} in StatefulSet {owner} failed error: {error}", object.name());
    Some(Note::warning(format!("Failed{reason}"), message))
}
