//! Scaling outside of a rollout's own moves: when the number of replicas changes, or while the deployment is paused.
//!
//! With one active set that set takes it all. With several, each gets its share of the difference, so that scaling does
//! not hasten a rollout that may be going wrong.

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::{
    annotations,
    rollout::{Rollout, Which, available, replicas},
};

/// Whether a set was sized for another number of replicas than is asked for now.
pub(super) fn was_scaled(rollout: &Rollout) -> bool {
    let active = rollout.all().filter(|set| replicas(set) > 0);
    let sized = active.filter_map(|set| annotations::replicas(&set.metadata, annotations::DESIRED));
    sized.into_iter().any(|desired| desired != rollout.desired())
}

/// Brings the sets to the number of replicas that is asked for.
pub(super) fn scale(rollout: &mut Rollout) {
    let active = active(rollout);
    let desired = rollout.desired();
    if active.len() <= 1 {
        let only = active.first().copied().or_else(|| newest(rollout));
        if let Some(which) = only {
            rollout.resize(which, desired, false);
        }
        return;
    }
    if is_saturated(rollout) {
        for which in active.into_iter().filter(|which| *which != Which::New) {
            rollout.resize(which, 0, false);
        }
        return;
    }
    if !rollout.is_recreate() {
        share(rollout, active);
    }
}

fn get(rollout: &Rollout, which: Which) -> Option<&ReplicaSet> {
    match which {
        Which::New => rollout.new.as_ref(),
        Which::Old(place) => rollout.old.get(place),
    }
}

/// The sets that are asked for replicas, oldest first, the present one last.
fn active(rollout: &Rollout) -> Vec<Which> {
    let places = (0..rollout.old.len()).map(Which::Old).chain([Which::New]);
    places.filter(|which| get(rollout, *which).is_some_and(|set| replicas(set) > 0)).collect()
}

fn newest(rollout: &Rollout) -> Option<Which> {
    match (&rollout.new, rollout.old.len()) {
        (Some(_), _) => Some(Which::New),
        (None, 0) => None,
        (None, length) => Some(Which::Old(length - 1)),
    }
}

/// Whether the present set has, and was sized for, all that is asked for.
fn is_saturated(rollout: &Rollout) -> bool {
    rollout.new.as_ref().is_some_and(|set| {
        replicas(set) == rollout.desired()
            && annotations::replicas(&set.metadata, annotations::DESIRED) == Some(rollout.desired())
            && available(set) == rollout.desired()
    })
}

/// Gives every active set its share, largest first; what rounding leaves goes to the largest.
fn share(rollout: &mut Rollout, mut active: Vec<Which>) {
    let desired = rollout.desired();
    let allowed = if desired > 0 { desired + rollout.max_surge() } else { 0 };
    let difference = allowed - rollout.total();
    // Of two sets of the same size the newer grows first and the older shrinks first.
    if difference > 0 {
        active.reverse();
    }
    let size = |which: &Which| get(rollout, *which).map_or(0, replicas);
    active.sort_by_key(|which| std::cmp::Reverse(size(which)));
    let mut given = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for which in &active {
        let share = get(rollout, *which).map_or(0, |set| proportion(rollout, set, difference, given));
        sizes.push(size(which) + share);
        given += share;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + difference - given).max(0);
    }
    for (which, size) in active.into_iter().zip(sizes) {
        rollout.resize(which, size, true);
    }
}

/// The share of one set in a difference of which `given` has been given away.
fn proportion(rollout: &Rollout, set: &ReplicaSet, difference: i32, given: i32) -> i32 {
    let current = replicas(set);
    if current == 0 || difference == given {
        return 0;
    }
    let left = difference - given;
    let share = fraction(rollout, set, current);
    if difference > 0 { share.min(left) } else { share.max(left) }
}

/// By how much a set changes when it keeps its part of the whole.
fn fraction(rollout: &Rollout, set: &ReplicaSet, current: i32) -> i32 {
    let desired = rollout.desired();
    if desired == 0 {
        return -current;
    }
    let counted = rollout.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
    let before = annotations::replicas(&set.metadata, annotations::MAXIMUM).filter(|before| *before > 0);
    let before = i64::from(before.unwrap_or(counted));
    if before == 0 {
        return 0;
    }
    let wanted = i64::from(current) * i64::from(desired + rollout.max_surge());
    // Rounded half up; all of these are positive.
    let size = (2 * wanted + before) / (2 * before);
    i32::try_from(size).unwrap_or(i32::MAX) - current
}
