//! The `Job` controller: pods until enough of them have succeeded.
//!
//! Every pod carries a finalizer until its end has been counted. Counting takes two writes: first the uids of ended pods
//! go into `uncountedTerminatedPods`, together with the news that the job has met its goal or failed; then the
//! finalizers come off; then the counters go up and the job is complete. Whoever crashes between two of these finds out
//! from the status how far it had got.
//!
//! A pass has two halves: [`Sync::begin`] decides which pods to create and to delete, and [`Sync::conclude`], told how
//! that went, what to write.

mod backoff;
mod conditions;
mod failure_policy;
mod indexes;
mod per_index;
mod pods_of;
pub(crate) mod reconcile;
mod tracking;
pub(crate) mod ttl;

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobSpec, JobStatus},
    core::v1::Pod,
};

use crate::{objects, pod};
pub(crate) use conditions::is_finished;
pub(crate) use pods_of::{FINALIZER, has_finalizer, without_finalizer};

use super::step::{Note, Step};
use indexes::Indexes;

/// At most so many pods are created or deleted in one pass.
const BURST: usize = 500;

/// A pass over a job.
#[derive(Debug)]
pub(crate) struct Sync {
    job: Job,
    spec: JobSpec,
    status: JobStatus,
    pods: Vec<Pod>,
    now: Timestamp,
    /// How the job will have ended, once everything is counted.
    finish: Option<JobCondition>,
    succeeded: i32,
    succeeded_indexes: Indexes,
    failed_indexes: Option<Indexes>,
    /// Pods whose finalizer waits for their replacement, by index.
    held: std::collections::BTreeMap<i32, Pod>,
    active: i32,
    ready: i32,
    terminating: i32,
    managed: bool,
    /// Pods to delete: with the finalizer taken off before, or with it on, so that their end is counted.
    pub(crate) delete: Vec<Deletion>,
    /// Pods to create.
    pub(crate) create: Vec<Pod>,
    /// When to look again although nothing happens.
    pub(crate) after: Option<Duration>,
}

/// A pod that is to go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deletion {
    /// The pod.
    pub(crate) pod: Pod,
    /// Whether its end is not to be counted: it goes because it is not needed, not because it failed.
    pub(crate) uncounted: bool,
}

/// How creations and deletions went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// How many pods were created.
    pub(crate) created: usize,
    /// How many were deleted.
    pub(crate) deleted: usize,
}

impl Sync {
    /// Looks at a job that is not finished, and its pods.
    pub(crate) fn begin(job: &Job, pods: Vec<Pod>, now: Timestamp) -> Self {
        let spec = job.spec.clone().unwrap_or_default();
        let status = job.status.clone().unwrap_or_default();
        let active: Vec<&Pod> = pods.iter().filter(|pod| pod::is_active(pod)).collect();
        let ready = objects::count(active.iter().filter(|pod| pod::is_ready(pod)));
        let mut sync = Self {
            job: job.clone(),
            active: objects::count(&active),
            ready,
            terminating: objects::count(pods.iter().filter(|pod| pod::is_ending(pod))),
            spec,
            status,
            now,
            finish: None,
            succeeded: 0,
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            held: std::collections::BTreeMap::new(),
            managed: false,
            delete: Vec::new(),
            create: Vec::new(),
            after: None,
            pods,
        };
        if sync.status.start_time.is_none() && !sync.is_suspended() {
            sync.status.start_time = Some(objects::timestamp(now));
        }
        sync.judge();
        if sync.finish.is_some() {
            let active = sync.pods.iter().filter(|pod| pod::is_active(pod)).cloned();
            sync.delete = active.map(|pod| Deletion { pod, uncounted: false }).collect();
        } else if job.metadata.deletion_timestamp.is_none() {
            sync.managed = true;
            sync.manage();
        }
        sync
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn completions(&self) -> i32 {
        self.spec.completions.unwrap_or(1)
    }

    /// Whether a pod counts as failed. One that is being deleted does, unless replacements wait for the end.
    fn is_failed(&self, pod: &Pod) -> bool {
        let patient = self.spec.pod_replacement_policy.as_deref() == Some("Failed");
        pod::phase(pod) == "Failed"
            || (!patient && pod::is_terminating(pod) && pod::phase(pod) != "Succeeded")
    }

    /// The index of a pod, if it is one that there should be.
    fn index(&self, pod: &Pod) -> Option<i32> {
        pods_of::index(pod).filter(|index| *index < self.completions())
    }

    /// Pods that have ended and are in no list yet.
    fn newly(&self, listed: Option<&Vec<String>>, ended: impl Fn(&Pod) -> bool) -> Vec<&Pod> {
        let known: BTreeSet<&String> = listed.into_iter().flatten().collect();
        let uncounted = |pod: &&Pod| {
            has_finalizer(pod) && !pod.metadata.uid.as_ref().is_some_and(|uid| known.contains(uid))
        };
        let valid = |pod: &&Pod| !self.is_indexed() || self.index(pod).is_some();
        self.pods.iter().filter(uncounted).filter(valid).filter(|pod| ended(pod)).collect()
    }

    /// Decides whether the job has reached its goal or failed. What an earlier pass decided stays decided.
    fn judge(&mut self) {
        let uncounted = self.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let listed = |list: &Option<Vec<String>>| objects::count(list.iter().flatten());
        let won =
            objects::count(self.newly(uncounted.succeeded.as_ref(), |pod| pod::phase(pod) == "Succeeded"));
        let lost = self.newly(uncounted.failed.as_ref(), |pod| self.is_failed(pod));
        let policy = self.spec.pod_failure_policy.as_ref();
        let lost = objects::count(lost.into_iter().filter(|pod| failure_policy::judge(policy, pod).counts()));
        self.succeeded = self.status.succeeded.unwrap_or(0) + won + listed(&uncounted.succeeded);
        let failed = self.status.failed.unwrap_or(0) + lost + listed(&uncounted.failed);
        self.finish = conditions::decided(&self.status);
        if self.finish.is_none() {
            self.finish = self.failure(failed);
        }
        if self.is_indexed() {
            self.judge_indexes();
        }
    }

    /// Why the job has failed, if it has.
    fn failure(&mut self, failed: i32) -> Option<JobCondition> {
        let policy = self.spec.pod_failure_policy.as_ref();
        let mut broken = self.pods.iter().filter(|pod| self.is_failed(pod));
        if let Some(message) = broken.find_map(|pod| failure_policy::judge(policy, pod).fails_job()) {
            return Some(conditions::failure("PodFailurePolicy", message, self.now));
        }
        let limit = self.spec.backoff_limit.unwrap_or(6);
        if failed > limit || backoff::restarted_too_often(&self.spec, &self.pods, limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(conditions::failure("BackoffLimitExceeded", message, self.now));
        }
        let allowed = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        if self.is_suspended() {
            return None;
        }
        let left = allowed - self.now.duration_since(self.status.start_time.as_ref()?.0);
        if left <= SignedDuration::ZERO {
            let message = "Job was active longer than specified deadline";
            return Some(conditions::failure("DeadlineExceeded", message, self.now));
        }
        self.look_again(left.try_into().unwrap_or_default());
        None
    }

    fn judge_indexes(&mut self) {
        let completions = self.completions();
        let mut done =
            Indexes::parse(self.status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let won = self.pods.iter().filter(|pod| pod::phase(pod) == "Succeeded" && has_finalizer(pod));
        done.extend(won.filter_map(|pod| self.index(pod)));
        self.succeeded = done.total();
        self.succeeded_indexes = done;
        if self.spec.backoff_limit_per_index.is_some() {
            per_index::judge(self);
        }
        if self.finish.is_none()
            && let Some(message) =
                self.succeeded_indexes.meets(self.spec.success_policy.as_ref(), completions)
        {
            self.finish = Some(conditions::new("SuccessCriteriaMet", "SuccessPolicy", &message, self.now));
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.after = Some(self.after.map_or(after, |known| known.min(after)));
    }

    /// Decides which pods to create and which to delete.
    fn manage(&mut self) {
        let active: Vec<Pod> = self.pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
        if self.is_suspended() {
            self.delete = active.into_iter().map(|pod| Deletion { pod, uncounted: true }).collect();
            return;
        }
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let want = match self.spec.completions {
            None if self.succeeded > 0 => self.active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded).min(parallelism).max(0),
        };
        let surplus = usize::try_from(self.active - want).unwrap_or(0);
        let mut going = pods_of::for_removal(self, &active, surplus);
        if !going.is_empty() {
            going.truncate(BURST);
            self.delete = going.into_iter().map(|pod| Deletion { pod, uncounted: true }).collect();
            return;
        }
        let patient = self.spec.pod_replacement_policy.as_deref() == Some("Failed");
        let leaving = if patient { self.terminating } else { 0 };
        let missing = usize::try_from(want - leaving - self.active).unwrap_or(0);
        if missing == 0 {
            return;
        }
        let alone = self.spec.backoff_limit_per_index.is_some();
        let wait = if alone { None } else { backoff::remaining(self, self.now) };
        if let Some(wait) = wait {
            self.look_again(wait);
            return;
        }
        let missing = missing.min(BURST);
        if !self.is_indexed() {
            self.create = vec![pods_of::pod(self, None); missing];
            return;
        }
        let mut indexes = pods_of::pending_indexes(self, &active, missing);
        if alone {
            let (now, wait) = per_index::ready(self, indexes);
            indexes = now;
            if let (true, Some(wait)) = (indexes.is_empty(), wait) {
                self.look_again(wait);
            }
        }
        self.create = indexes.into_iter().map(|index| pods_of::pod(self, Some(index))).collect();
    }

    /// The writes that follow, given how creations and deletions went.
    pub(crate) fn conclude(mut self, outcome: Outcome) -> Vec<Step> {
        let number = |many: usize| i32::try_from(many).unwrap_or(i32::MAX);
        if outcome.deleted < self.delete.len() {
            // It cannot be called finished while pods are left that nobody has told to go.
            self.finish = None;
        }
        let gone = &self.delete[..outcome.deleted.min(self.delete.len())];
        let deleted = number(outcome.deleted);
        self.ready -= objects::count(gone.iter().filter(|deletion| pod::is_ready(&deletion.pod)));
        self.active += number(outcome.created) - deleted;
        self.terminating += deleted;
        let mut notes = Vec::new();
        if self.managed {
            let complete = self.active == 0
                && self
                    .spec
                    .completions
                    .map_or(self.succeeded > 0, |completions| self.succeeded >= completions);
            if complete {
                self.finish = Some(conditions::reached(self.now));
            } else {
                notes.extend(conditions::note_suspension(
                    &mut self.status,
                    self.spec.suspend == Some(true),
                    self.now,
                ));
            }
        }
        tracking::steps(self, notes)
    }
}

/// The events of a job that has ended.
fn finished_notes(spec: &JobSpec, status: &JobStatus, finish: &JobCondition) -> Vec<Note> {
    if finish.type_ != "Complete" {
        let reason = finish.reason.as_deref().unwrap_or_default();
        return vec![Note::warning(reason, finish.message.clone().unwrap_or_default())];
    }
    let mut notes = Vec::new();
    if spec.completions.is_some_and(|completions| status.succeeded.unwrap_or(0) > completions) {
        let message = "Too many succeeded pods running after completion count reached";
        notes.push(Note::warning("TooManySucceededPods", message));
    }
    notes.push(Note::normal("Completed", "Job completed"));
    notes
}

#[cfg(test)]
mod tests;
