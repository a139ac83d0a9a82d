//! The Jobs of a CronJob, grouped by outcome.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::ObjectReference};
use kubewright::prelude::*;

use crate::CronJobSpec;

/// Annotation of a Job with its scheduled time.
pub const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The existing Jobs of a CronJob.
#[derive(Debug, Default)]
pub struct History {
    /// Unfinished Jobs.
    pub active: Vec<Arc<Job>>,
    /// Completed Jobs, earliest first.
    pub successful: Vec<Arc<Job>>,
    /// Failed Jobs, earliest first.
    pub failed: Vec<Arc<Job>>,
}

impl History {
    /// Groups the Jobs by outcome.
    pub fn new(jobs: impl IntoIterator<Item = Arc<Job>>) -> Self {
        let mut history = Self::default();
        for job in jobs {
            match outcome(&job) {
                None => history.active.push(job),
                Some(Outcome::Complete) => history.successful.push(job),
                Some(Outcome::Failed) => history.failed.push(job),
            }
        }
        history.active.sort_by_key(|job| job.name_any());
        history.successful.sort_by_key(|job| (started(job), job.name_any()));
        history.failed.sort_by_key(|job| (started(job), job.name_any()));
        history
    }

    /// The latest scheduled time of the Jobs.
    pub fn latest(&self) -> Option<Timestamp> {
        let all = self.active.iter().chain(&self.successful).chain(&self.failed);
        // An annotation changed by hand may be unreadable; the status has the time too.
        all.filter_map(|job| job.annotations().get(SCHEDULED_AT)?.parse().ok()).max()
    }

    /// The finished Jobs beyond the history limits that are not being deleted yet.
    pub fn surplus(&self, spec: &CronJobSpec) -> impl Iterator<Item = &Arc<Job>> {
        let beyond = |ended: &[Arc<Job>], limit: Option<i32>| {
            limit
                .and_then(|limit| usize::try_from(limit).ok())
                .map_or(0, |limit| ended.len().saturating_sub(limit))
        };
        let failed = beyond(&self.failed, spec.failed_jobs_history_limit);
        let successful = beyond(&self.successful, spec.successful_jobs_history_limit);
        let surplus = self.failed[..failed].iter().chain(&self.successful[..successful]);
        surplus.filter(|job| job.metadata.deletion_timestamp.is_none())
    }

    /// References to the unfinished Jobs, for the status.
    pub fn references(&self) -> Vec<ObjectReference> {
        let reference = |job: &Arc<Job>| ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            name: job.metadata.name.clone(),
            namespace: job.metadata.namespace.clone(),
            uid: job.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        self.active.iter().map(reference).collect()
    }
}

enum Outcome {
    Complete,
    Failed,
}

fn outcome(job: &Job) -> Option<Outcome> {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().filter(|condition| condition.status == "True").find_map(|condition| {
        match condition.type_.as_str() {
            "Complete" => Some(Outcome::Complete),
            "Failed" => Some(Outcome::Failed),
            _ => None,
        }
    })
}

fn started(job: &Job) -> Option<Timestamp> {
    job.status.as_ref()?.start_time.as_ref().map(|time| time.0)
}
