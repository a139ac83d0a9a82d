//! Health of custom resources by common conventions.
//!
//! In this order: a negative condition, a positive condition, a phase, replicas. An object without a status
//! has not been reconciled yet.

use super::{Fields, Health, State};

/// Conditions that are true in case of a problem, as in kstatus and others.
const NEGATIVE: [&str; 4] = ["Stalled", "Failed", "Failure", "Degraded"];
/// Conditions that are true for a healthy object, the most specific first.
const POSITIVE: [&str; 8] =
    ["Ready", "Available", "Healthy", "Established", "Synced", "Succeeded", "Complete", "Completed"];

/// The health of a custom resource.
pub(super) fn health(object: Fields<'_>) -> Health {
    let health = by_conditions(object).or_else(|| by_phase(object)).or_else(|| by_replicas(object));
    let health = health.unwrap_or_else(|| match object.at("/status") {
        None if object.at("/spec").is_some() => Health::new(State::Unknown, "no status yet"),
        // Without a generation to compare, nothing is outdated.
        None => Health::new(State::Ready, ""),
        Some(_) => Health::new(State::Unknown, "its status has no condition, phase or replicas"),
    });
    if health.state != State::Failed && object.is("/spec/suspend") {
        return Health { state: State::Suspended, ..health };
    }
    match replicas(object) {
        Some((ready, wanted)) if health.ready.is_none() => health.parts(ready, wanted),
        _ => health,
    }
}

fn by_conditions(object: Fields<'_>) -> Option<Health> {
    let wrong = NEGATIVE.iter().filter_map(|name| object.condition(name)).find(|held| held.is("True"));
    if let Some(wrong) = wrong {
        return Some(Health::new(State::Failed, wrong.words()));
    }
    let reconciling = object.condition("Reconciling").filter(|held| held.is("True"));
    if let Some(reconciling) = reconciling {
        return Some(Health::new(State::Progressing, reconciling.words()));
    }
    let condition = POSITIVE.iter().find_map(|name| object.condition(name))?;
    let state = if condition.is("True") {
        State::Ready
    } else if condition.is("False") && condition.reason() == "Suspended" {
        State::Suspended
    } else if condition.is("False") {
        State::NotReady
    } else {
        State::Progressing
    };
    Some(Health::new(state, condition.words()))
}

fn by_phase(object: Fields<'_>) -> Option<Health> {
    let phase =
        object.text("/status/phase").or(object.text("/status/state")).filter(|phase| !phase.is_empty())?;
    let state = match phase.to_ascii_lowercase().as_str() {
        "ready" | "running" | "active" | "bound" | "available" | "healthy" | "deployed" | "online" | "ok"
        | "synced" => State::Ready,
        "succeeded" | "complete" | "completed" | "finished" | "done" => State::Done,
        "failed" | "failing" | "error" | "lost" | "unhealthy" | "degraded" | "rejected" => State::Failed,
        "suspended" | "paused" => State::Suspended,
        "terminating" | "deleting" => State::Terminating,
        "unknown" => State::Unknown,
        _ => State::Progressing,
    };
    Some(Health::new(state, phase))
}

fn by_replicas(object: Fields<'_>) -> Option<Health> {
    let (ready, wanted) = replicas(object)?;
    let state = if ready < wanted { State::Progressing } else { State::Ready };
    Some(Health::new(state, ""))
}

fn replicas(object: Fields<'_>) -> Option<(i64, i64)> {
    let ready = object.number("/status/availableReplicas").or(object.number("/status/readyReplicas"))?;
    let wanted = object.number("/spec/replicas").or(object.number("/status/replicas")).unwrap_or(1);
    Some((ready, wanted))
}
