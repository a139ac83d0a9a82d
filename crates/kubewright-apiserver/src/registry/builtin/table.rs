//! Rows of the built-in types.

use super::{ALL, CREATE, Generation, GroupVersion, READ_WRITE, ROW, Row};

const STATUS: (&str, &str, &[&str]) = ("status", "", READ_WRITE);
const SCALE: (&str, &str, &[&str]) = ("scale", "", READ_WRITE);
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const CONNECT: &[&str] = &["create", "get"];

const fn row(plural: &'static str, singular: &'static str, kind: &'static str) -> Row {
    Row { plural, singular, kind, ..ROW }
}

const EVENT_FIELDS: &[(&str, &[&str], &str)] = &[
    ("involvedObject.kind", &["involvedObject.kind"], ""),
    ("involvedObject.namespace", &["involvedObject.namespace"], ""),
    ("involvedObject.name", &["involvedObject.name"], ""),
    ("involvedObject.uid", &["involvedObject.uid"], ""),
    ("involvedObject.apiVersion", &["involvedObject.apiVersion"], ""),
    ("involvedObject.resourceVersion", &["involvedObject.resourceVersion"], ""),
    ("involvedObject.fieldPath", &["involvedObject.fieldPath"], ""),
    ("reason", &["reason"], ""),
    ("reportingComponent", &["reportingComponent"], ""),
    ("source", &["source.component", "reportingComponent"], ""),
    ("type", &["type"], ""),
];

/// Selectable fields of `events.k8s.io`, in the order of the core ones: the two share stored values.
const NEW_EVENT_FIELDS: &[(&str, &[&str], &str)] = &[
    ("regarding.kind", &["involvedObject.kind"], ""),
    ("regarding.namespace", &["involvedObject.namespace"], ""),
    ("regarding.name", &["involvedObject.name"], ""),
    ("regarding.uid", &["involvedObject.uid"], ""),
    ("regarding.apiVersion", &["involvedObject.apiVersion"], ""),
    ("regarding.resourceVersion", &["involvedObject.resourceVersion"], ""),
    ("regarding.fieldPath", &["involvedObject.fieldPath"], ""),
    ("reason", &["reason"], ""),
    ("reportingController", &["reportingComponent"], ""),
    ("source", &["source.component", "reportingComponent"], ""),
    ("type", &["type"], ""),
];

const CORE: &[Row] = &[
    Row { verbs: CREATE, ..row("bindings", "binding", "Binding") },
    Row {
        short: &["cs"],
        cluster: true,
        verbs: &["get", "list"],
        ..row("componentstatuses", "componentstatus", "ComponentStatus")
    },
    Row { short: &["cm"], ..row("configmaps", "configmap", "ConfigMap") },
    Row { short: &["ep"], create_on_put: true, ..row("endpoints", "endpoints", "Endpoints") },
    Row { short: &["ev"], create_on_put: true, fields: EVENT_FIELDS, ..row("events", "event", "Event") },
    Row { short: &["limits"], create_on_put: true, ..row("limitranges", "limitrange", "LimitRange") },
    Row {
        short: &["ns"],
        cluster: true,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        sub: &[("finalize", "", &["update"]), STATUS],
        fields: &[("status.phase", &["status.phase"], "")],
        ..row("namespaces", "namespace", "Namespace")
    },
    Row {
        short: &["no"],
        cluster: true,
        sub: &[("proxy", "NodeProxyOptions", PROXY), STATUS],
        fields: &[("spec.unschedulable", &["spec.unschedulable"], "false")],
        ..row("nodes", "node", "Node")
    },
    Row {
        short: &["pvc"],
        sub: &[STATUS],
        delete_answers_object: true,
        ..row("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim")
    },
    Row {
        short: &["pv"],
        cluster: true,
        sub: &[STATUS],
        delete_answers_object: true,
        ..row("persistentvolumes", "persistentvolume", "PersistentVolume")
    },
    Row {
        short: &["po"],
        categories: &["all"],
        sub: &[
            ("attach", "PodAttachOptions", CONNECT),
            ("binding", "Binding", CREATE),
            ("ephemeralcontainers", "", READ_WRITE),
            ("eviction", "", CREATE),
            ("exec", "PodExecOptions", CONNECT),
            ("log", "", &["get"]),
            ("portforward", "PodPortForwardOptions", CONNECT),
            ("proxy", "PodProxyOptions", PROXY),
            ("resize", "", READ_WRITE),
            STATUS,
        ],
        fields: &[
            ("spec.nodeName", &["spec.nodeName"], ""),
            ("spec.restartPolicy", &["spec.restartPolicy"], ""),
            ("spec.schedulerName", &["spec.schedulerName"], ""),
            ("spec.serviceAccountName", &["spec.serviceAccountName"], ""),
            ("spec.hostNetwork", &["spec.hostNetwork"], "false"),
            ("status.phase", &["status.phase"], ""),
            ("status.podIP", &["status.podIP"], ""),
            ("status.nominatedNodeName", &["status.nominatedNodeName"], ""),
        ],
        generation: Generation::Content,
        delete_answers_object: true,
        ..row("pods", "pod", "Pod")
    },
    Row {
        generation: Generation::Content,
        delete_answers_object: true,
        ..row("podtemplates", "podtemplate", "PodTemplate")
    },
    Row {
        short: &["rc"],
        categories: &["all"],
        sub: &[SCALE, STATUS],
        fields: &[("status.replicas", &["status.replicas"], "0")],
        generation: Generation::Content,
        orphans: true,
        ..row("replicationcontrollers", "replicationcontroller", "ReplicationController")
    },
    Row {
        short: &["quota"],
        sub: &[STATUS],
        delete_answers_object: true,
        ..row("resourcequotas", "resourcequota", "ResourceQuota")
    },
    Row { fields: &[("type", &["type"], "")], ..row("secrets", "secret", "Secret") },
    Row {
        short: &["sa"],
        sub: &[("token", "", CREATE)],
        delete_answers_object: true,
        ..row("serviceaccounts", "serviceaccount", "ServiceAccount")
    },
    Row {
        short: &["svc"],
        categories: &["all"],
        sub: &[("proxy", "ServiceProxyOptions", PROXY), STATUS],
        fields: &[("spec.clusterIP", &["spec.clusterIP"], ""), ("spec.type", &["spec.type"], "")],
        create_on_put: true,
        delete_answers_object: true,
        ..row("services", "service", "Service")
    },
];

const APPS: &[Row] = &[
    row("controllerrevisions", "controllerrevision", "ControllerRevision"),
    Row {
        short: &["ds"],
        categories: &["all"],
        sub: &[STATUS],
        generation: Generation::Content,
        ..row("daemonsets", "daemonset", "DaemonSet")
    },
    Row {
        short: &["deploy"],
        categories: &["all"],
        sub: &[SCALE, STATUS],
        generation: Generation::ContentAndAnnotations,
        ..row("deployments", "deployment", "Deployment")
    },
    Row {
        short: &["rs"],
        categories: &["all"],
        sub: &[SCALE, STATUS],
        generation: Generation::Content,
        ..row("replicasets", "replicaset", "ReplicaSet")
    },
    Row {
        short: &["sts"],
        categories: &["all"],
        sub: &[SCALE, STATUS],
        generation: Generation::Content,
        ..row("statefulsets", "statefulset", "StatefulSet")
    },
];

const HPA: Row = Row {
    short: &["hpa"],
    categories: &["all"],
    sub: &[STATUS],
    generation: Generation::Content,
    ..row("horizontalpodautoscalers", "horizontalpodautoscaler", "HorizontalPodAutoscaler")
};

const NETWORKING: &[Row] = &[
    Row {
        cluster: true,
        generation: Generation::Content,
        ..row("ingressclasses", "ingressclass", "IngressClass")
    },
    Row {
        short: &["ing"],
        sub: &[STATUS],
        generation: Generation::Content,
        ..row("ingresses", "ingress", "Ingress")
    },
    Row { short: &["ip"], cluster: true, ..row("ipaddresses", "ipaddress", "IPAddress") },
    Row {
        short: &["netpol"],
        generation: Generation::Content,
        ..row("networkpolicies", "networkpolicy", "NetworkPolicy")
    },
    Row { cluster: true, sub: &[STATUS], ..row("servicecidrs", "servicecidr", "ServiceCIDR") },
];

const RBAC: &[Row] = &[
    Row {
        cluster: true,
        create_on_put: true,
        ..row("clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding")
    },
    Row { cluster: true, create_on_put: true, ..row("clusterroles", "clusterrole", "ClusterRole") },
    Row { create_on_put: true, ..row("rolebindings", "rolebinding", "RoleBinding") },
    Row { create_on_put: true, ..row("roles", "role", "Role") },
];

const STORAGE: &[Row] = &[
    Row {
        cluster: true,
        unconditional: false,
        delete_answers_object: true,
        ..row("csidrivers", "csidriver", "CSIDriver")
    },
    Row {
        cluster: true,
        unconditional: false,
        delete_answers_object: true,
        sub: &[STATUS],
        ..row("csinodes", "csinode", "CSINode")
    },
    Row {
        unconditional: false,
        delete_answers_object: true,
        ..row("csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity")
    },
    Row {
        short: &["sc"],
        cluster: true,
        delete_answers_object: true,
        ..row("storageclasses", "storageclass", "StorageClass")
    },
    Row {
        cluster: true,
        unconditional: false,
        delete_answers_object: true,
        sub: &[STATUS],
        ..row("volumeattachments", "volumeattachment", "VolumeAttachment")
    },
    Row {
        short: &["vac"],
        cluster: true,
        delete_answers_object: true,
        ..row("volumeattributesclasses", "volumeattributesclass", "VolumeAttributesClass")
    },
];

const fn policy(plural: &'static str, singular: &'static str, kind: &'static str) -> Row {
    Row {
        categories: &["api-extensions"],
        cluster: true,
        unconditional: false,
        generation: Generation::Content,
        ..row(plural, singular, kind)
    }
}

const ADMISSION: &[Row] = &[
    policy("mutatingadmissionpolicies", "mutatingadmissionpolicy", "MutatingAdmissionPolicy"),
    policy(
        "mutatingadmissionpolicybindings",
        "mutatingadmissionpolicybinding",
        "MutatingAdmissionPolicyBinding",
    ),
    policy("mutatingwebhookconfigurations", "mutatingwebhookconfiguration", "MutatingWebhookConfiguration"),
    Row {
        sub: &[STATUS],
        ..policy("validatingadmissionpolicies", "validatingadmissionpolicy", "ValidatingAdmissionPolicy")
    },
    policy(
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicybinding",
        "ValidatingAdmissionPolicyBinding",
    ),
    policy(
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "ValidatingWebhookConfiguration",
    ),
];

const AUTHENTICATION: &[Row] = &[
    Row {
        cluster: true,
        verbs: CREATE,
        ..row("selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview")
    },
    Row { cluster: true, verbs: CREATE, ..row("tokenreviews", "tokenreview", "TokenReview") },
];

const AUTHORIZATION: &[Row] = &[
    Row {
        verbs: CREATE,
        ..row("localsubjectaccessreviews", "localsubjectaccessreview", "LocalSubjectAccessReview")
    },
    Row {
        cluster: true,
        verbs: CREATE,
        ..row("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview")
    },
    Row {
        cluster: true,
        verbs: CREATE,
        ..row("selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview")
    },
    Row {
        cluster: true,
        verbs: CREATE,
        ..row("subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview")
    },
];

/// All group versions with their types, sorted by plural as in discovery.
pub(super) const TABLE: &[GroupVersion] = &[
    GroupVersion { group: "", version: "v1", rows: CORE },
    GroupVersion {
        group: "apiregistration.k8s.io",
        version: "v1",
        rows: &[Row {
            categories: &["api-extensions"],
            cluster: true,
            unconditional: false,
            sub: &[STATUS],
            ..row("apiservices", "apiservice", "APIService")
        }],
    },
    GroupVersion { group: "apps", version: "v1", rows: APPS },
    GroupVersion {
        group: "events.k8s.io",
        version: "v1",
        rows: &[Row {
            short: &["ev"],
            create_on_put: true,
            fields: NEW_EVENT_FIELDS,
            verbs: ALL,
            ..row("events", "event", "Event")
        }],
    },
    GroupVersion { group: "authentication.k8s.io", version: "v1", rows: AUTHENTICATION },
    GroupVersion { group: "authorization.k8s.io", version: "v1", rows: AUTHORIZATION },
    GroupVersion { group: "autoscaling", version: "v2", rows: &[HPA] },
    GroupVersion { group: "autoscaling", version: "v1", rows: &[HPA] },
    GroupVersion {
        group: "batch",
        version: "v1",
        rows: &[
            Row {
                short: &["cj"],
                categories: &["all"],
                sub: &[STATUS],
                generation: Generation::Content,
                ..row("cronjobs", "cronjob", "CronJob")
            },
            Row {
                categories: &["all"],
                sub: &[STATUS],
                fields: &[("status.successful", &["status.succeeded"], "0")],
                generation: Generation::Content,
                orphans: true,
                ..row("jobs", "job", "Job")
            },
        ],
    },
    GroupVersion {
        group: "certificates.k8s.io",
        version: "v1",
        rows: &[Row {
            short: &["csr"],
            cluster: true,
            sub: &[("approval", "", READ_WRITE), STATUS],
            fields: &[("spec.signerName", &["spec.signerName"], "")],
            ..row("certificatesigningrequests", "certificatesigningrequest", "CertificateSigningRequest")
        }],
    },
    GroupVersion { group: "networking.k8s.io", version: "v1", rows: NETWORKING },
    GroupVersion {
        group: "policy",
        version: "v1",
        rows: &[Row {
            short: &["pdb"],
            sub: &[STATUS],
            generation: Generation::Content,
            unconditional: false,
            ..row("poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget")
        }],
    },
    GroupVersion { group: "rbac.authorization.k8s.io", version: "v1", rows: RBAC },
    GroupVersion { group: "storage.k8s.io", version: "v1", rows: STORAGE },
    GroupVersion { group: "admissionregistration.k8s.io", version: "v1", rows: ADMISSION },
    GroupVersion {
        group: "apiextensions.k8s.io",
        version: "v1",
        rows: &[Row {
            short: &["crd", "crds"],
            categories: &["api-extensions"],
            cluster: true,
            unconditional: false,
            sub: &[STATUS],
            generation: Generation::Content,
            ..row("customresourcedefinitions", "customresourcedefinition", "CustomResourceDefinition")
        }],
    },
    GroupVersion {
        group: "scheduling.k8s.io",
        version: "v1",
        rows: &[Row {
            short: &["pc"],
            cluster: true,
            generation: Generation::Content,
            ..row("priorityclasses", "priorityclass", "PriorityClass")
        }],
    },
    GroupVersion {
        group: "coordination.k8s.io",
        version: "v1",
        rows: &[Row { create_on_put: true, unconditional: false, ..row("leases", "lease", "Lease") }],
    },
    GroupVersion {
        group: "node.k8s.io",
        version: "v1",
        rows: &[Row {
            cluster: true,
            unconditional: false,
            ..row("runtimeclasses", "runtimeclass", "RuntimeClass")
        }],
    },
    GroupVersion {
        group: "discovery.k8s.io",
        version: "v1",
        rows: &[Row {
            generation: Generation::ContentAndMetadata,
            ..row("endpointslices", "endpointslice", "EndpointSlice")
        }],
    },
];
