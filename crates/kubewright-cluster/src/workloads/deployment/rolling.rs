//! Rolling update: the new set grows and the old ones shrink, within the limits of surge and unavailability.

use super::rollout::{Rollout, Which, available, replicas};

/// One move: the new set grows if it may, else the old ones shrink if they may, else old history is cleaned up.
pub(super) fn roll(rollout: &mut Rollout) {
    rollout.ensure_new_set();
    if grow(rollout) || shrink(rollout) {
        return;
    }
    if super::status::is_complete(rollout) {
        rollout.clean_up();
    }
}

/// Sizes the new set to what there is room for.
fn grow(rollout: &mut Rollout) -> bool {
    let Some(current) = rollout.new.as_ref().map(replicas) else { return false };
    let size = match current.cmp(&rollout.desired()) {
        std::cmp::Ordering::Equal => return false,
        std::cmp::Ordering::Greater => rollout.desired(),
        std::cmp::Ordering::Less => rollout.room_for(current),
    };
    rollout.resize(Which::New, size, false)
}

/// Takes replicas off the old sets: first those that are unavailable anyway, then as many as availability allows.
fn shrink(rollout: &mut Rollout) -> bool {
    let old: i32 = rollout.old.iter().map(replicas).sum();
    if old == 0 {
        return false;
    }
    let least = rollout.desired() - rollout.max_unavailable();
    // New pods that are not available yet must not be counted on, or old ones would go too early.
    let coming = rollout.new.as_ref().map_or(0, |set| replicas(set) - available(set));
    let spare = rollout.total() - least - coming;
    if spare <= 0 {
        return false;
    }
    let mut moved = false;
    let mut unhealthy = spare;
    for place in 0..rollout.old.len() {
        let set = &rollout.old[place];
        let lost = (replicas(set) - available(set)).min(unhealthy);
        if lost > 0 {
            let size = replicas(set) - lost;
            moved |= rollout.resize(Which::Old(place), size, false);
            unhealthy -= lost;
        }
    }
    let mut surplus = rollout.available() - least;
    for place in 0..rollout.old.len() {
        let size = replicas(&rollout.old[place]);
        let lost = size.min(surplus);
        if lost > 0 {
            moved |= rollout.resize(Which::Old(place), size - lost, false);
            surplus -= lost;
        }
    }
    moved
}
