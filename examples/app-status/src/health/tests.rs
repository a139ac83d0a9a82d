use serde_json::json;

use super::*;

fn health_of(api_version: &str, kind: &str, object: Value) -> (&'static str, String, String) {
    let mut object = object;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    if object["metadata"].is_null() {
        object["metadata"] = json!({"name": "x"});
    }
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let health = Health::of(api_version, kind, &object);
    (health.state.word(), health.ready.unwrap_or_default(), health.message)
}

fn expected(state: &'static str, ready: &str, message: &str) -> (&'static str, String, String) {
    (state, ready.to_owned(), message.to_owned())
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn a_deployment_is_ready_when_its_new_replicas_are_available() {
    let health_of = |spec: Value, status: Value| {
        health_of("apps/v1", "Deployment", json!({"spec": spec, "status": status}))
    };
    assert_eq!(
        health_of(json!({"replicas": 2}), json!({})),
        expected("Progressing", "0/2", "0 of 2 updated")
    );
    let all = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    assert_eq!(health_of(json!({"replicas": 2}), all), expected("Ready", "2/2", ""));
    let rolling = json!({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2});
    assert_eq!(health_of(json!({"replicas": 2}), rolling), expected("Progressing", "2/2", "1 old to go"));
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out progressing");
    let late = json!({"updatedReplicas": 1, "conditions": [late]});
    assert_eq!(health_of(json!({}), late), expected("Failed", "0/1", "timed out progressing"));
    assert_eq!(health_of(json!({"replicas": 0}), json!({})), expected("Ready", "0/0", ""));
}

#[test]
fn other_workloads_count_replicas() {
    let spec = json!({"replicas": 3});
    let status = json!({"readyReplicas": 1, "updatedReplicas": 3});
    let object = json!({"spec": spec, "status": status});
    assert_eq!(health_of("apps/v1", "StatefulSet", object.clone()), expected("Progressing", "1/3", ""));
    assert_eq!(health_of("apps/v1", "ReplicaSet", object), expected("Progressing", "1/3", ""));
    let status = json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3});
    assert_eq!(health_of("apps/v1", "DaemonSet", json!({"status": status})), expected("Ready", "3/3", ""));
    assert_eq!(health_of("apps/v1", "DaemonSet", json!({})).0, "Progressing");
}

#[test]
fn a_job_is_done_failed_suspended_or_running() {
    let health_of = |object: Value| health_of("batch/v1", "Job", object);
    let complete = json!({"succeeded": 1, "conditions": [condition("Complete", "True", "", "")]});
    assert_eq!(health_of(json!({"status": complete})), expected("Done", "1/1", ""));
    let failed = json!({"conditions": [condition("Failed", "True", "BackoffLimitExceeded", "")]});
    assert_eq!(health_of(json!({"status": failed})), expected("Failed", "0/1", "BackoffLimitExceeded"));
    assert_eq!(health_of(json!({"spec": {"suspend": true}})), expected("Suspended", "0/1", ""));
    assert_eq!(health_of(json!({"status": {"active": 2}})), expected("Progressing", "0/1", "2 running"));
}

#[test]
fn a_pod_reports_why_it_waits_and_fatal_errors() {
    let health_of =
        |status: Value| health_of("v1", "Pod", json!({"spec": {"containers": [{}]}, "status": status}));
    let unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available");
    assert_eq!(
        health_of(json!({"phase": "Pending", "conditions": [unscheduled]})),
        expected("Progressing", "0/1", "0/3 nodes are available")
    );
    let crash = json!({"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    assert_eq!(health_of(crash), expected("Failed", "0/1", "CrashLoopBackOff"));
    let ready = json!({"phase": "Running", "containerStatuses": [{"ready": true}], "conditions": [condition("Ready", "True", "", "")]});
    assert_eq!(health_of(ready), expected("Ready", "1/1", ""));
    assert_eq!(health_of(json!({"phase": "Succeeded"})), expected("Done", "0/1", ""));
}

#[test]
fn services_volumes_and_nodes_are_known() {
    let service =
        |spec: Value, status: Value| health_of("v1", "Service", json!({"spec": spec, "status": status}));
    assert_eq!(service(json!({"clusterIP": "10.0.0.1"}), json!({})), expected("Ready", "", "10.0.0.1"));
    let balanced = json!({"type": "LoadBalancer"});
    assert_eq!(service(balanced.clone(), json!({})).0, "Progressing");
    let given = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
    assert_eq!(service(balanced, given), expected("Ready", "", "1.2.3.4"));
    let claim = |phase: &str| health_of("v1", "PersistentVolumeClaim", json!({"status": {"phase": phase}})).0;
    assert_eq!((claim("Bound"), claim("Pending"), claim("Lost")), ("Ready", "Progressing", "Failed"));
    let node = json!({"spec": {"unschedulable": true}, "status": {"conditions": [condition("Ready", "True", "", "")]}});
    assert_eq!(health_of("v1", "Node", node), expected("Ready", "", "cordoned"));
    assert_eq!(health_of("v1", "ConfigMap", json!({"data": {}})).0, "Ready", "it has no status");
}

#[test]
fn custom_resources_use_conditions_then_phase_then_replicas() {
    let health_of = |object: Value| health_of("shop.example/v1", "Cart", object);
    let status = |conditions: &[Value]| json!({"status": {"conditions": conditions, "phase": "whatever"}});
    assert_eq!(
        health_of(status(&[condition("Ready", "True", "AllGood", "")])),
        expected("Ready", "", "AllGood")
    );
    assert_eq!(
        health_of(status(&[condition("Ready", "False", "NoDisk", "the disk is missing")])),
        expected("NotReady", "", "the disk is missing")
    );
    let both = [condition("Ready", "True", "", ""), condition("Stalled", "True", "Stuck", "")];
    assert_eq!(health_of(status(&both)), expected("Failed", "", "Stuck"), "negative conditions first");
    assert_eq!(health_of(status(&[condition("Ready", "Unknown", "", "")])).0, "Progressing");
    assert_eq!(health_of(status(&[condition("Available", "False", "Suspended", "")])).0, "Suspended");
    for (phase, state) in
        [("ready", "Ready"), ("Pending", "Progressing"), ("Failed", "Failed"), ("Completed", "Done")]
    {
        assert_eq!(health_of(json!({"status": {"phase": phase}})), expected(state, "", phase));
    }
    let replicas = json!({"spec": {"replicas": 2}, "status": {"availableReplicas": 1}});
    assert_eq!(health_of(replicas), expected("Progressing", "1/2", ""));
    assert_eq!(health_of(json!({"spec": {}})).0, "Unknown", "no controller has written a status");
    assert_eq!(health_of(json!({"spec": {}, "status": {"mood": "fine"}})).0, "Unknown");
}

#[test]
fn objects_that_are_deleted_or_not_observed_yet_are_not_ready() {
    let status = json!({"observedGeneration": 1, "conditions": [condition("Ready", "True", "", "")]});
    let going = json!({"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["shop.example/disk"]});
    let going = json!({"metadata": going, "status": status});
    assert_eq!(
        health_of("shop.example/v1", "Cart", going),
        expected("Terminating", "", "waits for shop.example/disk")
    );
    let changed = json!({"metadata": {"name": "x", "generation": 2}, "status": status});
    assert_eq!(health_of("shop.example/v1", "Cart", changed).0, "Progressing");
}
