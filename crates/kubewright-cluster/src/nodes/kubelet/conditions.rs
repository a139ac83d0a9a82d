//! The conditions of a pod, as a kubelet writes them.

use crate::objects::timestamp;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};

const OWN: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Why a pod is not ready.
#[derive(Clone)]
struct Why {
    reason: &'static str,
    message: Option<String>,
}

/// The conditions that go with a status. Times of change are kept; conditions of others follow.
pub(super) fn of(pod: &Pod, status: &PodStatus, now: Timestamp) -> Vec<PodCondition> {
    let known = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let containers = containers_ready(status);
    let ready = containers.clone().and_then(|()| gates_open(pod, &known));
    let completed = status.phase.as_deref() == Some("Succeeded");
    let said = |kind: &str| -> (bool, Option<Why>) {
        match kind {
            "Ready" => (ready.is_ok(), ready.clone().err()),
            "ContainersReady" => (containers.is_ok(), containers.clone().err()),
            "Initialized" if completed => (true, Some(Why { reason: "PodCompleted", message: None })),
            "PodReadyToStartContainers" => {
                (!matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")), None)
            }
            _ => (true, None),
        }
    };
    let own = OWN.iter().map(|kind| {
        let (holds, why) = said(kind);
        let status = if holds { "True" } else { "False" };
        let same = known.iter().find(|known| known.type_ == *kind && known.status == status);
        let since = same.and_then(|same| same.last_transition_time.clone());
        PodCondition {
            type_: (*kind).to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since.unwrap_or_else(|| timestamp(now))),
            observed_generation: pod.metadata.generation,
            reason: why.as_ref().map(|why| why.reason.to_owned()),
            message: why.and_then(|why| why.message),
            ..PodCondition::default()
        }
    });
    let foreign = known.iter().filter(|known| !OWN.contains(&known.type_.as_str())).cloned();
    own.chain(foreign).collect()
}

fn containers_ready(status: &PodStatus) -> Result<(), Why> {
    match status.phase.as_deref() {
        Some("Succeeded") => return Err(Why { reason: "PodCompleted", message: None }),
        Some("Failed") => return Err(Why { reason: "PodFailed", message: None }),
        _ => {}
    }
    let all = status.container_statuses.iter().flatten();
    let unready: Vec<&str> = all.filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
    if unready.is_empty() {
        return Ok(());
    }
    let message = Some(format!("containers with unready status: [{}]", unready.join(" ")));
    Err(Why { reason: "ContainersNotReady", message })
}

/// Whether all readiness gates are open.
fn gates_open(pod: &Pod, known: &[PodCondition]) -> Result<(), Why> {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let closed = gates.iter().find(|gate| {
        !known.iter().any(|condition| condition.type_ == gate.condition_type && condition.status == "True")
    });
    let Some(closed) = closed else { return Ok(()) };
    let message =
        Some(format!("the status of pod readiness gate \"{}\" is not \"True\"", closed.condition_type));
    Err(Why { reason: "ReadinessGatesNotReady", message })
}
