//! The kubelet: what becomes of a pod on its node.
//!
//! [`turn`] looks at a pod, its script and the clock and answers with the next status. One turn is one transition: every
//! state that a real kubelet writes is written and can be seen by watchers. The write itself brings the pod back for
//! the next turn; what only time can change is looked at again when its time has come.

mod addresses;
mod conditions;
mod containers;
pub(super) mod reconcile;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{HostIP, Pod, PodIP, PodStatus};

use super::script::Script;
use crate::{objects, pod, workloads::step::Note};
use containers::Containers;

/// Where a pod runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The address of the node.
    pub(super) host_ip: &'a str,
    /// The address of the pod.
    pub(super) pod_ip: &'a str,
}

/// What happens to a pod next.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Turn {
    /// The status to write.
    pub(super) status: Option<PodStatus>,
    /// Whether the pod has ended on request, and the object can go.
    pub(super) remove: bool,
    /// When to look again.
    pub(super) after: Option<Duration>,
    /// What to say about it.
    pub(super) notes: Vec<Note>,
}

impl Turn {
    fn look_at(time: Timestamp, now: Timestamp) -> Option<Duration> {
        Some(Duration::try_from(time.duration_since(now)).unwrap_or_default()).filter(|wait| !wait.is_zero())
    }
}

/// The next turn of a pod that is bound to a simulated node.
pub(super) fn turn(pod: &Pod, place: Place<'_>, now: Timestamp) -> Turn {
    let script = Script::of(pod);
    if pod::is_terminating(pod) {
        return stop(pod, &script, now);
    }
    if pod::is_terminal(pod) {
        return Turn::default();
    }
    let before = pod.status.clone().unwrap_or_default();
    let begun = before.start_time.as_ref().map_or(now, |time| time.0);
    let mut containers = Containers::of(pod, now);
    let mut turn = Turn::default();
    let ready_to_start = begun.checked_add(script.start_delay).unwrap_or(begun);
    if script.image_pull_error {
        turn.after = containers.fail_to_pull(begun, &mut turn.notes);
    } else if now < ready_to_start {
        containers.create();
        turn.after = Turn::look_at(ready_to_start, now);
    } else {
        turn.after = containers.advance(&script, &mut turn.notes);
    }
    let mut status = before.clone();
    status.start_time.get_or_insert_with(|| objects::timestamp(now));
    status.host_ip = Some(place.host_ip.to_owned());
    status.host_ips = Some(vec![HostIP { ip: place.host_ip.to_owned() }]);
    status.pod_ip = Some(place.pod_ip.to_owned());
    status.pod_ips = Some(vec![PodIP { ip: place.pod_ip.to_owned() }]);
    status.observed_generation = pod.metadata.generation;
    finish(pod, status, containers, now, &before, &mut turn);
    turn
}

/// Puts phase and conditions to what the containers are, and the status into the turn if it is a new one.
fn finish(
    pod: &Pod,
    mut status: PodStatus,
    containers: Containers<'_>,
    now: Timestamp,
    before: &PodStatus,
    turn: &mut Turn,
) {
    status.phase = Some(containers.phase().to_owned());
    let (init, main) = containers.into_statuses();
    status.init_container_statuses = (!init.is_empty()).then_some(init);
    status.container_statuses = Some(main);
    status.conditions = Some(conditions::of(pod, &status, now));
    if status != *before {
        turn.status = Some(status);
    }
}

/// A pod that was asked to end: it does, after a while, and not after its grace period.
fn stop(pod: &Pod, script: &Script, now: Timestamp) -> Turn {
    let meta = &pod.metadata;
    let deadline = meta.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0));
    let asked = deadline.checked_sub(grace).unwrap_or(deadline);
    let end = asked.checked_add(script.stop_duration).unwrap_or(deadline).min(deadline);
    if now < end {
        return Turn { after: Turn::look_at(end, now), ..Turn::default() };
    }
    let mut turn = Turn { remove: true, ..Turn::default() };
    if pod::is_terminal(pod) {
        return turn;
    }
    let before = pod.status.clone().unwrap_or_default();
    let mut containers = Containers::of(pod, now);
    if containers.stop(end >= deadline && !grace.is_zero() && script.stop_duration >= grace, &mut turn.notes)
    {
        finish(pod, before.clone(), containers, now, &before, &mut turn);
    }
    turn
}

#[cfg(test)]
mod tests;
