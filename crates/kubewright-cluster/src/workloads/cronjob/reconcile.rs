//! The reconciler of cron jobs.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kubewright::{
    controller::{Controller, EventSink},
    prelude::*,
};

use super::{
    super::{
        exec::{self, Exec},
        step::{Note, Step},
    },
    plan, started,
};
use crate::{ControllerContext, objects};

/// The controller of cron jobs.
pub(crate) fn controller(cluster: &ControllerContext) -> Controller {
    Controller::of::<CronJob>()
        .owns::<Job>()
        .workers(super::super::WORKERS)
        .reconcile(CronJobs { events: cluster.event_sink("cronjob-controller") })
}

struct CronJobs {
    events: Arc<dyn EventSink>,
}

impl Reconciler<CronJob> for CronJobs {
    async fn reconcile(&self, cx: Context<CronJob>) -> Result<Action> {
        let Some(cron) = cx.object()? else { return Ok(Action::done()) };
        let uid = cron.metadata.uid.as_deref().unwrap_or_default();
        let jobs: Vec<Job> = exec::to_owned(exec::controlled_by(&cx, uid).await?);
        let plan = plan(&cron, &jobs, cx.clock().now());
        let mut exec = Exec::new(&cx, &cron, &*self.events);
        exec.run(plan.steps.clone()).await?;
        let mut status = plan.status.clone();
        if let Some((job, due)) = &plan.start {
            match cx.client().create(job).await {
                Ok(made) => {
                    let name = made.metadata.name.as_deref().unwrap_or_default();
                    exec.say(&Note::normal("SuccessfulCreate", format!("Created job {name}")));
                    status = started(&plan, &made, *due);
                }
                Err(error) if error.is_already_exists() => {
                    // An earlier pass made it and did not live to note it.
                    let name = job.metadata.name.as_deref().unwrap_or_default();
                    if let Some(made) = cx.client().live().get::<Job>(&cx.neighbour(name)).await?
                        && objects::is_controlled_by(&made.metadata, &cron.metadata)
                    {
                        status = started(&plan, &made, *due);
                    }
                }
                Err(error) => {
                    if !error.is_namespace_terminating() {
                        exec.say(&Note::warning("FailedCreate", format!("Error creating job: {error}")));
                    }
                    return Err(error.into());
                }
            }
        }
        if cron.status.clone().unwrap_or_default() != status {
            let mut told = (*cron).clone();
            told.status = Some(status);
            exec.run(vec![Step::Status(told.into())]).await?;
        }
        Ok(plan.after.map_or(Action::done(), Action::requeue_after))
    }
}
