//! Pods of a busy cluster: about 9.5 KB of JSON each, 44 % of it `managedFields`.
//!
//! Pod number `i` is always the same Pod. Two hundred applications of one template in fifty namespaces on three hundred
//! nodes; [`mixed`](crate::mixed) has two thousand that differ.

use serde_json::{Map, Value, json};

/// Hash of a number, so that generated identities look like real ones.
pub(crate) fn hash(i: usize, salt: u64) -> u64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

fn uid(i: usize, salt: u64) -> String {
    let (a, b) = (hash(i, salt), hash(i, salt + 50));
    format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, b >> 52, b >> 16)
}

/// A digest of 64 hexadecimal digits.
pub(crate) fn digest(i: usize, salt: u64) -> String {
    let part = |part| hash(i, salt + part);
    format!("{:016x}{:016x}{:016x}{:016x}", part(0), part(1), part(2), part(3))
}

/// The parts of a Pod that its application decides on.
pub(crate) struct Application {
    pub(crate) number: usize,
    pub(crate) containers: Vec<Container>,
    /// Beside those that every Pod has.
    pub(crate) annotations: Map<String, Value>,
}

pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) env: Vec<Value>,
    /// Whether it serves: with ports, a probe and limits.
    pub(crate) serves: bool,
}

/// Number of applications of [`pod`].
pub const APPLICATIONS: usize = 200;

/// Namespace and name of Pod `i` where there are so many applications.
pub fn key(i: usize, applications: usize) -> (String, String) {
    let app = i % applications;
    let template = format!("{:010x}", hash(app, 1) >> 24);
    // An odd factor makes every suffix below a million another one.
    let suffix = format!("{:05x}", i.wrapping_mul(0x9_E37B) & 0xf_ffff);
    (format!("team-{}", i % 50), format!("service-{app}-{template}-{suffix}"))
}

/// Text of Pod `i` as the API server sends it.
pub fn pod(i: usize) -> String {
    let number = i % APPLICATIONS;
    let env = [
        json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}),
        json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}),
        json!({"name": "LOG_LEVEL", "value": "info"}),
        json!({"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": format!("service-{number}-db"), "key": "url"}}}),
    ];
    let container = |name: &str| Container { name: name.to_owned(), env: env.to_vec(), serves: true };
    let containers = vec![container("app"), container("sidecar")];
    text(i, Application { number, containers, annotations: Map::new() })
}

/// Text of Pod `i` of an application.
pub(crate) fn text(i: usize, application: Application) -> String {
    let Application { number: app, containers, annotations: more } = application;
    let (namespace, node) = (i % 50, i % 300);
    let template = format!("{:010x}", hash(app, 1) >> 24);
    // An odd factor makes every suffix below a million another one.
    let suffix = format!("{:05x}", i.wrapping_mul(0x9_E37B) & 0xf_ffff);
    let name = format!("service-{app}-{template}-{suffix}");
    let time = |plus: usize| {
        format!(
            "2026-08-{:02}T{:02}:{:02}:{:02}Z",
            1 + i / 86_400,
            i / 3600 % 24,
            i / 60 % 60,
            (i + plus) % 60
        )
    };
    let (host, ip) =
        (format!("10.0.{}.{}", node / 250, node % 250), format!("10.64.{}.{}", i / 256 % 256, i % 256));
    let image =
        |container: &str| format!("registry.example.com/platform/{container}:v{}.{}", app % 7, app % 31);
    let names: Vec<String> = containers.iter().map(|container| container.name.clone()).collect();
    let container = |Container { name, env, serves }: Container| {
        let mut container = json!({
            "name": name, "image": image(&name), "imagePullPolicy": "IfNotPresent", "env": env,
            "volumeMounts": [{"name": format!("kube-api-access-{suffix}"), "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        });
        if serves {
            let config = json!({"name": "config", "readOnly": true, "mountPath": "/etc/service"});
            container["volumeMounts"].as_array_mut().expect("it is one").insert(0, config);
            container["ports"] = json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}]);
            container["resources"] = json!({"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}});
            container["livenessProbe"] = json!({"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
        }
        container
    };
    let spec = json!({
        "containers": containers.into_iter().map(container).collect::<Vec<_>>(),
        "volumes": [
            {"name": "config", "configMap": {"name": format!("service-{app}-config"), "defaultMode": 420}},
            {"name": format!("kube-api-access-{suffix}"), "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ]}},
        ],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "serviceAccountName": format!("service-{app}"), "nodeName": format!("node-{node:03}"),
        "securityContext": {"runAsNonRoot": true, "fsGroup": 2000}, "schedulerName": "default-scheduler",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
    });
    let condition = |of: &str| json!({"type": of, "status": "True", "lastProbeTime": null, "lastTransitionTime": time(3)});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    let running = |(at, container): (u64, &String)| {
        json!({"name": container, "state": {"running": {"startedAt": time(3)}}, "lastState": {}, "ready": true, "restartCount": 0,
            "image": image(container), "imageID": format!("registry.example.com/platform/{container}@sha256:{}", digest(app, 7)),
            "containerID": format!("containerd://{}", digest(i, 20 + 10 * at)), "started": true})
    };
    let status = json!({
        "phase": "Running", "qosClass": "Burstable", "startTime": time(0),
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": conditions,
        "containerStatuses": (0..).zip(&names).map(running).collect::<Vec<_>>(),
    });
    let labels = json!({"app.kubernetes.io/name": format!("service-{app}"), "app.kubernetes.io/part-of": format!("shop-{namespace}"),
        "pod-template-hash": template, "tier": "backend"});
    let mut annotations = json!({"prometheus.io/port": "8080", "prometheus.io/scrape": "true", "checksum/config": digest(app, 9)});
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.extend(more);
    }
    let managed = |manager: &str, fields: Value, subresource: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time(5), "fieldsType": "FieldsV1",
            "fieldsV1": fields, "subresource": subresource})
    };
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "generateName": format!("service-{app}-{template}-"), "namespace": format!("team-{namespace}"),
            "uid": uid(i, 3), "resourceVersion": (1_000_000 + i).to_string(), "generation": 1, "creationTimestamp": time(0),
            "labels": labels, "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("service-{app}-{template}"),
                "uid": uid(app, 4), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [
                managed("kube-controller-manager", json!({"f:metadata": {"f:labels": fields(&labels)}, "f:spec": fields(&spec)}), ""),
                managed("kubelet", json!({"f:status": fields(&status)}), "status"),
            ],
        },
        "spec": spec, "status": status,
    })
    .to_string()
}

/// The field set of a value, in the notation of `fieldsV1`.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (format!("f:{name}"), fields(value))).collect())
        }
        Value::Array(items) => {
            let keyed = |item: &Value| {
                let (key, at) = ["name", "type", "ip"].iter().find_map(|key| Some((key, item.get(key)?)))?;
                let mut inner = fields(item).as_object().cloned().unwrap_or_default();
                inner.insert(".".into(), json!({}));
                Some((format!("k:{{\"{key}\":{at}}}"), Value::Object(inner)))
            };
            Value::Object(items.iter().filter_map(keyed).collect())
        }
        _ => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_documented_size() {
        let text = pod(12_345);
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value["metadata"].as_object_mut().unwrap().remove("managedFields");
        let share = 100 - value.to_string().len() * 100 / text.len();
        assert!((9300..9700).contains(&text.len()), "{} bytes", text.len());
        assert!((42..47).contains(&share), "{share} % managedFields");
    }
}
