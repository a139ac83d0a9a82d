//! Tests with the CRDs of three sample operators: Demo, Foo and `CloudManager`.

use serde_json::json;

use super::*;

/// Returns the CRD that a recording creates.
fn recorded(name: &str) -> Value {
    let file = format!("{}/tests/golden/transcripts/crd/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let steps = recording["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == "crd").unwrap()["request"]["body"].clone()
}

#[tokio::test]
async fn a_demo_has_one_name_and_scales() {
    let world = World::new();
    world.post(DEFINITIONS, &recorded("sample-demo-objects")).await.unwrap();
    let demos = "/apis/example.com/v1/namespaces/default/demos";
    let demo = |name: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Demo", "metadata": {"name": "demo"},
               "spec": {"name": name, "replicas": 2}})
    };
    let refused = world.post(demos, &demo("tests")).await.unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.ends_with("spec.name in body should match '^test$'"), "{}", refused.message);
    world.post(demos, &demo("test")).await.unwrap();
    let scale = world.merge(&format!("{demos}/demo/scale"), &json!({"spec": {"replicas": 5}})).await.unwrap();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    let scaled = world.get(&format!("{demos}/demo")).await.unwrap();
    assert_eq!((&scaled["spec"]["replicas"], &scaled["metadata"]["generation"]), (&json!(5), &json!(2)));
    let refused =
        world.merge(&format!("{demos}/demo/scale"), &json!({"spec": {"replicas": -1}})).await.unwrap_err();
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn a_foo_is_printed_with_its_status() {
    let world = World::new();
    world.post(DEFINITIONS, &recorded("sample-foo-status")).await.unwrap();
    let foos = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos";
    let foo = json!({"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {"name": "foo"},
                     "spec": {"deploymentName": "d", "replicas": 1}});
    world.post(foos, &foo).await.unwrap();
    let status = json!({"status": {"availableReplicas": 1}});
    let shown = world.merge(&format!("{foos}/foo/status"), &status).await.unwrap();
    assert_eq!(shown["status"], status["status"]);
    assert_eq!(shown["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_cloud_manager_is_pruned_by_its_deep_schema() {
    let world = World::new();
    world.post(DEFINITIONS, &recorded("sample-cloudmanager-objects")).await.unwrap();
    let managers = "/apis/cloudmanagercontroller.huayun.com/v1/namespaces/default/cloudmanagers";
    let manager = json!({"apiVersion": "cloudmanagercontroller.huayun.com/v1", "kind": "CloudManager",
                         "metadata": {"name": "cloud"}, "spec": {"nowhere": 1}});
    let made = world.post(managers, &manager).await;
    let shown = match made {
        Ok(made) => made,
        Err(refused) => panic!("{}", refused.message),
    };
    assert!(shown["spec"].get("nowhere").is_none());
}
