//! Reconciler of CloudManagers.

use kubewright::prelude::*;

use crate::{
    CloudManager, CloudManagerStatus, database, owned,
    workloads::{self, Workload},
};

/// Reconciles the parts of a CloudManager, each when the one before is ready.
pub async fn reconcile(cx: Context<CloudManager>) -> Result<Action> {
    let Some(manager) = cx.object()?.filter(|manager| manager.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done()); // deleted or being deleted: its parts are garbage-collected
    };
    let spec = &manager.spec;
    owned::clean_up(&cx, &manager).await?;

    let front = cx
        .create_or_update(&spec.front.deployment.name, |front| workloads::front(&manager, front))
        .controlled_by(&*manager)
        .await?;
    if !front.is_ready() {
        return Ok(Action::done()); // its next change triggers a reconcile
    }

    let identity = cx
        .create_or_update(&spec.identity.deployment.name, |service| workloads::identity(&manager, service))
        .controlled_by(&*manager)
        .await?;
    if !identity.is_ready() {
        return Ok(Action::done());
    }

    cx.create_or_update(&database::secret_name(&manager), |secret| database::secret(&manager, secret))
        .controlled_by(&*manager)
        .await?;
    let db = cx
        .create_or_update(&spec.db.stateful_set.name, |set| database::stateful_set(&manager, set))
        .controlled_by(&*manager)
        .await?;
    if !db.is_ready() {
        return Ok(Action::done());
    }

    cx.status(|status: &mut CloudManagerStatus| "ready".clone_into(&mut status.phase)).await?;
    cx.event("Updated", "Update cm.status.phase: ready");
    Ok(Action::done())
}
