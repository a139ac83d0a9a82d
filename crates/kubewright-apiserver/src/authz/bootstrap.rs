//! The roles and bindings that a cluster starts with.
//!
//! One line per rule: verbs, groups, resources (or `paths` for non-resource URLs), separated by blanks; `-` is the core
//! group. On a stock cluster a controller aggregates `admin`, `edit` and `view`; here they are written out, so that
//! they work without it.

use serde_json::{Value, json};

const R: &str = "get,list,watch";
const W: &str = "create,delete,deletecollection,patch,update";

/// Name, aggregation target (for `system:aggregate-to-…`), rules.
const CLUSTER_ROLES: &[(&str, &str, &[&str])] = &[
    ("cluster-admin", "", &["* * *", "* paths *"]),
    (
        "system:discovery",
        "",
        &[
            "get paths /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/",
        ],
    ),
    ("system:public-info-viewer", "", &["get paths /healthz,/livez,/readyz,/version,/version/"]),
    (
        "system:basic-user",
        "",
        &[
            "create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews",
            "create authentication.k8s.io selfsubjectreviews",
        ],
    ),
    (
        "system:monitoring",
        "",
        &["get paths /metrics,/metrics/slis,/livez,/readyz,/healthz,/livez/*,/readyz/*,/healthz/*"],
    ),
    (
        "system:auth-delegator",
        "",
        &["create authentication.k8s.io tokenreviews", "create authorization.k8s.io subjectaccessreviews"],
    ),
    (
        "system:service-account-issuer-discovery",
        "",
        &[
            "get paths /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/",
        ],
    ),
    ("system:kube-aggregator", "", &["get,list,watch - endpoints,services"]),
    (
        "system:kubelet-api-admin",
        "",
        &["get,list,watch - nodes", "proxy - nodes", "* - nodes/log,nodes/metrics,nodes/proxy,nodes/stats"],
    ),
    (
        "system:node-bootstrapper",
        "",
        &["create,get,list,watch certificates.k8s.io certificatesigningrequests"],
    ),
    (
        "system:node-problem-detector",
        "",
        &["get - nodes", "patch - nodes/status", "create,patch,update -,events.k8s.io events"],
    ),
    (
        "system:node-proxier",
        "",
        &[
            "list,watch - services,endpoints",
            "get,list,watch - nodes",
            "create,patch,update -,events.k8s.io events",
            "list,watch discovery.k8s.io endpointslices",
        ],
    ),
    (
        "system:node",
        "",
        &[
            "create authentication.k8s.io tokenreviews",
            "create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews",
            "get,list,watch - services",
            "create,get,list,watch - nodes",
            "patch,update - nodes/status",
            "patch,update - nodes",
            "get,list,watch - pods",
            "create,delete - pods",
            "patch,update - pods/status",
            "create - pods/eviction",
            "get,list,watch - configmaps,secrets",
            "get - persistentvolumeclaims,persistentvolumes",
            "get - endpoints",
            "create,get,list,watch certificates.k8s.io certificatesigningrequests",
            "create,delete,get,patch,update coordination.k8s.io leases",
            "get storage.k8s.io volumeattachments",
            "create - serviceaccounts/token",
            "get,patch,update - persistentvolumeclaims/status",
            "get,list,watch storage.k8s.io csidrivers",
            "create,delete,get,patch,update storage.k8s.io csinodes",
            "get,list,watch node.k8s.io runtimeclasses",
            "create,patch,update -,events.k8s.io events",
        ],
    ),
    (
        "system:kube-scheduler",
        "",
        &[
            "create,patch,update -,events.k8s.io events",
            "create coordination.k8s.io leases",
            "get,list,update,watch coordination.k8s.io leases",
            "get,list,watch - nodes",
            "delete,get,list,watch - pods",
            "create - bindings,pods/binding",
            "patch,update - pods/status",
            "get,list,watch - replicationcontrollers,services",
            "get,list,watch apps replicasets,statefulsets",
            "get,list,watch policy poddisruptionbudgets",
            "get,list,watch,update - persistentvolumeclaims,persistentvolumes",
            "create authentication.k8s.io tokenreviews",
            "create authorization.k8s.io subjectaccessreviews",
            "get,list,watch storage.k8s.io csinodes,csidrivers,csistoragecapacities",
            "get,list,watch - namespaces",
        ],
    ),
    (
        "system:kube-controller-manager",
        "",
        &[
            "create,patch,update -,events.k8s.io events",
            "create coordination.k8s.io leases",
            "get,update coordination.k8s.io leases",
            "create - secrets,serviceaccounts",
            "delete - secrets",
            "get - configmaps,namespaces,secrets,serviceaccounts",
            "update - secrets,serviceaccounts",
            "create authentication.k8s.io tokenreviews",
            "create authorization.k8s.io subjectaccessreviews",
            "list,watch * *",
            "create - serviceaccounts/token",
        ],
    ),
    ("system:kube-dns", "", &["list,watch - endpoints,services"]),
    (
        "system:persistent-volume-provisioner",
        "",
        &[
            "create,delete,get,list,watch - persistentvolumes",
            "get,list,update,watch - persistentvolumeclaims",
            "get,list,watch storage.k8s.io storageclasses",
            "watch - events",
            "create,patch,update -,events.k8s.io events",
        ],
    ),
    (
        "system:volume-scheduler",
        "",
        &[
            "get,list,patch,update,watch - persistentvolumes",
            "get,list,watch storage.k8s.io storageclasses",
            "get,list,patch,update,watch - persistentvolumeclaims",
        ],
    ),
    ("system:aggregate-to-view", "view", VIEW),
    ("system:aggregate-to-edit", "edit", EDIT),
    ("system:aggregate-to-admin", "admin", ADMIN),
];

const VIEW: &[&str] = &[
    "R - configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status",
    "R - bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status",
    "R - namespaces",
    "R discovery.k8s.io endpointslices",
    "R apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status",
    "R autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status",
    "R batch cronjobs,cronjobs/status,jobs,jobs/status",
    "R policy poddisruptionbudgets,poddisruptionbudgets/status",
    "R networking.k8s.io ingresses,ingresses/status,networkpolicies",
];

const EDIT: &[&str] = &[
    "R - pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
    "impersonate - serviceaccounts",
    "W - pods,pods/attach,pods/exec,pods/portforward,pods/proxy",
    "create - pods/eviction",
    "W - configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy",
    "create,delete,deletecollection,patch,update - events",
    "create - serviceaccounts/token",
    "W apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale",
    "W autoscaling horizontalpodautoscalers",
    "W batch cronjobs,jobs",
    "W policy poddisruptionbudgets",
    "W networking.k8s.io ingresses,networkpolicies",
    "create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leases",
];

const ADMIN: &[&str] = &[
    "create authorization.k8s.io localsubjectaccessreviews",
    "create,delete,deletecollection,get,list,patch,update,watch rbac.authorization.k8s.io rolebindings,roles",
];

/// Kind and name.
type Subject = (&'static str, &'static str);

/// Name of binding, cluster role, subjects.
const CLUSTER_BINDINGS: &[(&str, &str, &[Subject])] = &[
    ("cluster-admin", "cluster-admin", &[("Group", "system:masters")]),
    ("system:monitoring", "system:monitoring", &[("Group", "system:monitoring")]),
    ("system:discovery", "system:discovery", &[("Group", "system:authenticated")]),
    ("system:basic-user", "system:basic-user", &[("Group", "system:authenticated")]),
    (
        "system:public-info-viewer",
        "system:public-info-viewer",
        &[("Group", "system:authenticated"), ("Group", "system:unauthenticated")],
    ),
    ("system:node-proxier", "system:node-proxier", &[("User", "system:kube-proxy")]),
    (
        "system:kube-controller-manager",
        "system:kube-controller-manager",
        &[("User", "system:kube-controller-manager")],
    ),
    ("system:kube-scheduler", "system:kube-scheduler", &[("User", "system:kube-scheduler")]),
    ("system:volume-scheduler", "system:volume-scheduler", &[("User", "system:kube-scheduler")]),
    ("system:node", "system:node", &[]),
    (
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        &[("Group", "system:serviceaccounts")],
    ),
];

fn rule(line: &str) -> Value {
    let mut parts = line.split(' ');
    let mut next = || parts.next().unwrap_or_default();
    let verbs = match next() {
        "R" => R,
        "W" => W,
        verbs => verbs,
    };
    let split = |text: &str| -> Vec<String> {
        text.split(',').map(|p| if p == "-" { String::new() } else { p.to_owned() }).collect()
    };
    match next() {
        "paths" => json!({"verbs": split(verbs), "nonResourceURLs": split(next())}),
        groups => json!({"verbs": split(verbs), "apiGroups": split(groups), "resources": split(next())}),
    }
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    })
}

/// The cluster roles.
pub fn cluster_roles() -> Vec<Value> {
    let mut roles: Vec<Value> = CLUSTER_ROLES
        .iter()
        .map(|(name, target, rules)| {
            let mut metadata = metadata(name);
            if !target.is_empty() {
                metadata["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{target}")] =
                    "true".into();
            }
            json!({"metadata": metadata, "rules": rules.iter().map(|r| rule(r)).collect::<Vec<_>>()})
        })
        .collect();
    let aggregated: [(&str, &[&[&str]]); 3] =
        [("view", &[VIEW]), ("edit", &[VIEW, EDIT]), ("admin", &[VIEW, EDIT, ADMIN])];
    for (name, parts) in aggregated {
        let mut metadata = metadata(name);
        let above = match name {
            "view" => Some("edit"),
            "edit" => Some("admin"),
            _ => None,
        };
        if let Some(above) = above {
            metadata["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{above}")] = "true".into();
        }
        let selector = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
        roles.push(json!({
            "metadata": metadata,
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {selector: "true"}}]},
            "rules": parts.iter().flat_map(|p| p.iter()).map(|r| rule(r)).collect::<Vec<_>>(),
        }));
    }
    roles
}

/// The cluster role bindings.
pub fn cluster_role_bindings() -> Vec<Value> {
    CLUSTER_BINDINGS
        .iter()
        .map(|(name, role, subjects)| {
            let mut binding = json!({
                "metadata": metadata(name),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            });
            if !subjects.is_empty() {
                binding["subjects"] = subjects
                    .iter()
                    .map(|(kind, name)| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}))
                    .collect();
            }
            binding
        })
        .collect()
}
