//! What a cluster holds before anybody has asked for anything.

use kubewright_core::ObjectKey;
use serde_json::{Value, json};

use crate::{
    authz::bootstrap,
    registry::{Registry, builtin, json::Json},
    storage::Expect,
};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Puts the first objects in place. What is there already stays.
pub(crate) fn fill(registry: &Registry) {
    for name in NAMESPACES {
        put(
            registry,
            ("", "v1", "namespaces"),
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            }),
        );
    }
    let rbac = "rbac.authorization.k8s.io";
    for (plural, object) in bootstrap::objects() {
        put(registry, (rbac, "v1", plural), object);
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
        put(
            registry,
            ("scheduling.k8s.io", "v1", "priorityclasses"),
            json!({
                "metadata": {"name": name, "generation": 1}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        );
    }
    registry.allocator.restore(registry);
    let address = registry.allocator.reserve_first();
    put(
        registry,
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
    api_services(registry);
    registry.restore_definitions();
}

/// Takes up what is stored where another server has left it.
pub(crate) fn resume(registry: &Registry) {
    registry.allocator.restore(registry);
    registry.restore_definitions();
}

/// Built-in groups are announced as local `APIService`s.
fn api_services(registry: &Registry) {
    let now = registry.now();
    for rank in builtin::GROUPS.iter().filter(|r| r.group != "apiregistration.k8s.io") {
        for (version, priority) in rank.versions {
            let mut spec = json!({
                "version": version, "groupPriorityMinimum": rank.priority, "versionPriority": priority,
            });
            if !rank.group.is_empty() {
                spec["group"] = rank.group.into();
            }
            put(
                registry,
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

/// Stores an object of the server's own, unless there is one of that name.
pub(crate) fn put(registry: &Registry, (group, version, plural): (&str, &str, &str), object: Value) {
    let (Some(ty), Value::Object(mut object)) = (registry.resolve(group, version, plural), object) else {
        return;
    };
    let metadata: &mut Json = crate::registry::json::meta_mut(&mut object);
    metadata.insert("uid".into(), registry.random.uid().into());
    metadata.insert("creationTimestamp".into(), registry.now().into());
    let key = {
        let metadata = crate::registry::json::meta(&object);
        let text = |key: &str| crate::registry::json::text(metadata, key);
        ObjectKey::new(Some(text("namespace")), text("name"))
    };
    registry.semantics.canonicalise(&ty, &mut object);
    // Whatever is there already was put there by an earlier start and belongs to the users.
    let _ = registry.storage.put(&ty.storage, &key, Expect::Absent, ty.draft(&object));
}
