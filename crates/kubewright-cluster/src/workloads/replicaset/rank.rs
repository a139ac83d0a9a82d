//! Which pods go first when there are too many.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use crate::{objects, pod};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// The annotation by which users say which pods are cheap to lose.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Pods in the order in which they are deleted: unbound before bound, pending before running, not ready before ready,
/// cheap before dear, crowded nodes before empty ones, shortly ready before long ready, often restarted before
/// seldom, young before old. Ages are compared by their order of magnitude, so that not always the newest one goes.
pub(crate) fn deletion_order<'a>(active: &[&'a Pod], related: &[Arc<Pod>], now: Timestamp) -> Vec<&'a Pod> {
    let mut crowd: BTreeMap<&str, usize> = BTreeMap::new();
    for node in related.iter().filter(|pod| pod::is_active(pod)).filter_map(|pod| pod::node(pod)) {
        *crowd.entry(node).or_default() += 1;
    }
    let rank = |pod: &Pod| pod::node(pod).and_then(|node| crowd.get(node)).copied().unwrap_or(0);
    let mut order = active.to_vec();
    order.sort_by(|a, b| {
        pod::node(a)
            .is_some()
            .cmp(&pod::node(b).is_some())
            .then_with(|| stage(a).cmp(&stage(b)))
            .then_with(|| pod::is_ready(a).cmp(&pod::is_ready(b)))
            .then_with(|| cost(a).cmp(&cost(b)))
            .then_with(|| rank(b).cmp(&rank(a)))
            .then_with(|| by_age(pod::ready_since(a), pod::ready_since(b), a, b, now))
            .then_with(|| restarts(b).cmp(&restarts(a)))
            .then_with(|| by_age(created(a), created(b), a, b, now))
            .then_with(|| a.metadata.uid.cmp(&b.metadata.uid))
    });
    order
}

fn stage(pod: &Pod) -> u8 {
    match pod::phase(pod) {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    }
}

/// A cost that is no number counts as none.
fn cost(pod: &Pod) -> i32 {
    let text = objects::annotation(&pod.metadata, COST).unwrap_or_default();
    let plain = !text.starts_with('+') && (text == "0" || !text.trim_start_matches('-').starts_with('0'));
    if plain { text.parse().unwrap_or(0) } else { 0 }
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).max().unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The younger first; pods of the same order of magnitude by uid, which is as good as by lot. A time that is not there
/// counts as just now.
fn by_age(a: Option<Timestamp>, b: Option<Timestamp>, pod_a: &Pod, pod_b: &Pod, now: Timestamp) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let magnitude = |time: Option<Timestamp>| {
        let age = time.map_or(0, |time| now.duration_since(time).as_nanos());
        u128::try_from(age).ok().and_then(u128::checked_ilog2).map_or(-1, i64::from)
    };
    magnitude(a).cmp(&magnitude(b)).then_with(|| pod_a.metadata.uid.cmp(&pod_b.metadata.uid))
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::testing::{bound, created_at, pod, ready, running, time},
        *,
    };

    fn order(all: &[Pod], related: &[Pod]) -> Vec<String> {
        let active: Vec<&Pod> = all.iter().collect();
        let related: Vec<Arc<Pod>> = related.iter().cloned().map(Arc::new).collect();
        let found = deletion_order(&active, &related, time(10_000));
        found.into_iter().map(|pod| pod.metadata.name.clone().unwrap_or_default()).collect()
    }

    fn costing(mut pod: Pod, cost: &str) -> Pod {
        pod.metadata.annotations = Some([(COST.to_owned(), cost.to_owned())].into());
        pod
    }

    #[test]
    fn what_has_got_less_far_goes_first() {
        let pods = [
            ready(running(bound(pod("ready"), "n")), time(0)),
            running(bound(pod("running"), "n")),
            bound(pod("bound"), "n"),
            pod("unbound"),
        ];
        assert_eq!(order(&pods, &[]), ["unbound", "bound", "running", "ready"]);
    }

    #[test]
    fn the_cheap_go_before_the_dear_and_nonsense_costs_nothing() {
        let pods = [
            ready(pod("plain"), time(0)),
            costing(ready(pod("dear"), time(0)), "5"),
            costing(ready(pod("cheap"), time(0)), "-10"),
        ];
        assert_eq!(order(&pods, &[]), ["cheap", "plain", "dear"]);
        assert_eq!(cost(&costing(pod("a"), "+5")), 0);
        assert_eq!(cost(&costing(pod("a"), "05")), 0);
        assert_eq!(cost(&costing(pod("a"), "much")), 0);
    }

    #[test]
    fn crowded_nodes_are_relieved_first() {
        let pods = [bound(pod("alone"), "one"), bound(pod("pair"), "two")];
        let related = [pods[0].clone(), pods[1].clone(), bound(pod("sibling"), "two")];
        assert_eq!(order(&pods, &related), ["pair", "alone"]);
    }

    #[test]
    fn ages_count_by_their_order_of_magnitude() {
        let pods = [created_at(pod("old"), time(0)), created_at(pod("young"), time(9_990))];
        assert_eq!(order(&pods, &[]), ["young", "old"]);
        let alike = [created_at(pod("b"), time(1_000)), created_at(pod("a"), time(500))];
        assert_eq!(order(&alike, &[]), ["a", "b"], "9,000 and 9,500 seconds are the same age here");
    }
}
