//! Replacing pods of an old revision, highest ordinal first.

use k8s_openapi::api::core::v1::Pod;

use super::{
    super::percent::{self, Round},
    Pass, REVISION,
};
use crate::{objects, pod};

/// Deletes pods of an old revision, as many as may be unavailable at once, not below the partition.
pub(super) fn roll(pass: &mut Pass<'_>, replicas: &[Pod]) {
    let strategy = pass.spec.update_strategy.clone().unwrap_or_default();
    if strategy.type_.as_deref() == Some("OnDelete") {
        return;
    }
    let limits = strategy.rolling_update.unwrap_or_default();
    let partition = usize::try_from(limits.partition.unwrap_or(0)).unwrap_or(0);
    let total = pass.spec.replicas.unwrap_or(1);
    let allowed =
        limits.max_unavailable.map_or(1, |value| percent::resolve(&value, total, Round::Down)).max(1);
    let allowed = usize::try_from(allowed).unwrap_or(1);
    let unavailable = replicas.iter().filter(|pod| pass.is_unavailable(pod)).count();
    let is_old = |pod: &Pod, pass: &Pass<'_>| {
        objects::label(&pod.metadata, REVISION) != pass.update.metadata.name.as_deref()
            && !pod::is_terminating(pod)
    };
    let candidates: Vec<&Pod> = replicas
        .iter()
        .skip(partition)
        .rev()
        .filter(|pod| !pod::phase(pod).is_empty() && is_old(pod, pass))
        .collect();
    if !pass.ordered {
        // What is down anyway can be replaced without making anything worse.
        let (down, up): (Vec<&Pod>, Vec<&Pod>) = candidates.iter().partition(|pod| pass.is_unavailable(pod));
        down.into_iter()
            .chain(up.into_iter().take(allowed.saturating_sub(unavailable)))
            .for_each(|pod| pass.delete(pod));
        return;
    }
    // By now all lower pods are well, or an ordered pass would not have come so far; what is not well waits to be.
    candidates.into_iter().take(allowed.saturating_sub(unavailable)).for_each(|pod| pass.delete(pod));
}
