//! The reconciler of stateful sets.

use std::sync::Arc;

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
        history,
        replicaset::claim_pods,
        selector,
        step::{Note, Object, Step},
        wake::Known,
    },
    World, is_member, plan, words,
};

/// The controller of stateful sets.
pub(crate) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known = Known::new();
    Controller::of::<StatefulSet>()
        .owns::<Pod>()
        .watches(Watch::<Pod>::handled(known.orphans()))
        .workers(super::super::WORKERS)
        .reconcile(StatefulSets { events, known })
}

struct StatefulSets {
    events: Arc<dyn EventSink>,
    known: Known<StatefulSet>,
}

impl Reconciler<StatefulSet> for StatefulSets {
    async fn reconcile(&self, cx: Context<StatefulSet>) -> Result<Action> {
        self.known.is(|| cx.own_kind().cache());
        let Some(set) = cx.object()? else { return Ok(Action::done()) };
        let chosen = &set.spec.selector;
        if selector::is_everything(chosen) {
            return Ok(Action::done());
        }
        let all: Vec<Pod> = exec::candidates(&cx, &set.metadata, chosen).await?;
        let (pods, mut claims) =
            claim_pods::<StatefulSet>(&set.metadata, chosen, &all, None, |pod| is_member(&set, pod));
        let all: Vec<ControllerRevision> = exec::candidates(&cx, &set.metadata, chosen).await?;
        let (revisions, adoptions) = history::claim_revisions::<StatefulSet>(&set.metadata, chosen, &all);
        claims.extend(adoptions);
        let mounted: Vec<PersistentVolumeClaim> = match &set.spec.volume_claim_templates {
            Some(templates) if !templates.is_empty() => exec::read(&cx, |_| true).await?,
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
