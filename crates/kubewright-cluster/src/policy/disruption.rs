//! What a `PodDisruptionBudget`'s status says, from the pods that it selects.
//!
//! The eviction subresource trusts the status: it lowers `disruptionsAllowed` and notes the pod in `disruptedPods`; this
//! plan counts again from the pods and forgets a note when the pod is gone, or after two minutes when it is not.

use std::collections::BTreeMap;

use crate::pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};

/// How long an evicted pod may take to be marked for deletion before it counts again.
pub const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The condition that says whether an eviction would be let through.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// A pod's controller and how many pods it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The identity of the object that decides: a Deployment for the pods of its `ReplicaSet`s.
    pub uid: String,
    /// The pods that it wants.
    pub replicas: i32,
}

/// What a budget could not be worked out from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The pod's controller is gone or cannot say how many pods it wants.
    #[error("found no controllers for pod {0:?}")]
    NoController(String),
    /// Not a number and not a percentage.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage: {0:?}")]
    NotAPercentage(String),
}

/// What to write, what to say, and when to look again.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The new status; `None` when the present one is right.
    pub status: Option<PodDisruptionBudgetStatus>,
    /// Pods that the budget covers but nobody controls, when that matters.
    pub unmanaged: Vec<String>,
    /// Pods that were to be deleted and were not.
    pub not_deleted: Vec<String>,
    /// The budget covers no pod.
    pub no_pods: bool,
    /// When the next note in `disruptedPods` runs out.
    pub recheck: Option<Timestamp>,
}

/// Works out the status of a budget.
///
/// `scale_of` finds the scale of a pod's controller; it is asked only when the budget is a percentage or a maximum of
/// unavailable pods.
pub fn plan(
    budget: &PodDisruptionBudget,
    pods: &[&Pod],
    scale_of: impl FnMut(&Pod) -> Option<Scale>,
    now: Timestamp,
) -> Result<Plan, BudgetError> {
    let (expected, desired, unmanaged) = expectation(budget, pods, scale_of)?;
    let old = budget.status.clone().unwrap_or_default();
    let (disrupted, not_deleted, recheck) = disrupted(old.disrupted_pods.as_ref(), pods, now);
    let healthy = healthy(pods, &disrupted, now);
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        conditions: Some(conditions(old.conditions.as_deref().unwrap_or_default(), allowed, generation, now)),
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        disruptions_allowed: Some(allowed),
        expected_pods: Some(expected),
        observed_generation: generation,
    };
    Ok(Plan {
        status: (status != old).then_some(status),
        unmanaged,
        not_deleted,
        no_pods: pods.is_empty(),
        recheck,
    })
}

/// The status when a budget cannot be worked out: nothing may be evicted.
pub fn fail_safe(budget: &PodDisruptionBudget, error: &str, now: Timestamp) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    let wanted = Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: "False".to_owned(),
        reason: "SyncFailed".to_owned(),
        message: error.to_owned(),
        observed_generation: status.observed_generation,
        last_transition_time: Time(now),
    };
    let conditions = status.conditions.take().unwrap_or_default();
    status.conditions = Some(with_condition(&conditions, wanted));
    status
}

/// How many pods there should be, how many must be healthy, and which of them nobody controls.
fn expectation(
    budget: &PodDisruptionBudget,
    pods: &[&Pod],
    scale_of: impl FnMut(&Pod) -> Option<Scale>,
) -> Result<(i32, i32, Vec<String>), BudgetError> {
    let Some(spec) = &budget.spec else { return Ok((0, 0, Vec::new())) };
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(maximum), _) => {
            let (expected, unmanaged) = scales(pods, scale_of)?;
            Ok((expected, (expected - scaled_up(maximum, expected)?).max(0), unmanaged))
        }
        (None, Some(IntOrString::Int(minimum))) => {
            Ok((i32::try_from(pods.len()).unwrap_or(i32::MAX), *minimum, Vec::new()))
        }
        (None, Some(minimum)) => {
            let (expected, unmanaged) = scales(pods, scale_of)?;
            Ok((expected, scaled_up(minimum, expected)?, unmanaged))
        }
        (None, None) => Ok((0, 0, Vec::new())),
    }
}

/// The sum over the pods' controllers of the pods that each of them wants.
fn scales(
    pods: &[&Pod],
    mut scale_of: impl FnMut(&Pod) -> Option<Scale>,
) -> Result<(i32, Vec<String>), BudgetError> {
    let mut known: BTreeMap<String, i32> = BTreeMap::new();
    let mut unmanaged = Vec::new();
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let owners = pod.metadata.owner_references.iter().flatten();
        if !owners.into_iter().any(|owner| owner.controller == Some(true)) {
            unmanaged.push(name);
            continue;
        }
        let scale = scale_of(pod).ok_or(BudgetError::NoController(name))?;
        known.insert(scale.uid, scale.replicas);
    }
    Ok((known.values().sum(), unmanaged))
}

/// A number, or a percentage of `whole` rounded up.
fn scaled_up(value: &IntOrString, whole: i32) -> Result<i32, BudgetError> {
    match value {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let percent: Option<i64> = text.strip_suffix('%').and_then(|digits| digits.parse().ok());
            let percent = percent.ok_or_else(|| BudgetError::NotAPercentage(text.clone()))?;
            let product = percent * i64::from(whole);
            Ok(i32::try_from(product.div_euclid(100) + i64::from(product.rem_euclid(100) > 0))
                .unwrap_or(i32::MAX))
        }
    }
}

type Disrupted = (BTreeMap<String, Time>, Vec<String>, Option<Timestamp>);

/// The notes that still hold, the pods whose note ran out, and when the next one will.
fn disrupted(notes: Option<&BTreeMap<String, Time>>, pods: &[&Pod], now: Timestamp) -> Disrupted {
    let (mut kept, mut overdue, mut recheck) = (BTreeMap::new(), Vec::new(), None);
    let Some(notes) = notes else { return (kept, overdue, recheck) };
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let Some(name) = &pod.metadata.name else { continue };
        let Some(since) = notes.get(name) else { continue };
        let until = since.0 + DELETION_TIMEOUT;
        if until < now {
            overdue.push(name.clone());
        } else {
            recheck = Some(recheck.map_or(until, |earliest: Timestamp| earliest.min(until)));
            kept.insert(name.clone(), since.clone());
        }
    }
    (kept, overdue, recheck)
}

fn healthy(pods: &[&Pod], disrupted: &BTreeMap<String, Time>, now: Timestamp) -> i32 {
    let counted = pods.iter().filter(|pod| {
        let leaving = pod.metadata.name.as_ref().and_then(|name| disrupted.get(name));
        pod.metadata.deletion_timestamp.is_none()
            && leaving.is_none_or(|since| since.0 + DELETION_TIMEOUT <= now)
            && pod::is_ready(pod)
    });
    i32::try_from(counted.count()).unwrap_or(i32::MAX)
}

fn conditions(old: &[Condition], allowed: i32, generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    let (status, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let wanted = Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    with_condition(old, wanted)
}

/// The conditions with one of them replaced; its transition time moves only with its status.
fn with_condition(old: &[Condition], mut wanted: Condition) -> Vec<Condition> {
    let mut conditions = old.to_vec();
    match conditions.iter_mut().find(|condition| condition.type_ == wanted.type_) {
        Some(present) => {
            if present.status == wanted.status {
                wanted.last_transition_time = present.last_transition_time.clone();
            }
            *present = wanted;
        }
        None => conditions.push(wanted),
    }
    conditions
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-08-01T00:10:00Z".parse().unwrap()
    }

    fn budget(spec: &serde_json::Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": {"name": "pdb", "namespace": "ns", "generation": 1}, "spec": spec,
        }))
        .unwrap()
    }

    fn pod(name: &str, ready: bool) -> Pod {
        let status = if ready { "True" } else { "False" };
        serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true},
                ],
            },
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }))
        .unwrap()
    }

    fn three(pod: &Pod) -> Option<Scale> {
        let owner = pod.metadata.owner_references.as_ref()?.first()?;
        Some(Scale { uid: owner.uid.clone(), replicas: 3 })
    }

    fn numbers(status: &PodDisruptionBudgetStatus) -> [i32; 4] {
        [status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods]
            .map(Option::unwrap_or_default)
    }

    #[test]
    fn a_budget_without_pods_allows_nothing() {
        let plan = plan(&budget(&json!({"minAvailable": 1})), &[], |_| None, now()).unwrap();
        let status = plan.status.unwrap();
        assert_eq!(numbers(&status), [0, 0, 1, 0]);
        assert_eq!(status.conditions.unwrap()[0].reason, "InsufficientPods");
        assert!(plan.no_pods);
    }

    #[test]
    fn a_percentage_is_of_what_the_controller_wants_and_rounded_up() {
        let (a, b) = (pod("a", true), pod("b", true));
        let plan = plan(&budget(&json!({"maxUnavailable": "34%"})), &[&a, &b], three, now()).unwrap();
        assert_eq!(numbers(&plan.status.unwrap()), [1, 2, 1, 3]);
    }

    #[test]
    fn a_status_that_is_right_is_not_written_again() {
        let mut held = budget(&json!({"minAvailable": 1}));
        let pods = [pod("a", true), pod("b", true)];
        let pods: Vec<&Pod> = pods.iter().collect();
        held.status = plan(&held, &pods, three, now()).unwrap().status;
        let later = now() + SignedDuration::from_secs(60);
        assert_eq!(plan(&held, &pods, three, later).unwrap().status, None);
    }

    #[test]
    fn an_evicted_pod_does_not_count_until_its_note_runs_out() {
        let mut held = budget(&json!({"minAvailable": 1}));
        let evicted: Time = Time(now() - SignedDuration::from_secs(30));
        held.status = Some(PodDisruptionBudgetStatus {
            disrupted_pods: Some(BTreeMap::from([
                ("a".to_owned(), evicted.clone()),
                ("gone".to_owned(), evicted),
            ])),
            ..Default::default()
        });
        let pods = [pod("a", true), pod("b", true)];
        let pods: Vec<&Pod> = pods.iter().collect();
        let first = plan(&held, &pods, three, now()).unwrap();
        let status = first.status.unwrap();
        assert_eq!(numbers(&status), [0, 1, 1, 2]);
        assert_eq!(status.disrupted_pods.unwrap().keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(first.recheck, Some(now() + SignedDuration::from_secs(90)));

        let late = plan(&held, &pods, three, now() + SignedDuration::from_secs(91)).unwrap();
        assert_eq!(numbers(&late.status.unwrap()), [1, 2, 1, 2]);
        assert_eq!(late.not_deleted, ["a"]);
    }

    #[test]
    fn a_pod_that_nobody_controls_is_named_and_one_whose_controller_is_gone_is_an_error() {
        let mut alone = pod("alone", true);
        alone.metadata.owner_references = None;
        let budget = budget(&json!({"minAvailable": "50%"}));
        assert_eq!(plan(&budget, &[&alone], three, now()).unwrap().unmanaged, ["alone"]);
        let error = plan(&budget, &[&pod("a", true)], |_| None, now()).unwrap_err();
        assert_eq!(error.to_string(), "found no controllers for pod \"a\"");
    }

    #[test]
    fn a_budget_that_fails_allows_nothing_and_says_why() {
        let status = fail_safe(&budget(&json!({"minAvailable": "x"})), "no", now());
        let condition = &status.conditions.unwrap()[0];
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("SyncFailed", "no"));
        assert_eq!(status.disruptions_allowed, Some(0));
    }
}
