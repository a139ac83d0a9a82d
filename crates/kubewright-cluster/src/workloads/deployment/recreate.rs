//! Recreate: nothing new before the last of the old has ended.

use k8s_openapi::api::core::v1::Pod;

use super::rollout::{Rollout, Which, replicas};
use crate::{objects, pod};

/// One move: stop the old sets, wait for their pods, then start the new one.
pub(super) fn roll(rollout: &mut Rollout, all_pods: &[Pod]) {
    let mut stopped = false;
    for place in 0..rollout.old.len() {
        if replicas(&rollout.old[place]) > 0 {
            stopped |= rollout.resize(Which::Old(place), 0, false);
        }
    }
    if stopped || old_pods_run(rollout, all_pods) {
        return;
    }
    rollout.ensure_new_set();
    let desired = rollout.desired();
    rollout.resize(Which::New, desired, false);
    if super::status::is_complete(rollout) {
        rollout.clean_up();
    }
}

/// Whether a pod of an old set has not ended, or an old set still believes in one.
fn old_pods_run(rollout: &Rollout, all_pods: &[Pod]) -> bool {
    let counted = rollout.old.iter().filter_map(|set| set.status.as_ref()).any(|status| status.replicas > 0);
    let newest = rollout.new.as_ref().map(|set| &set.metadata);
    let foreign = |pod: &&Pod| newest.is_none_or(|newest| !objects::is_controlled_by(&pod.metadata, newest));
    counted || all_pods.iter().filter(foreign).any(|pod| !pod::is_terminal(pod))
}
