//! Replacing daemon pods of an old template: first out then in, or, with surge, first in then out.

use k8s_openapi::api::core::v1::Pod;

use super::{
    super::percent::{self, Round},
    Pass, Plan, placement,
};
use crate::pod;

/// How many pods more, and how many fewer, than nodes there may be during an update.
fn limits(pass: &Pass<'_>, desired: i32) -> (usize, usize) {
    let strategy = pass.spec.update_strategy.clone().unwrap_or_default();
    let limits = strategy.rolling_update.unwrap_or_default();
    let surge = limits.max_surge.map_or(0, |value| percent::resolve(&value, desired, Round::Up));
    let lack = limits.max_unavailable.map_or(1, |value| percent::resolve(&value, desired, Round::Up));
    let lack = if surge == 0 && lack == 0 { 1 } else { lack };
    (usize::try_from(surge).unwrap_or(0), usize::try_from(lack).unwrap_or(0))
}

fn is_on_delete(pass: &Pass<'_>) -> bool {
    pass.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

fn surges(pass: &Pass<'_>) -> bool {
    !is_on_delete(pass) && limits(pass, i32::try_from(pass.nodes.len()).unwrap_or(i32::MAX)).0 > 0
}

/// More than one pod on a node: the oldest stays, unless this is a new one beside an old one during an update.
pub(super) fn drop_surplus(pass: &Pass<'_>, running: &[&Pod], plan: &mut Plan) {
    if running.len() < 2 {
        return;
    }
    let groups: (Vec<&Pod>, Vec<&Pod>) = running.iter().partition(|pod| pass.is_updated(pod));
    let (new, old) = groups;
    if surges(pass) && !new.is_empty() && !old.is_empty() {
        let surplus = new.iter().skip(1).chain(old.iter().skip(1));
        plan.delete.extend(surplus.map(|pod| (*pod).clone()));
        if pass.is_available(new[0]) || !pass.is_available(old[0]) {
            plan.delete.push(old[0].clone());
        }
        return;
    }
    plan.delete.extend(running.iter().skip(1).map(|pod| (*pod).clone()));
}

/// One move of a rolling update.
pub(super) fn roll(pass: &Pass<'_>, plan: &mut Plan) {
    if is_on_delete(pass) {
        return;
    }
    let wanted: Vec<&str> = pass
        .nodes
        .iter()
        .filter(|node| placement::decide(&pass.spec, node).0)
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    let (surge, lack) = limits(pass, i32::try_from(wanted.len()).unwrap_or(i32::MAX));
    let mut unavailable = 0;
    let mut surging = 0;
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for name in wanted {
        let here = pass.by_node.get(name).map(Vec::as_slice).unwrap_or_default();
        let alive: Vec<&Pod> = here.iter().copied().filter(|pod| !pod::is_terminating(pod)).collect();
        let well = alive.iter().any(|pod| pass.is_available(pod));
        unavailable += usize::from(!well);
        match alive.as_slice() {
            [only] if !pass.is_updated(only) && alive.len() == here.len() => {
                if well {
                    up.push((name, *only));
                } else {
                    down.push((name, *only));
                }
            }
            [_] | [] => {}
            _ => surging += 1,
        }
    }
    if surge > 0 {
        // An old pod that is down is not worth keeping until its successor is up.
        plan.delete.extend(down.iter().map(|(_, pod)| (*pod).clone()));
        let room = surge.saturating_sub(surging);
        let made =
            up.iter().take(room).map(|(name, _)| placement::pod(pass.set, &pass.spec, &pass.hash, name));
        plan.create.extend(made);
        return;
    }
    let room = lack.saturating_sub(unavailable);
    let chosen = down.into_iter().chain(up.into_iter().take(room));
    plan.delete.extend(chosen.map(|(_, pod)| pod.clone()));
}
