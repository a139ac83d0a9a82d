//! Tests with the CRDs of sample operators (Demo, Foo, `CloudManager`) and their objects.

#![expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]

use serde_json::{Value, json};

use super::{
    definition::{self, status},
    resource::CustomResource,
};

const DEMO: &str = include_str!("../../tests/golden/transcripts/crd/sample-demo-objects.json");
const FOO: &str = include_str!("../../tests/golden/transcripts/crd/sample-foo-status.json");
const CLOUD_MANAGER: &str =
    include_str!("../../tests/golden/transcripts/crd/sample-cloudmanager-objects.json");

/// Returns the CRD that a recording creates, with its defaults and conditions.
fn definition(recording: &str) -> Value {
    let recording: Value = serde_json::from_str(recording).unwrap();
    let steps = recording["steps"].as_array().unwrap();
    let mut crd = steps.iter().find(|step| step["id"] == "crd").unwrap()["request"]["body"].clone();
    definition::apply_defaults(&mut crd);
    definition::prepare_create(&mut crd);
    assert_eq!(definition::validate_create(&crd), []);
    status::refresh(&crd, [], "2026-01-01T00:00:00Z").unwrap()
}

fn object(kind: &CustomResource, fields: Value) -> Value {
    let mut object =
        json!({"apiVersion": kind.gvk().api_version(), "kind": kind.gvk().kind, "metadata": {"name": "one"}});
    for (key, value) in fields.as_object().unwrap() {
        object[key] = value.clone();
    }
    kind.prune(&mut object);
    kind.apply_defaults(&mut object);
    kind.prepare_create(&mut object);
    object
}

fn errors(kind: &CustomResource, fields: Value) -> Vec<String> {
    kind.validate_create(&object(kind, fields)).errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_demo_accepts_one_name_and_scales() {
    let crd = definition(DEMO);
    assert!(status::is_true(&crd, "Established"));
    let demos = CustomResource::new(&crd, "v1").unwrap();
    assert!(errors(&demos, json!({"spec": {"name": "test", "replicas": 2}})).is_empty());
    assert_eq!(
        errors(&demos, json!({"spec": {"name": "tests"}})),
        ["spec.name: Invalid value: \"tests\": spec.name in body should match '^test$'"]
    );
    let demo = object(&demos, json!({"spec": {"name": "test", "replicas": 2}, "status": {"replicas": 9}}));
    assert!(demo.get("status").is_none());
    let scale = demos.scale().unwrap();
    assert_eq!(scale.view(&demo).unwrap()["spec"]["replicas"], 2);
    let more = scale.write(&demo, &json!({"spec": {"replicas": -1}}));
    let found = demos.validate_update(&more, &demo);
    assert_eq!(
        found.errors[0].to_string(),
        ".spec.replicas: Invalid value: -1: should be a non-negative integer"
    );
    assert_eq!(demos.cells(&demo, |_| String::new()), [json!("one"), json!("test")]);
}

#[test]
fn a_foo_accepts_one_to_ten_replicas_and_has_a_status_subresource() {
    let crd = definition(FOO);
    let condition = crd["status"]["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!(condition["type"], "KubernetesAPIApprovalPolicyConformant");
    assert_eq!(condition["reason"], "UnapprovedAPI");
    let foos = CustomResource::new(&crd, "v1alpha1").unwrap();
    for (replicas, words) in [(0, "greater than or equal to 1"), (11, "less than or equal to 10")] {
        let found = errors(&foos, json!({"spec": {"deploymentName": "x", "replicas": replicas}}));
        assert!(found[0].ends_with(words), "{found:?}");
    }
    let old = object(&foos, json!({"spec": {"deploymentName": "x", "replicas": 1}}));
    let mut new = old.clone();
    new["spec"]["replicas"] = 7.into();
    new["status"] = json!({"availableReplicas": "x"});
    foos.prepare_status_update(&mut new, &old);
    assert_eq!(new["spec"]["replicas"], 1);
    let found = foos.validate_status_update(&new, &old);
    assert_eq!(
        found.errors[0].to_string(),
        "status.availableReplicas: Invalid value: \"string\": availableReplicas in body must be of type integer: \"string\""
    );
}

#[test]
fn a_foo_keeps_its_required_approval() {
    let crd = definition(FOO);
    let mut without = crd.clone();
    without["metadata"].as_object_mut().unwrap().remove("annotations");
    let found = definition::validate_update(&without, &crd);
    assert_eq!(found[0].field, "metadata.annotations[api-approved.kubernetes.io]");
    assert_eq!(definition::validate_update(&without, &without), []);
}

#[test]
fn a_cloud_manager_prunes_unknown_fields_and_rejects_wrong_types() {
    let crd = definition(CLOUD_MANAGER);
    let managers = CustomResource::new(&crd, "v1").unwrap();
    let manager =
        object(&managers, json!({"spec": {"front": {"deployment": {"image": "a", "tag": "b"}}, "x": 1}}));
    assert_eq!(manager["spec"], json!({"front": {"deployment": {"image": "a"}}}));
    let bad = json!({"spec": {"db": {"statefulSet": {"storage": {"accessModes": "RWO"}}}}});
    assert_eq!(
        errors(&managers, bad),
        ["spec.db.statefulSet.storage.accessModes: Invalid value: \"string\": \
          spec.db.statefulSet.storage.accessModes in body must be of type array: \"string\""]
    );
    let mut new = manager.clone();
    managers.prepare_update(&mut new, &manager);
    assert_eq!(new["metadata"]["generation"], 1);
    new["spec"]["front"]["deployment"]["image"] = "c".into();
    managers.prepare_update(&mut new, &manager);
    assert_eq!(new["metadata"]["generation"], 2);
}
