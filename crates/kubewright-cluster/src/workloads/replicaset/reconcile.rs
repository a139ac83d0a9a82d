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
        handlers::{Selecting, enqueue_adopters, enqueue_owner},
        step::Step,
    },
    Failure, plan, status,
};
use crate::{ControllerContext, objects, pod};

/// The controller of replica sets.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<ReplicaSet>()
        .index(ReplicaSet::index())
        .watches(Watch::handled(enqueue_owner::<ReplicaSet>))
        .watches(Watch::handled(enqueue_adopters::<ReplicaSet, Pod>))
        .workers(super::super::WORKERS)
        .reconcile(ReplicaSets { events: cluster.event_sink("replicaset-controller") })
}

struct ReplicaSets {
    events: Arc<dyn EventSink>,
}

impl Reconciler<ReplicaSet> for ReplicaSets {
    async fn reconcile(&self, cx: Context<ReplicaSet>) -> Result<Action> {
        let Some(set) = cx.object()? else { return Ok(Action::done()) };
        let all: Vec<Arc<Pod>> = exec::candidates(&cx, &set.metadata, &set.spec.selector).await?;
        let active = all.iter().filter(|pod| pod::is_active(pod)).count();
        // Only the choice of Pods to delete looks at Pods of other sets.
        let related = match usize::try_from(set.spec.replicas.unwrap_or(1)) {
            Ok(wanted) if active <= wanted => Vec::new(),
            _ => related(&cx, &set).await?,
        };
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
        let wait = pod::next_available(
            plan.owned.iter().map(AsRef::as_ref),
            set.spec.min_ready_seconds.unwrap_or(0),
            now,
        );
        Ok(wait.map_or(Action::done(), Action::requeue_after))
    }
}

/// The Pods of all sets with the same controller: scaling down spreads those over nodes.
async fn related(cx: &Context<ReplicaSet>, set: &ReplicaSet) -> Result<Vec<Arc<Pod>>> {
    let Some(controller) = objects::controller_of(&set.metadata) else { return Ok(Vec::new()) };
    let siblings = cx.list::<ReplicaSet>().controller_uid(&controller.uid).await?;
    let mut related = Vec::new();
    for sibling in siblings {
        related.extend(exec::controlled_by::<Pod, _>(cx, sibling.uid()).await?);
    }
    Ok(related)
}
