//! Back-off limits of single indexes: an index fails alone, and the others go on.
//!
//! How often an index has failed travels from pod to pod in an annotation. So a failed pod keeps its finalizer until its
//! replacement has been made, or the number would be lost with it.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;

use super::{
    Sync, backoff, conditions,
    failure_policy::{self, Verdict},
    has_finalizer,
    indexes::Indexes,
};
use crate::{objects, pod};

/// How often the index of a pod had failed before it.
const COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// The same for failures that do not count towards the limit.
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

fn number(pod: &Pod, key: &str) -> i32 {
    objects::annotation(&pod.metadata, key).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How often the index of a failed pod has failed with it: what counts, and what does not.
fn failures(sync: &Sync, pod: &Pod) -> (i32, i32) {
    let ignored = failure_policy::judge(sync.spec.pod_failure_policy.as_ref(), pod) == Verdict::Ignored;
    (number(pod, COUNT) + i32::from(!ignored), number(pod, IGNORED) + i32::from(ignored))
}

/// Finds the failed indexes, and whether too many have; and which failed pods have still to be replaced.
pub(super) fn judge(sync: &mut Sync) {
    let completions = sync.completions();
    let limit = sync.spec.backoff_limit_per_index.unwrap_or(0);
    let mut failed = Indexes::parse(sync.status.failed_indexes.as_deref().unwrap_or_default(), completions);
    let policy = sync.spec.pod_failure_policy.as_ref();
    let mut held: BTreeMap<i32, Pod> = BTreeMap::new();
    let broken = sync.pods.iter().filter(|pod| has_finalizer(pod) && sync.is_failed(pod));
    for (pod, index) in broken.filter_map(|pod| sync.index(pod).map(|index| (pod, index))) {
        let verdict = failure_policy::judge(policy, pod);
        let (counted, ignored) = failures(sync, pod);
        if verdict == Verdict::FailsIndex || counted > limit {
            failed.extend([index]);
            continue;
        }
        let newer = held.get(&index).is_none_or(|known| {
            let (a, b) = failures(sync, known);
            counted + ignored > a + b
        });
        let replaced = sync.pods.iter().any(|other| {
            pod::is_active(other)
                && sync.index(other) == Some(index)
                && number(other, COUNT) + number(other, IGNORED) >= counted + ignored
        });
        if newer && !replaced && !sync.succeeded_indexes.contains(index) {
            held.insert(index, pod.clone());
        }
    }
    held.retain(|index, _| !failed.contains(*index));
    if sync.finish.is_none() {
        let total = failed.total();
        if sync.spec.max_failed_indexes.is_some_and(|most| total > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            sync.finish = Some(conditions::failure("MaxFailedIndexesExceeded", message, sync.now));
        } else if total > 0 && total + sync.succeeded_indexes.total() >= completions {
            sync.finish = Some(conditions::failure("FailedIndexes", "Job has failed indexes", sync.now));
        }
    }
    sync.held = held;
    sync.failed_indexes = Some(failed);
}

/// The indexes whose back-off is over, and when the first of the others is.
pub(super) fn ready(sync: &Sync, wanted: Vec<i32>) -> (Vec<i32>, Option<Duration>) {
    let left = |index: &i32| {
        let last = sync.held.get(index)?;
        let (counted, ignored) = failures(sync, last);
        backoff::wait(usize::try_from(counted + ignored).unwrap_or(0), backoff::finished_at(last), sync.now)
    };
    let wait = wanted.iter().filter_map(left).min();
    (wanted.into_iter().filter(|index| left(index).is_none()).collect(), wait)
}

/// Writes on a new pod of an index how often its predecessors failed.
pub(super) fn annotate(sync: &Sync, pod: &mut Pod, index: i32) {
    let (counted, ignored) = sync.held.get(&index).map_or((0, 0), |last| failures(sync, last));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(COUNT.to_owned(), counted.to_string());
    if ignored > 0 {
        annotations.insert(IGNORED.to_owned(), ignored.to_string());
    }
}
