//! The reconciler of replica sets.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kubewright::{
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        pods,
        step::Step,
        wake::Known,
    },
    Failure, plan, status,
};

/// The controller of replica sets.
pub(crate) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known = Known::new();
    Controller::of::<ReplicaSet>()
        .owns::<Pod>()
        .watches(Watch::<Pod>::handled(known.orphans()))
        .workers(super::super::WORKERS)
        .reconcile(ReplicaSets { events, known })
}

struct ReplicaSets {
    events: Arc<dyn EventSink>,
    known: Known<ReplicaSet>,
}

impl Reconciler<ReplicaSet> for ReplicaSets {
    async fn reconcile(&self, cx: Context<ReplicaSet>) -> Result<Action> {
        self.known.is(|| cx.own_kind().cache());
        let Some(set) = cx.object()? else { return Ok(Action::done()) };
        let all: Vec<Pod> = exec::candidates(&cx, &set.metadata, &set.spec.selector).await?;
        let related = related(&cx, &set).await?;
        let now = cx.clock().now();
        let plan = plan(&set, &all, &related, now);
        let mut exec = Exec::new(&cx, &set, &*self.events);
        exec.run(plan.claims).await?;
        let (_, not_deleted) = exec.delete_pods(&plan.delete).await;
        let (_, not_created) = exec.create_pods(&plan.create).await;
        let failure = match (&not_created, &not_deleted) {
            (Some(error), _) => Some(Failure { reason: "FailedCreate", message: error.to_string() }),
            (None, Some(error)) => Some(Failure { reason: "FailedDelete", message: error.to_string() }),
            (None, None) => None,
        };
        let status = status(&set, &plan.owned, failure.as_ref(), now);
        if set.status.as_ref() != Some(&status) {
            let mut told = (*set).clone();
            told.status = Some(status);
            exec.run(vec![Step::Status(told.into())]).await?;
        }
        if let Some(error) = not_created.or(not_deleted) {
            return Err(error.into());
        }
        let wait = pods::next_available(&plan.owned, set.spec.min_ready_seconds.unwrap_or(0), now);
        Ok(wait.map_or(Action::done(), Action::requeue_after))
    }
}

/// The pods of all sets with the same controller: scaling down spreads those.
async fn related(cx: &Context<ReplicaSet>, set: &ReplicaSet) -> Result<Vec<Pod>> {
    let Some(controller) = pods::controller_of(&set.metadata) else { return Ok(Vec::new()) };
    let siblings: Vec<ReplicaSet> =
        exec::read(cx, |sibling| sibling.controller().is_some_and(|owner| owner.uid == controller.uid))
            .await?;
    let uids: Vec<String> = siblings.into_iter().filter_map(|sibling| sibling.metadata.uid).collect();
    exec::read(cx, |pod| pod.controller().is_some_and(|owner| uids.iter().any(|uid| uid == owner.uid))).await
}
