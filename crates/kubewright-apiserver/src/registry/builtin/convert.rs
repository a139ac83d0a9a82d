//! Conversion of types that are served in two versions and stored in one.

use serde_json::{Value, json};

use crate::registry::descriptor::Json;

/// Names of the same field in the core and the `events.k8s.io` Event.
const EVENT: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Json, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.into(), value);
    }
}

fn empty(value: Option<&Value>) -> bool {
    value.is_none_or(|v| v.as_str() == Some(""))
}

/// Converts a stored core Event to `events.k8s.io`.
pub(super) fn event_from_core(object: &mut Json) {
    for (core, new) in EVENT {
        rename(object, core, new);
    }
    for key in ["reportingController", "reportingInstance"] {
        if empty(object.get(key)) {
            object.remove(key);
        }
    }
}

/// Converts an Event of `events.k8s.io` to its stored form.
pub(super) fn event_to_core(object: &mut Json) {
    for (core, new) in EVENT {
        rename(object, new, core);
    }
}

/// Converts a stored v2 autoscaler to v1: the CPU target becomes a field, other metrics an annotation.
pub(super) fn hpa_to_v1(object: &mut Json) {
    let mut others = Vec::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        for metric in spec.remove("metrics").and_then(|m| m.as_array().cloned()).unwrap_or_default() {
            let target = &metric["resource"]["target"];
            if metric["type"] == "Resource"
                && metric["resource"]["name"] == "cpu"
                && target["type"] == "Utilization"
            {
                spec.insert("targetCPUUtilizationPercentage".into(), target["averageUtilization"].clone());
            } else {
                others.push(metric);
            }
        }
    }
    if !others.is_empty() {
        annotate(object, "autoscaling.alpha.kubernetes.io/metrics", &Value::Array(others));
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let current = status.remove("currentMetrics");
        let conditions = status.remove("conditions");
        status.entry("currentReplicas").or_insert(json!(0));
        if let Some(percent) =
            current.as_ref().and_then(|c| c.pointer("/0/resource/current/averageUtilization"))
        {
            status.insert("currentCPUUtilizationPercentage".into(), percent.clone());
        }
        if let Some(conditions) = conditions.filter(Value::is_array) {
            annotate(object, "autoscaling.alpha.kubernetes.io/conditions", &conditions);
        }
    }
}

/// Converts a v1 autoscaler to its stored form.
pub(super) fn hpa_from_v1(object: &mut Json) {
    let others = object
        .get_mut("metadata")
        .and_then(|m| m.get_mut("annotations"))
        .and_then(Value::as_object_mut)
        .and_then(|a| {
            a.remove("autoscaling.alpha.kubernetes.io/conditions");
            a.remove("autoscaling.alpha.kubernetes.io/metrics")
        });
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics: Vec<Value> =
            others.and_then(|text| serde_json::from_str(text.as_str()?).ok()).unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            metrics.insert(
                0,
                json!({"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
                }}),
            );
        }
        if !metrics.is_empty() {
            spec.insert("metrics".into(), metrics.into());
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentCPUUtilizationPercentage");
    }
}

fn annotate(object: &mut Json, key: &str, value: &Value) {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(key.into(), value.to_string().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_round_trips_through_v1() {
        let v2 = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
        ]}}).as_object().unwrap().clone();
        let mut v1 = v2.clone();
        hpa_to_v1(&mut v1);
        assert_eq!(v1["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}));
        hpa_from_v1(&mut v1);
        assert_eq!(v1["spec"], v2["spec"]);
    }
}
