//! The conditions of a job: first what it is heading for, then what it has come to.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use super::super::step::Note;
use crate::objects::timestamp;

pub(super) fn new(kind: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: "True".into(),
        last_probe_time: Some(timestamp(now)),
        last_transition_time: Some(timestamp(now)),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
    }
}

/// The job is failing: pods are to stop.
pub(super) fn failure(reason: &str, message: impl AsRef<str>, now: Timestamp) -> JobCondition {
    new("FailureTarget", reason, message.as_ref(), now)
}

/// The job has what it wanted.
pub(super) fn reached(now: Timestamp) -> JobCondition {
    new("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now)
}

fn holds<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// Whether the job has ended, and how.
pub(crate) fn is_finished(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    holds(status, "Complete").or_else(|| holds(status, "Failed"))
}

/// What an earlier pass has decided the job is heading for.
pub(super) fn decided(status: &JobStatus) -> Option<JobCondition> {
    holds(status, "SuccessCriteriaMet").or_else(|| holds(status, "FailureTarget")).cloned()
}

/// Writes down what the job is heading for, and answers with what it will have come to.
pub(super) fn announce(status: &mut JobStatus, target: JobCondition, now: Timestamp) -> JobCondition {
    let end = if target.type_ == "SuccessCriteriaMet" { "Complete" } else { "Failed" };
    let reason = target.reason.clone().unwrap_or_default();
    let message = target.message.clone().unwrap_or_default();
    if holds(status, &target.type_).is_none() {
        status.conditions.get_or_insert_default().push(target);
    }
    new(end, &reason, &message, now)
}

/// Sets a condition; whether that changed anything. One that was never there is not set to false.
pub(super) fn ensure(status: &mut JobStatus, condition: JobCondition) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    let changed = match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => {
            let same = known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message;
            if !same {
                *known = condition;
            }
            !same
        }
        None if condition.status == "False" => false,
        None => {
            conditions.push(condition);
            true
        }
    };
    if conditions.is_empty() {
        status.conditions = None;
    }
    changed
}

/// Notes that the job was suspended or resumed. A resumed job starts anew as far as its deadline goes.
pub(super) fn note_suspension(status: &mut JobStatus, suspended: bool, now: Timestamp) -> Option<Note> {
    if suspended {
        let condition = new("Suspended", "JobSuspended", "Job suspended", now);
        return ensure(status, condition).then(|| {
            status.start_time = None;
            Note::normal("Suspended", "Job suspended")
        });
    }
    let mut condition = new("Suspended", "JobResumed", "Job resumed", now);
    condition.status = "False".into();
    ensure(status, condition).then(|| {
        status.start_time = Some(timestamp(now));
        Note::normal("Resumed", "Job resumed")
    })
}
