//! What the failure of a pod means to its job.

use k8s_openapi::api::{
    batch::v1::{PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule},
    core::v1::{ContainerStatus, Pod, PodCondition},
};

/// The verdict on a failed pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts towards the limit.
    Counts,
    /// It is as if it had not happened.
    Ignored,
    /// The index of the pod has failed.
    FailsIndex,
    /// The job has failed, and this is what it says.
    FailsJob(String),
}

impl Verdict {
    /// Whether the failure counts towards the limit.
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignored
    }

    /// Why the job has failed, if it has.
    pub(super) fn fails_job(self) -> Option<String> {
        match self {
            Self::FailsJob(message) => Some(message),
            _ => None,
        }
    }
}

/// The first rule that matches decides; without one the failure counts.
pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    for (place, rule) in rules.iter().enumerate() {
        let Some(matched) = matches(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignored,
            "FailIndex" => Verdict::FailsIndex,
            "FailJob" => Verdict::FailsJob(format!("{matched} matching FailJob rule at index {place}")),
            _ => Verdict::Counts,
        };
    }
    Verdict::Counts
}

/// What it is about the pod that matches the rule, as a beginning of a sentence.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let meta = &pod.metadata;
    let (space, name) =
        (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    if let Some(wanted) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().flatten();
        let mut all = containers.chain(status.init_container_statuses.iter().flatten());
        return all.find_map(|container| {
            let code = exit_code(container)?;
            exits(wanted, container, code).then(|| {
                format!("Container {} for pod {space}/{name} failed with exit code {code}", container.name)
            })
        });
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let fits = |condition: &&PodCondition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_
                && pattern.status.as_deref().unwrap_or("True") == condition.status
        })
    };
    let found = status.conditions.iter().flatten().find(fits)?;
    Some(format!("Pod {space}/{name} has condition {}", found.type_))
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    let terminated = container.state.as_ref()?.terminated.as_ref()?;
    Some(terminated.exit_code).filter(|code| *code != 0)
}

fn exits(wanted: &PodFailurePolicyOnExitCodesRequirement, container: &ContainerStatus, code: i32) -> bool {
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
    named
        && match wanted.operator.as_str() {
            "In" => wanted.values.contains(&code),
            "NotIn" => !wanted.values.contains(&code),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(code: i32, condition: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "d"}, "status": {"phase": "Failed",
            "conditions": [{"type": condition, "status": "True"}],
            "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                                   "state": {"terminated": {"exitCode": code}}}]}}))
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy: PodFailurePolicy = serde_json::from_value(json!({"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1, 2]}},
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}},
        ]}))
        .unwrap();
        let verdict = |code, condition| judge(Some(&policy), &failed(code, condition));
        assert_eq!(verdict(42, "DisruptionTarget"), Verdict::Ignored);
        assert_eq!(
            verdict(42, "Ready").fails_job().as_deref(),
            Some("Container c for pod d/p failed with exit code 42 matching FailJob rule at index 1")
        );
        assert_eq!(verdict(7, "Ready"), Verdict::FailsIndex);
        assert_eq!(verdict(1, "Ready"), Verdict::Counts);
        assert_eq!(verdict(0, "Ready"), Verdict::Counts, "no exit code, no rule about it");
        assert_eq!(judge(None, &failed(42, "Ready")), Verdict::Counts);
    }
}
