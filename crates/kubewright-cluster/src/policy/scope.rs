//! The scopes of a quota: which pods and claims it is about.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, PodAffinityTerm, ResourceQuota, ScopedResourceSelectorRequirement,
};

/// The scopes of a quota as requirements: the short list means "in this scope".
pub fn of(quota: &ResourceQuota) -> Vec<ScopedResourceSelectorRequirement> {
    let Some(spec) = &quota.spec else { return Vec::new() };
    let short = spec.scopes.iter().flatten().map(|scope| ScopedResourceSelectorRequirement {
        operator: "Exists".to_owned(),
        scope_name: scope.clone(),
        values: None,
    });
    let selected = spec.scope_selector.iter().filter_map(|selector| selector.match_expressions.as_ref());
    short.chain(selected.flatten().cloned()).collect()
}

/// Whether all scopes cover a pod.
pub fn covers_pod(scopes: &[ScopedResourceSelectorRequirement], pod: &Pod) -> bool {
    scopes.iter().all(|scope| {
        let inside = match scope.scope_name.as_str() {
            "Terminating" => deadline(pod),
            "NotTerminating" => !deadline(pod),
            "BestEffort" => best_effort(pod),
            "NotBestEffort" => !best_effort(pod),
            "CrossNamespacePodAffinity" => crosses_namespaces(pod),
            "PriorityClass" => {
                let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref());
                return matches(scope, class);
            }
            _ => false,
        };
        inside == (scope.operator != "DoesNotExist")
    })
}

/// Whether all scopes cover a claim.
pub fn covers_claim(scopes: &[ScopedResourceSelectorRequirement], claim: &PersistentVolumeClaim) -> bool {
    scopes.iter().all(|scope| {
        let class = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
        scope.scope_name == "VolumeAttributesClass" && matches(scope, class)
    })
}

fn matches(scope: &ScopedResourceSelectorRequirement, value: Option<&str>) -> bool {
    let value = value.filter(|value| !value.is_empty());
    let listed = || {
        let values = scope.values.as_deref().unwrap_or_default();
        value.is_some_and(|value| values.iter().any(|listed| listed == value))
    };
    match scope.operator.as_str() {
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "In" => listed(),
        "NotIn" => !listed(),
        _ => false,
    }
}

fn deadline(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.active_deadline_seconds.is_some())
}

/// Whether no container asks for processor or memory.
fn best_effort(pod: &Pod) -> bool {
    if let Some(class) = pod.status.as_ref().and_then(|status| status.qos_class.as_deref()) {
        return class == "BestEffort";
    }
    let Some(spec) = &pod.spec else { return true };
    let own = spec.resources.iter();
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    !own.chain(containers.filter_map(|container| container.resources.as_ref())).any(|resources| {
        let lists = resources.requests.iter().chain(resources.limits.iter());
        lists.flat_map(|list| list.keys()).any(|name| name == "cpu" || name == "memory")
    })
}

/// Whether a pod's affinity looks into other namespaces.
fn crosses_namespaces(pod: &Pod) -> bool {
    let Some(affinity) = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()) else { return false };
    let crosses = |term: &PodAffinityTerm| {
        term.namespaces.as_ref().is_some_and(|names| !names.is_empty()) || term.namespace_selector.is_some()
    };
    let near = affinity.pod_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let far = affinity.pod_anti_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    near.into_iter().chain(far).any(|(required, preferred)| {
        required.iter().flatten().any(crosses)
            || preferred.iter().flatten().any(|weighted| crosses(&weighted.pod_affinity_term))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn covers(spec: &Value, pod: &Value) -> bool {
        let quota: ResourceQuota = serde_json::from_value(json!({"spec": spec})).unwrap();
        let pod: Pod = serde_json::from_value(json!({"spec": pod})).unwrap();
        covers_pod(&of(&quota), &pod)
    }

    #[test]
    fn every_scope_must_cover_the_pod() {
        let both = json!({"scopes": ["BestEffort", "NotTerminating"]});
        assert!(covers(&both, &json!({"containers": []})));
        assert!(!covers(&both, &json!({"containers": [], "activeDeadlineSeconds": 1})));
        let asks = json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]});
        assert!(!covers(&both, &asks));
        assert!(covers(&json!({"scopes": ["NotBestEffort"]}), &asks));
    }

    #[test]
    fn priority_classes_are_selected_by_value() {
        let selector = |operator: &str, values: Value| {
            let expression = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            json!({"scopeSelector": {"matchExpressions": [expression]}})
        };
        let high = json!({"containers": [], "priorityClassName": "high"});
        let none = json!({"containers": []});
        for (spec, of_high, of_none) in [
            (selector("In", json!(["high"])), true, false),
            (selector("NotIn", json!(["high"])), false, true),
            (selector("Exists", json!(null)), true, false),
            (selector("DoesNotExist", json!(null)), false, true),
        ] {
            assert_eq!((covers(&spec, &high), covers(&spec, &none)), (of_high, of_none), "{spec}");
        }
    }
}
