//! The reconcilers of jobs: one that runs them, and one that lets finished ones go.

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::Patch;
use kubewright::{
    cache::FieldIndex,
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        handlers::{Selecting, enqueue_adopters},
        replicaset::claim_pods,
        step::Step,
    },
    FINALIZER, Outcome, Sync, has_finalizer, is_finished,
    ttl::{self, Ttl},
    without_finalizer,
};
use crate::ControllerContext;

/// The controller of jobs.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<Job>()
        .index(Job::index())
        .index(&PODS_BY_JOB)
        .owns::<Pod>()
        .watches(Watch::handled(enqueue_adopters::<Job, Pod>))
        .workers(super::super::WORKERS)
        .reconcile(Jobs { events: cluster.event_sink("job-controller") })
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
}

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, cx: Context<Job>) -> Result<Action> {
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
        let all: Vec<Arc<Pod>> = exec::candidates(&cx, &job.metadata, chosen).await?;
        let (pods, claims) = claim_pods::<Job>(&job.metadata, chosen, &all, Some(FINALIZER), |_| true);
        let pods: Vec<Pod> = pods.into_iter().map(Cow::into_owned).collect();
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

/// Pods by the key of the Job that controls them: of any Job that ever had the name.
static PODS_BY_JOB: FieldIndex<Pod> = FieldIndex::new("job", |pod, values| {
    let job = pod.controller().filter(|owner| owner.kind == "Job");
    values.extend(job.map(|job| ObjectKey::new(pod.namespace(), job.name).to_string()));
    Ok(())
});

/// Removes the finalizer from Pods of a Job of this name that is finished or gone, as they are no longer counted.
async fn release_finished(cx: &Context<Job>, alive: Option<&str>) -> Result<()> {
    let pods = cx.list::<Pod>().by_index(&PODS_BY_JOB, cx.key().as_str()).await?;
    for pod in pods.iter().filter(|pod| pod.controller().map(|owner| owner.uid) != alive) {
        let (key, pod) = (pod.key().clone(), pod.load()?);
        if !has_finalizer(&pod) {
            continue;
        }
        let patch = without_finalizer(&pod.metadata);
        match cx.client().patch::<Pod>(&key, &Patch::Strategic(patch)).await {
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}
