//! Reconciler of CronJobs, in the steps of the book.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::batch::v1::Job,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time},
};
use kubewright::{
    cache::Lazy,
    client::{ClientError, set_controller_reference},
    prelude::*,
};

use crate::{
    ConcurrencyPolicy, CronJob, CronJobStatus,
    history::{History, SCHEDULED_AT},
    timetable::{Timetable, TimetableError},
};

/// Starts the due Job of a CronJob and deletes old ones.
pub async fn reconcile(cx: Context<CronJob>) -> Result<Action> {
    let Some(cron) = cx.object()?.filter(|cron| cron.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done()); // deleted or being deleted: its Jobs are garbage-collected
    };
    let history = History::new(children(&cx, &cron).await?);
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let last = last.map(|time| time.0).max(history.latest());
    let now = cx.clock().now();
    let since = last.or(cron.creation_timestamp().map(|time| time.0)).unwrap_or(now);
    let timetable = Timetable::new(now, since, &cron.spec);

    let available = available(&cx, &cron, &timetable);
    cx.status(|status: &mut CronJobStatus| {
        status.active = history.references();
        status.last_schedule_time = last.map(Time);
        set(&mut status.conditions, &available);
    })
    .await?;
    for job in history.surplus(&cron.spec) {
        cx.delete(&**job).background().await?;
    }

    if cron.spec.suspend {
        return Ok(Action::done());
    }
    let Timetable { due, next } = match timetable {
        Ok(timetable) => timetable,
        Err(error) => {
            // A retry cannot help; a change of the CronJob may.
            cx.warning(error.reason(), error.to_string());
            return Ok(Action::done());
        }
    };
    if let Some(due) = due {
        run(&cx, &cron, &history, due).await?;
    }
    // A schedule without a next run needs no requeue.
    let wait = next.map_or(Duration::ZERO, |next| next.duration_since(now).try_into().unwrap_or_default());
    Ok(Action::requeue_after(wait))
}

/// The Jobs that the CronJob controls.
async fn children(cx: &Context<CronJob>, cron: &CronJob) -> Result<Vec<Arc<Job>>> {
    let jobs = cx.list::<Job>().controlled_by(cron).await?;
    Ok(jobs.iter().map(Lazy::load).collect::<Result<_, _>>()?)
}

/// Starts the due run, unless the concurrency policy forbids it.
async fn run(cx: &Context<CronJob>, cron: &Arc<CronJob>, history: &History, due: Timestamp) -> Result<()> {
    match cron.spec.concurrency_policy {
        ConcurrencyPolicy::Allow => {}
        ConcurrencyPolicy::Forbid if history.active.is_empty() => {}
        ConcurrencyPolicy::Forbid => return Ok(()),
        ConcurrencyPolicy::Replace => {
            for job in &history.active {
                cx.delete(&**job).background().await?;
            }
        }
    }
    let job = job(cron, due)?;
    let name = job.name_any();
    match cx.client().create(&job).await {
        Ok(_) => cx.event("SuccessfulCreate", format!("Created job {name}")),
        Err(error) if error.is_already_exists() => {
            if !is_ours(cx, cron, &name).await? {
                let message =
                    format!("Job {name} is due, and one of this name exists that is not ours: left out");
                cx.warning("NameTaken", message);
            }
        }
        Err(error) => {
            cx.warning("FailedCreate", format!("Error creating job: {error}"));
            return Err(error.into());
        }
    }
    Ok(())
}

/// Whether the CronJob controls the Job of this name, which this operator may have created before a restart.
/// A deleted one is no conflict either.
async fn is_ours(cx: &Context<CronJob>, cron: &CronJob, name: &str) -> Result<bool, ClientError> {
    let job = cx.client().live().get::<Job>(&cx.neighbour(name)).await?;
    Ok(job.is_none_or(|job| {
        job.owner_references().iter().any(|owner| Some(&owner.uid) == cron.metadata.uid.as_ref())
    }))
}

/// The Job of a run. Its name contains the time, so that no run is started twice.
fn job(cron: &Arc<CronJob>, due: Timestamp) -> Result<Job> {
    let template = cron.spec.job_template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), due.to_string());
    let mut job = Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), due.as_second())),
            namespace: cron.namespace(),
            labels: metadata.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    set_controller_reference(&**cron, &mut job)?;
    Ok(job)
}

/// The condition `Available`: whether there will be a next run.
fn available(
    cx: &Context<CronJob>,
    cron: &CronJob,
    timetable: &Result<Timetable, TimetableError>,
) -> Condition {
    let (status, reason, message) = match timetable {
        Err(error) => ("False", error.reason(), error.to_string()),
        Ok(_) if cron.spec.suspend => {
            ("False", "Suspended", "nothing is started while it is suspended".to_owned())
        }
        Ok(Timetable { next: None, .. }) => {
            ("False", "NeverAgain", "the schedule has no further run".to_owned())
        }
        Ok(Timetable { next: Some(_), .. }) => ("True", "Scheduled", "runs start by the schedule".to_owned()),
    };
    Condition {
        type_: "Available".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: cron.metadata.generation,
        last_transition_time: cx.clock().time(),
    }
}

/// Sets a condition; the transition time changes only with the status.
fn set(conditions: &mut Vec<Condition>, wanted: &Condition) {
    let mut wanted = wanted.clone();
    match conditions.iter_mut().find(|held| held.type_ == wanted.type_) {
        Some(held) => {
            if held.status == wanted.status {
                wanted.last_transition_time = held.last_transition_time.clone();
            }
            *held = wanted;
        }
        None => conditions.push(wanted),
    }
}
