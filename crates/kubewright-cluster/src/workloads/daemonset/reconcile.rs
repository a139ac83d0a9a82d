//! The reconciler of daemon sets.

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
};
use kubewright::{
    cache::Event,
    controller::{Controller, EventSink, Watch},
    prelude::*,
};
use parking_lot::Mutex;

use super::{
    super::{
        exec::{self, Exec},
        handlers::{Selecting, enqueue_adopters, enqueue_all},
        history,
        replicaset::claim_pods,
    },
    FailedBackoff, World, plan,
};
use crate::ControllerContext;

/// The controller of daemon sets.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<DaemonSet>()
        .index(DaemonSet::index())
        .owns::<Pod>()
        .watches(Watch::handled(enqueue_adopters::<DaemonSet, Pod>))
        .watches(Watch::handled(enqueue_all::<DaemonSet, Node>).when(placement_changed))
        .workers(super::super::WORKERS)
        .reconcile(DaemonSets {
            events: cluster.event_sink("daemonset-controller"),
            failures: Mutex::default(),
        })
}

/// Heartbeats move no pods: only what selectors and tolerations look at counts.
fn placement_changed(event: &Event<Node>) -> bool {
    let Event::Updated { old, new } = event else { return true };
    match (old.load(), new.load()) {
        (Ok(old), Ok(new)) => old.metadata.labels != new.metadata.labels || old.spec != new.spec,
        _ => true,
    }
}

struct DaemonSets {
    events: Arc<dyn EventSink>,
    failures: Mutex<FailedBackoff>,
}

impl Reconciler<DaemonSet> for DaemonSets {
    async fn reconcile(&self, cx: Context<DaemonSet>) -> Result<Action> {
        let Some(set) = cx.object()? else { return Ok(Action::done()) };
        let chosen = &set.spec.selector;
        let all: Vec<Arc<Pod>> = exec::candidates(&cx, &set.metadata, chosen).await?;
        let (pods, mut claims) = claim_pods::<DaemonSet>(&set.metadata, chosen, &all, None, |_| true);
        let pods: Vec<Pod> = pods.into_iter().map(Cow::into_owned).collect();
        let all = exec::candidates(&cx, &set.metadata, chosen).await?;
        let all: Vec<ControllerRevision> = exec::to_owned(all);
        let (revisions, adoptions) = history::claim_revisions::<DaemonSet>(&set.metadata, chosen, &all);
        claims.extend(adoptions);
        let mut nodes = Vec::new();
        for node in cx.list::<Node>().await? {
            nodes.push(Arc::unwrap_or_clone(node.load()?));
        }
        nodes.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let world = World { pods: &pods, revisions: &revisions, nodes: &nodes };
        let plan = plan(&set, world, &mut self.failures.lock(), cx.clock().now());
        let mut exec = Exec::new(&cx, &set, &*self.events);
        exec.run(claims).await?;
        exec.run(plan.before).await?;
        let (_, not_deleted) = exec.delete_pods(&plan.delete).await;
        let (_, not_created) = exec.create_pods(&plan.create).await;
        exec.run(plan.after_pods).await?;
        if let Some(error) = not_created.or(not_deleted) {
            return Err(error.into());
        }
        Ok(plan.after.map_or(Action::done(), Action::requeue_after))
    }
}
