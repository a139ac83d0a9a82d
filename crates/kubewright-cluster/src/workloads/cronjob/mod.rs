//! The `CronJob` controller: jobs by the clock.
//!
//! A pass first puts the list of active jobs in order, then history, then looks whether a start is due. Of several that
//! were missed only the latest is made up for.

use crate::objects;
pub(crate) mod reconcile;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kubewright_cron::{Missed, Schedule};

use super::{
    job::is_finished,
    step::{Note, Step},
};

/// The clock of the controller may be a little behind that of the timer.
const DELTA: Duration = Duration::from_millis(100);

/// What a pass does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    /// Deletions and events, before anything starts.
    pub(crate) steps: Vec<Step>,
    /// The job to start, and the time it was due.
    pub(crate) start: Option<(Job, Timestamp)>,
    /// The status without the job that starts.
    pub(crate) status: CronJobStatus,
    /// When the next start is due.
    pub(crate) after: Option<Duration>,
}

/// What to do about a cron job that has these jobs.
pub(crate) fn plan(cron: &CronJob, jobs: &[Job], now: Timestamp) -> Plan {
    let spec = &cron.spec;
    let mut plan = Plan { status: cron.status.clone().unwrap_or_default(), ..Plan::default() };
    let mut active = plan.status.active.take().unwrap_or_default();
    forget_history(spec, jobs, &mut active, &mut plan);
    watch_active(jobs, &mut active, &mut plan);
    if cron.metadata.deletion_timestamp.is_none() {
        start(cron, spec, jobs, &mut active, &mut plan, now);
    }
    plan.status.active = (!active.is_empty()).then_some(active);
    plan
}

/// The status after the job was started.
pub(crate) fn started(plan: &Plan, job: &Job, due: Timestamp) -> CronJobStatus {
    let mut status = plan.status.clone();
    status.active.get_or_insert_default().push(ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    });
    status.last_schedule_time = Some(objects::timestamp(due));
    status
}

fn lists(active: &[ObjectReference], job: &Job) -> bool {
    active.iter().any(|listed| listed.uid == job.metadata.uid)
}

/// Deletes finished jobs beyond the limits, earliest start first.
fn forget_history(spec: &CronJobSpec, jobs: &[Job], active: &mut Vec<ObjectReference>, plan: &mut Plan) {
    for (kind, limit) in
        [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)]
    {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let mut ended: Vec<&Job> =
            jobs.iter().filter(|job| is_finished(job).is_some_and(|finish| finish.type_ == kind)).collect();
        let begun =
            |job: &&Job| job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
        ended.sort_by_key(|job| (begun(job).is_none(), begun(job), job.metadata.name.clone()));
        let surplus = ended.len().saturating_sub(limit);
        for job in &ended[..surplus] {
            delete(job, active, plan);
        }
    }
}

fn delete(job: &Job, active: &mut Vec<ObjectReference>, plan: &mut Plan) {
    active.retain(|listed| listed.uid != job.metadata.uid);
    plan.steps.push(Step::Delete(job.clone().into()));
    let message = format!("Deleted job {}", job.metadata.name.as_deref().unwrap_or_default());
    plan.steps.push(Step::Say(Note::normal("SuccessfulDelete", message)));
}

/// Takes ended and lost jobs off the list of active ones, and notes the last success.
fn watch_active(jobs: &[Job], active: &mut Vec<ObjectReference>, plan: &mut Plan) {
    for job in jobs {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let listed = lists(active, job);
        match is_finished(job) {
            None if !listed => {
                let message = format!("Saw a job that the controller did not create or forgot: {name}");
                plan.steps.push(Step::Say(Note::warning("UnexpectedJob", message)));
            }
            Some(finish) if listed => {
                active.retain(|listed| listed.uid != job.metadata.uid);
                let message = format!("Saw completed job: {name}, condition: {}", finish.type_);
                plan.steps.push(Step::Say(Note::normal("SawCompletedJob", message)));
            }
            _ => {}
        }
        if is_finished(job).is_some_and(|finish| finish.type_ == "Complete") {
            let ended = job.status.as_ref().and_then(|status| status.completion_time.clone());
            let latest = &mut plan.status.last_successful_time;
            *latest = latest.take().max(ended);
        }
    }
    active.retain(|listed| {
        let known = jobs.iter().any(|job| job.metadata.uid == listed.uid);
        if !known {
            let message = format!("Active job went missing: {}", listed.name.as_deref().unwrap_or_default());
            plan.steps.push(Step::Say(Note::normal("MissingJob", message)));
        }
        known
    });
}

/// Decides whether a job is due.
fn start(
    cron: &CronJob,
    spec: &CronJobSpec,
    jobs: &[Job],
    active: &mut Vec<ObjectReference>,
    plan: &mut Plan,
    now: Timestamp,
) {
    let mut say = |note: Note| plan.steps.push(Step::Say(note));
    let zone = match spec.time_zone.as_deref() {
        None => TimeZone::UTC,
        Some(name) => match TimeZone::get(name) {
            Ok(zone) => zone,
            Err(error) => {
                return say(Note::warning("UnknownTimeZone", format!("invalid timeZone: {name:?}: {error}")));
            }
        },
    };
    if spec.suspend == Some(true) {
        return;
    }
    let schedule = match Schedule::parse(&spec.schedule) {
        Ok(schedule) => schedule.in_zone(zone),
        Err(error) => {
            let message = format!("unparseable schedule: {:?} : {error}", spec.schedule);
            return say(Note::warning("UnparseableSchedule", message));
        }
    };
    let since = plan.status.last_schedule_time.as_ref().or(cron.metadata.creation_timestamp.as_ref());
    let since = since.map_or(now, |time| time.0);
    let window = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let earliest =
        window.and_then(|window| now.checked_sub(window).ok()).map_or(since, |start| start.max(since));
    let next = |from: Timestamp| {
        let wait = schedule.next(from)?.duration_since(now);
        Some(Duration::try_from(wait).unwrap_or_default() + DELTA)
    };
    let Some(Missed { latest: due, many }) = schedule.missed(earliest, now) else {
        plan.after = next(earliest);
        return;
    };
    if many {
        let message =
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        say(Note::warning("TooManyMissedTimes", message));
    }
    // From the start before and not from now: `@every` keeps its beat.
    plan.after = next(due);
    let job = job(cron, spec, due, &schedule);
    if active.iter().any(|listed| listed.name == job.metadata.name) {
        return;
    }
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !active.is_empty() => {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            return say(Note::normal("JobAlreadyActive", message));
        }
        Some("Replace") => {
            let running: Vec<&Job> = jobs.iter().filter(|job| lists(active, job)).collect();
            for job in running {
                delete(job, active, plan);
            }
        }
        _ => {}
    }
    plan.start = Some((job, due));
}

/// The job of a start.
fn job(cron: &CronJob, spec: &CronJobSpec, due: Timestamp, schedule: &Schedule) -> Job {
    let template = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.insert("batch.kubernetes.io/cronjob-scheduled-timestamp".into(), schedule.format(due));
    Job {
        metadata: ObjectMeta {
            name: Some(format!(
                "{}-{}",
                cron.metadata.name.as_deref().unwrap_or_default(),
                due.as_second() / 60
            )),
            namespace: cron.metadata.namespace.clone(),
            labels: template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![objects::controller_reference::<CronJob>(&cron.metadata)]),
            ..ObjectMeta::default()
        },
        spec: spec.job_template.spec.clone(),
        status: None,
    }
}

#[cfg(test)]
mod tests;
