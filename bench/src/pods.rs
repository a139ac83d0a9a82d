//! Pods as a busy cluster has them: about 9.5 KB of JSON each, 44 % of it `managedFields`.
//!
//! Pod number `i` is always the same pod. Two hundred applications in fifty namespaces on three hundred nodes.

use serde_json::{Map, Value, json};

/// A well-mixed number for pod `i`, so that identities look like identities.
fn mixed(i: usize, salt: u64) -> u64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

fn uid(i: usize, salt: u64) -> String {
    let (a, b) = (mixed(i, salt), mixed(i, salt + 50));
    format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, b >> 52, b >> 16)
}

fn digest(i: usize, salt: u64) -> String {
    let part = |part| mixed(i, salt + part);
    format!("{:016x}{:016x}{:016x}{:016x}", part(0), part(1), part(2), part(3))
}

/// The text of pod `i` as the API server sends it.
pub fn pod(i: usize) -> String {
    let (app, namespace, node) = (i % 200, i % 50, i % 300);
    let template = format!("{:010x}", mixed(app, 1) >> 24);
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
    let container = |container: &str| {
        json!({
            "name": container, "image": image(container), "imagePullPolicy": "IfNotPresent",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                {"name": "LOG_LEVEL", "value": "info"},
                {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": format!("service-{app}-db"), "key": "url"}}},
            ],
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [
                {"name": "config", "readOnly": true, "mountPath": "/etc/service"},
                {"name": format!("kube-api-access-{suffix}"), "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
            ],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        })
    };
    let spec = json!({
        "containers": [container("app"), container("sidecar")],
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
    let running = |container: &str, salt| {
        json!({"name": container, "state": {"running": {"startedAt": time(3)}}, "lastState": {}, "ready": true, "restartCount": 0,
            "image": image(container), "imageID": format!("registry.example.com/platform/{container}@sha256:{}", digest(app, 7)),
            "containerID": format!("containerd://{}", digest(i, salt)), "started": true})
    };
    let status = json!({
        "phase": "Running", "qosClass": "Burstable", "startTime": time(0),
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": conditions,
        "containerStatuses": [running("app", 20), running("sidecar", 30)],
    });
    let labels = json!({"app.kubernetes.io/name": format!("service-{app}"), "app.kubernetes.io/part-of": format!("shop-{namespace}"),
        "pod-template-hash": template, "tier": "backend"});
    let managed = |manager: &str, fields: Value, subresource: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time(5), "fieldsType": "FieldsV1",
            "fieldsV1": fields, "subresource": subresource})
    };
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "generateName": format!("service-{app}-{template}-"), "namespace": format!("team-{namespace}"),
            "uid": uid(i, 3), "resourceVersion": (1_000_000 + i).to_string(), "generation": 1, "creationTimestamp": time(0),
            "labels": labels, "annotations": {"prometheus.io/port": "8080", "prometheus.io/scrape": "true", "checksum/config": digest(app, 9)},
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
    fn pods_have_the_size_that_the_numbers_speak_of() {
        let text = pod(12_345);
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value["metadata"].as_object_mut().unwrap().remove("managedFields");
        let share = 100 - value.to_string().len() * 100 / text.len();
        assert!((9300..9700).contains(&text.len()), "{} bytes", text.len());
        assert!((42..47).contains(&share), "{share} % managedFields");
    }
}
