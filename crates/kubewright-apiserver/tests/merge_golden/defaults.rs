//! Defaults of Deployments and Services in the recordings, independent of the server's.

use serde_json::{Value, json};

pub(crate) fn fill(kind: &str, object: &mut Value) {
    match kind {
        "Deployment" => deployment(&mut object["spec"]),
        "Service" => service(&mut object["spec"]),
        _ => {}
    }
}

fn set(object: &mut Value, values: Value) {
    let Value::Object(values) = values else { return };
    for (key, value) in values {
        if object.get(&key).is_none_or(Value::is_null) {
            object[key] = value;
        }
    }
}

fn deployment(spec: &mut Value) {
    set(
        spec,
        json!({"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}}),
    );
    set(&mut spec["strategy"], json!({"type": "RollingUpdate"}));
    set(&mut spec["strategy"], json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}));
    let pod = &mut spec["template"]["spec"];
    set(
        pod,
        json!({"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
               "securityContext": {}, "schedulerName": "default-scheduler"}),
    );
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        let tagged = container["image"].as_str().is_some_and(|image| image.contains(':'));
        set(
            container,
            json!({"resources": {}, "terminationMessagePath": "/dev/termination-log",
                   "terminationMessagePolicy": "File",
                   "imagePullPolicy": if tagged { "IfNotPresent" } else { "Always" }}),
        );
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            set(port, json!({"protocol": "TCP"}));
        }
    }
    for volume in pod.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(source) = volume.get_mut("configMap") {
            set(source, json!({"defaultMode": 420}));
        }
    }
}

fn service(spec: &mut Value) {
    set(spec, json!({"sessionAffinity": "None", "type": "ClusterIP"}));
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        let target = port["port"].clone();
        set(port, json!({"protocol": "TCP"}));
        if port.get("targetPort").is_none_or(|t| t.is_null() || *t == 0) {
            port["targetPort"] = target;
        }
    }
}
