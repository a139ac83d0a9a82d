//! The reconciler of deployments.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kubewright::{
    client::ClientError,
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        handlers::{Selecting, enqueue_adopters},
        step::{Note, Object, Step},
    },
    claim_sets, creation_failed, is_recreated, plan, same_template,
};
use crate::{ControllerContext, objects};

/// The controller of deployments.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<Deployment>()
        .index(Deployment::index())
        .owns::<ReplicaSet>()
        .watches(Watch::handled(enqueue_adopters::<Deployment, ReplicaSet>))
        .workers(super::super::WORKERS)
        .reconcile(Deployments { events: cluster.event_sink("deployment-controller") })
}

struct Deployments {
    events: Arc<dyn EventSink>,
}

impl Reconciler<Deployment> for Deployments {
    async fn reconcile(&self, cx: Context<Deployment>) -> Result<Action> {
        let Some(deployment) = cx.object()? else { return Ok(Action::done()) };
        let all = exec::candidates(&cx, &deployment.metadata, &deployment.spec.selector).await?;
        let all: Vec<ReplicaSet> = exec::to_owned(all);
        let (sets, claims) = claim_sets(&deployment, &all);
        let mut all_pods: Vec<Pod> = Vec::new();
        if is_recreated(&deployment) {
            for uid in sets.iter().filter_map(|set| set.metadata.uid.as_deref()) {
                all_pods.extend(exec::to_owned(exec::controlled_by(&cx, uid).await?));
            }
        }
        let now = cx.clock().now();
        let plan = plan(&deployment, sets, &all_pods, now);
        let mut exec = Exec::new(&cx, &deployment, &*self.events);
        exec.run(claims).await?;
        if let Err(failed) = exec.run(plan.steps).await {
            if let Step::Create(Object::ReplicaSet(set)) = &failed.step {
                self.not_created(&cx, &deployment, set, &failed.error, &mut exec).await?;
            }
            return Err(failed.into());
        }
        Ok(plan.after.map_or(Action::done(), Action::requeue_after))
    }
}

impl Deployments {
    /// A set that could not be created: another has its name, or the server does not want it.
    async fn not_created(
        &self,
        cx: &Context<Deployment>,
        deployment: &Deployment,
        set: &ReplicaSet,
        error: &ClientError,
        exec: &mut Exec<'_>,
    ) -> Result<()> {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        if error.is_namespace_terminating() {
            return Ok(());
        }
        if !error.is_already_exists() {
            let message = format!("Failed to create new replica set \"{name}\": {error}");
            exec.say(&Note::warning("ReplicaSetCreateError", message.clone()));
            let told = creation_failed(deployment, &message, cx.clock().now());
            if told != *deployment {
                exec.run(vec![Step::Status(told.into())]).await?;
            }
            return Ok(());
        }
        let other = cx.client().live().get::<ReplicaSet>(&cx.neighbour(name)).await?;
        let ours = other.is_some_and(|other| {
            objects::is_controlled_by(&other.metadata, &deployment.metadata)
                && other
                    .spec
                    .template
                    .as_ref()
                    .is_some_and(|template| same_template(template, &deployment.spec.template))
        });
        if !ours {
            // Two templates of one hash: the next try takes another name.
            let mut told = deployment.clone();
            let status = told.status.get_or_insert_default();
            status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
            exec.run(vec![Step::Status(told.into())]).await?;
        }
        Ok(())
    }
}
