//! The reconcilers of jobs: one that runs them, and one that lets finished ones go.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::Patch;
use kubewright::{
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        replicaset::claim_pods,
        step::Step,
        wake::Known,
    },
    FINALIZER, Outcome, Sync, has_finalizer, is_finished,
    ttl::{self, Ttl},
    without_finalizer,
};

/// The controller of jobs.
pub(crate) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known = Known::new();
    Controller::of::<Job>()
        .owns::<Pod>()
        .watches(Watch::<Pod>::handled(known.orphans()))
        .workers(super::super::WORKERS)
        .reconcile(Jobs { events, known })
}

/// The controller of what is left of finished jobs.
pub(crate) fn ttl_controller() -> Controller {
    Controller::of::<Job>().named("ttl-after-finished").workers(super::super::WORKERS).reconcile(expire)
}

/// Deletes a job whose time is over. The server is asked once more: somebody may have given it more time.
async fn expire(cx: Context<Job>) -> Result<Action> {
    let Some(job) = cx.object()? else { return Ok(Action::done()) };
    match ttl::left(&job, cx.clock().now()) {
        Ttl::None => Ok(Action::done()),
        Ttl::In(left) => Ok(Action::requeue_after(left)),
        Ttl::Over => {
            let Some(fresh) = cx.own_kind().live().get(cx.key()).await? else { return Ok(Action::done()) };
            if ttl::left(&fresh, cx.clock().now()) == Ttl::Over {
                cx.delete(&*fresh).foreground().await?;
            }
            Ok(Action::done())
        }
    }
}

struct Jobs {
    events: Arc<dyn EventSink>,
    known: Known<Job>,
}

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, cx: Context<Job>) -> Result<Action> {
        self.known.is(|| cx.own_kind().cache());
        let job = cx.object()?;
        let uid = job.as_ref().and_then(|job| job.metadata.uid.clone());
        let Some(job) = job.filter(|job| is_finished(job).is_none()) else {
            release_finished(&cx, None).await?;
            return Ok(Action::done());
        };
        release_finished(&cx, uid.as_deref()).await?;
        let spec = job.spec.clone().unwrap_or_default();
        if spec.managed_by.as_deref().is_some_and(|manager| manager != "kubernetes.io/job-controller") {
            return Ok(Action::done());
        }
        let Some(chosen) = spec.selector.as_ref() else { return Ok(Action::done()) };
        let all: Vec<Pod> = exec::candidates(&cx, &job.metadata, chosen).await?;
        let (pods, claims) = claim_pods::<Job>(&job.metadata, chosen, &all, Some(FINALIZER), |_| true);
        let mut exec = Exec::new(&cx, &job, &*self.events);
        exec.run(claims).await?;
        let sync = Sync::begin(&job, pods, cx.clock().now());
        let mut outcome = Outcome::default();
        let mut failure = None;
        for deletion in &sync.delete {
            if deletion.uncounted && has_finalizer(&deletion.pod) {
                let patch = without_finalizer(&deletion.pod.metadata);
                exec.run(vec![Step::Patch(deletion.pod.clone().into(), patch)]).await?;
            }
            let (deleted, error) = exec.delete_pods(std::slice::from_ref(&deletion.pod)).await;
            outcome.deleted += deleted;
            if error.is_some() {
                failure = error;
                break;
            }
        }
        if failure.is_none() {
            (outcome.created, failure) = exec.create_pods(&sync.create).await;
        }
        let after = sync.after;
        exec.run(sync.conclude(outcome)).await?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        Ok(after.map_or(Action::done(), Action::requeue_after))
    }
}

/// Takes the finalizer off pods of a job of this name that is finished or gone: nobody will count them any more.
async fn release_finished(cx: &Context<Job>, alive: Option<&str>) -> Result<()> {
    let orphaned: Vec<Pod> = exec::read(cx, |pod| {
        pod.controller().is_some_and(|owner| {
            owner.kind == "Job" && owner.name == cx.key().name() && Some(owner.uid) != alive
        })
    })
    .await?;
    for pod in orphaned.iter().filter(|pod| has_finalizer(pod)) {
        let key = ObjectKey::of(pod, &())?;
        let patch = without_finalizer(&pod.metadata);
        match cx.client().patch::<Pod>(&key, &Patch::Strategic(patch)).await {
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}
