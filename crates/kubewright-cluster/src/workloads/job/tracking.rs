//! Counting ended pods exactly once, however often a pass is interrupted.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    batch::v1::{JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};

use super::{
    super::step::{Note, Step},
    Sync, conditions, failure_policy, finished_notes, has_finalizer,
    pods_of::{self, without_finalizer},
};
use crate::{objects::omit_zero, pod};

/// At most so many ended pods are in the status at a time.
const MOST_UNCOUNTED: usize = 500;

/// The writes of a pass: the lists, the finalizers, the counters.
pub(super) fn steps(mut sync: Sync, mut notes: Vec<Note>) -> Vec<Step> {
    let before = sync.job.status.clone().unwrap_or_default();
    sync.status.active = omit_zero(sync.active);
    sync.status.ready = Some(sync.ready);
    sync.status.terminating = Some(sync.terminating);
    let mut tracked: BTreeSet<String> = sync
        .pods
        .iter()
        .filter(|pod| has_finalizer(pod))
        .filter_map(|pod| pod.metadata.uid.clone())
        .collect();
    let mut lists = sync.status.uncounted_terminated_pods.take().unwrap_or_default();
    count(&mut sync.status, &mut lists, &tracked);
    let (ended, full) = list_ended(&sync, &mut lists);
    let ended: Vec<Pod> = ended.into_iter().cloned().collect();
    if sync.is_indexed() {
        sync.status.succeeded = omit_zero(sync.succeeded_indexes.total());
        let text = sync.succeeded_indexes.to_string();
        sync.status.completed_indexes = (!text.is_empty()).then_some(text);
        sync.status.failed_indexes = sync.failed_indexes.as_ref().map(ToString::to_string);
    }
    let finish = sync.finish.take().map(|finish| conditions::announce(&mut sync.status, finish, sync.now));
    let mut steps = Vec::new();
    sync.status.uncounted_terminated_pods = Some(tidy(&lists));
    let mut written = before;
    if written != sync.status {
        write(&mut steps, &sync, &sync.status);
        written = sync.status.clone();
    }
    for pod in ended {
        tracked.remove(pod.metadata.uid.as_deref().unwrap_or_default());
        let patch = without_finalizer(&pod.metadata);
        steps.push(Step::Patch(pod.into(), patch));
    }
    count(&mut sync.status, &mut lists, &tracked);
    let lists = tidy(&lists);
    let counted = lists == UncountedTerminatedPods::default();
    sync.status.uncounted_terminated_pods = Some(lists);
    let finish = finish.filter(|_| counted && !full && sync.terminating == 0);
    if let Some(finish) = &finish {
        conditions::ensure(&mut sync.status, finish.clone());
        if finish.type_ == "Complete" {
            sync.status.completion_time.clone_from(&finish.last_transition_time);
        }
        notes.extend(finished_notes(&sync.spec, &sync.status, finish));
    }
    if written != sync.status {
        write(&mut steps, &sync, &sync.status);
    }
    steps.extend(notes.into_iter().map(Step::Say));
    steps
}

fn write(steps: &mut Vec<Step>, sync: &Sync, status: &JobStatus) {
    let mut job = sync.job.clone();
    job.status = Some(status.clone());
    steps.push(Step::Status(job.into()));
}

/// Moves pods that have lost their finalizer from the lists into the counters.
fn count(status: &mut JobStatus, lists: &mut UncountedTerminatedPods, tracked: &BTreeSet<String>) {
    let take = |list: &mut Option<Vec<String>>| {
        let before = list.as_ref().map_or(0, Vec::len);
        let left: Vec<String> =
            list.take().into_iter().flatten().filter(|uid| tracked.contains(uid)).collect();
        let gone = before - left.len();
        *list = Some(left);
        i32::try_from(gone).unwrap_or(i32::MAX)
    };
    status.succeeded = omit_zero(status.succeeded.unwrap_or(0) + take(&mut lists.succeeded));
    status.failed = omit_zero(status.failed.unwrap_or(0) + take(&mut lists.failed));
}

/// Empty lists are not written.
fn tidy(lists: &UncountedTerminatedPods) -> UncountedTerminatedPods {
    let kept = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
    UncountedTerminatedPods { succeeded: kept(&lists.succeeded), failed: kept(&lists.failed) }
}

/// Puts pods that have ended into the lists. The pods whose finalizers can come off, and whether the lists are full.
fn list_ended<'a>(sync: &'a Sync, lists: &mut UncountedTerminatedPods) -> (Vec<&'a Pod>, bool) {
    let mut order: Vec<_> = sync.pods.iter().filter(|pod| has_finalizer(pod)).collect();
    if sync.is_indexed() {
        order.sort_by_key(|pod| pods_of::index(pod));
    }
    let failing = sync.finish.as_ref().is_some_and(|finish| finish.type_ != "SuccessCriteriaMet");
    let mut ended = Vec::new();
    let mut indexes = 0;
    for pod in order {
        let failed = sync.is_failed(pod);
        let succeeded = pod::phase(pod) == "Succeeded";
        let over = sync.job.metadata.deletion_timestamp.is_some() || sync.finish.is_some() || succeeded;
        let held = pods_of::index(pod).and_then(|index| sync.held.get(&index));
        let waits = held.is_some_and(|held| held.metadata.uid == pod.metadata.uid);
        if !over && (!failed || waits) {
            continue;
        }
        ended.push(pod);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let listed = |list: &Option<Vec<String>>| list.iter().flatten().any(|known| *known == uid);
        let valid = !sync.is_indexed() || sync.index(pod).is_some();
        if succeeded && !listed(&lists.failed) {
            if sync.is_indexed() {
                indexes += 1;
            } else if !listed(&lists.succeeded) {
                lists.succeeded.get_or_insert_default().push(uid);
            }
        } else if (failed || failing) && valid && !listed(&lists.failed) {
            let policy = sync.spec.pod_failure_policy.as_ref();
            if failure_policy::judge(policy, pod).counts() {
                lists.failed.get_or_insert_default().push(uid);
            }
        }
        let size = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
        if indexes + size(&lists.succeeded) + size(&lists.failed) >= MOST_UNCOUNTED {
            return (ended, true);
        }
    }
    (ended, false)
}
