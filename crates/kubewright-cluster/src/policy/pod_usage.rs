//! How much of a compute resource a pod takes: what its containers ask for when it runs, or when it starts if that is
//! more.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};

use crate::objects::milli_value;

/// What a pod takes of a resource as quotas name it (`cpu`, `requests.memory`, `limits.nvidia.com/gpu`), in
/// thousandths.
pub fn of(pod: &Pod, resource: &str) -> i128 {
    let (limits, name) = match resource.split_once('.') {
        Some(("requests", name)) => (false, name),
        Some(("limits", name)) => (true, name),
        _ => (false, resource),
    };
    let Some(spec) = &pod.spec else { return 0 };
    let amount = |resources: Option<&ResourceRequirements>| {
        let list = resources.and_then(|r| if limits { r.limits.as_ref() } else { r.requests.as_ref() });
        list.and_then(|list| list.get(name)).map(|quantity| milli_value(Some(quantity)))
    };
    let of = |container: &Container| amount(container.resources.as_ref()).unwrap_or(0);
    let mut sidecars = 0;
    let mut starting = 0;
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += of(container);
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(sidecars + of(container));
        }
    }
    let running = sidecars + spec.containers.iter().map(of).sum::<i128>();
    // Resources of the pod as a whole replace the sum of its containers.
    let whole = amount(spec.resources.as_ref()).unwrap_or_else(|| running.max(starting));
    whole + milli_value(spec.overhead.as_ref().and_then(|overhead| overhead.get(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_takes_the_larger_of_starting_and_running_and_its_overhead() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [
                {"name": "i", "resources": cpu("500m")},
                {"name": "s", "restartPolicy": "Always", "resources": cpu("100m")},
                {"name": "j", "resources": cpu("700m")},
            ],
            "containers": [{"name": "a", "resources": cpu("200m")}, {"name": "b", "resources": cpu("300m")}],
            "overhead": {"cpu": "50m"},
        }}))
        .unwrap();
        assert_eq!(of(&pod, "cpu"), 850);
        assert_eq!(of(&pod, "requests.cpu"), 850);
        assert_eq!(of(&pod, "limits.cpu"), 50);
        assert_eq!(of(&pod, "requests.memory"), 0);
    }
}
