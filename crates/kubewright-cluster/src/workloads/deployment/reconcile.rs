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
        pods,
        step::{Note, Object, Step},
        wake::Known,
    },
    claim_sets, creation_failed, plan, same_template,
};

/// The controller of deployments.
pub(crate) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known = Known::new();
    Controller::of::<Deployment>()
        .owns::<ReplicaSet>()
        .watches(Watch::<ReplicaSet>::handled(known.orphans()))
        .workers(super::super::WORKERS)
        .reconcile(Deployments { events, known })
}

struct Deployments {
    events: Arc<dyn EventSink>,
    known: Known<Deployment>,
}

impl Reconciler<Deployment> for Deployments {
    async fn reconcile(&self, cx: Context<Deployment>) -> Result<Action> {
        self.known.is(|| cx.own_kind().cache());
        let Some(deployment) = cx.object()? else { return Ok(Action::done()) };
        let all: Vec<ReplicaSet> =
            exec::candidates(&cx, &deployment.metadata, &deployment.spec.selector).await?;
        let (sets, claims) = claim_sets(&deployment, &all);
        let uids: Vec<&String> = sets.iter().filter_map(|set| set.metadata.uid.as_ref()).collect();
        let all_pods: Vec<Pod> = exec::read(&cx, |pod| {
            pod.controller().is_some_and(|owner| uids.iter().any(|uid| *uid == owner.uid))
        })
        .await?;
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
            pods::is_controlled_by(&other.metadata, &deployment.metadata)
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
