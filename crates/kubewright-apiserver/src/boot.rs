//! Objects that every cluster starts with.

use serde_json::json;

use crate::{
    authz::bootstrap,
    registry::{Registry, builtin},
};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Stores the initial objects. Objects that exist already are left as they are.
pub(crate) fn store_initial_objects(registry: &Registry) {
    for name in NAMESPACES {
        registry.put_if_absent(
            ("", "v1", "namespaces"),
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            }),
        );
    }
    let rbac = "rbac.authorization.k8s.io";
    for (plural, object) in bootstrap::objects() {
        registry.put_if_absent((rbac, "v1", plural), object);
    }
    for (name, value, description) in [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ] {
        registry.put_if_absent(
            ("scheduling.k8s.io", "v1", "priorityclasses"),
            json!({
                "metadata": {"name": name, "generation": 1}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        );
    }
    let address = registry.reserve_first_address();
    registry.put_if_absent(
        ("", "v1", "services"),
        json!({
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": address, "clusterIPs": [address], "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
                "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
            "status": {"loadBalancer": {}},
        }),
    );
    register_api_services(registry);
    registry.restore();
}

/// Registers the built-in groups as local `APIService`s.
fn register_api_services(registry: &Registry) {
    let now = registry.now();
    for rank in builtin::GROUPS.iter().filter(|r| r.group != "apiregistration.k8s.io") {
        for (version, priority) in rank.versions {
            let mut spec = json!({
                "version": version, "groupPriorityMinimum": rank.priority, "versionPriority": priority,
            });
            if !rank.group.is_empty() {
                spec["group"] = rank.group.into();
            }
            registry.put_if_absent(
                ("apiregistration.k8s.io", "v1", "apiservices"),
                json!({
                    "metadata": {
                        "name": format!("{version}.{}", rank.group),
                        "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
                    },
                    "spec": spec,
                    "status": {"conditions": [{
                        "type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
                        "message": "Local APIServices are always available",
                    }]},
                }),
            );
        }
    }
}
