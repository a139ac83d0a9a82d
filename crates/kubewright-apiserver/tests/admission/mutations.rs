//! `MutatingAdmissionPolicy`.

use serde_json::{Value, json};

use super::{MAPS, TestClient, on_maps, server};

async fn mutate(admin: &TestClient, name: &str, mutation: Value) {
    let spec = json!({"matchConstraints": on_maps(), "reinvocationPolicy": "Never", "mutations": [mutation]});
    admin.configure("MutatingAdmissionPolicy", name, json!({"spec": spec})).await.ok();
    admin.configure("MutatingAdmissionPolicyBinding", name, json!({"spec": {"policyName": name}})).await.ok();
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test]
async fn json_patches_are_applied_in_order() {
    let server = server();
    let admin = TestClient::new(&server);
    mutate(&admin, "a", patch("[JSONPatch{op: 'add', path: '/data/a', value: 'x'}]")).await;
    mutate(
        &admin,
        "b",
        patch(
            "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('b/c'), value: object.data.a + 'y'}]",
        ),
    )
    .await;
    mutate(&admin, "c", patch("[JSONPatch{op: 'test', path: '/data/a', value: 'other'}, JSONPatch{op: 'remove', path: '/data/a'}]")).await;
    let refused = admin.config_map("m", json!({"k": "v"})).await;
    // A slash is not allowed in a map key: mutated objects are validated like those of users.
    assert_eq!(refused.code, 422, "{}", refused.body);
    admin
        .send("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/b", json!(null))
        .await
        .ok();
    let map = admin.config_map("m", json!({"k": "v"})).await.ok();
    assert_eq!(map["data"], json!({"a": "x", "k": "v"}));
}

#[tokio::test]
async fn configurations_are_merged_without_field_managers() {
    let server = server();
    let admin = TestClient::new(&server);
    let expression = "Object{metadata: Object.metadata{labels: {'squad': object.data.team}}}";
    mutate(
        &admin,
        "m",
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}),
    )
    .await;
    let map = json!({"metadata": {"name": "m", "labels": {"own": "1"}}, "data": {"team": "blue"}});
    let map = admin.post(MAPS, map).await.ok();
    assert_eq!(map["metadata"]["labels"], json!({"own": "1", "squad": "blue"}));
    let managers = map["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1);
    assert!(!managers[0].to_string().contains("f:squad"));
}

#[tokio::test]
async fn a_failing_mutation_rejects_unless_ignored() {
    let server = server();
    let admin = TestClient::new(&server);
    mutate(&admin, "m", patch("[JSONPatch{op: 'replace', path: '/data/a/b', value: object.data.missing}]"))
        .await;
    let refused = admin.config_map("m", json!({"a": "1"})).await;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (403, Some("Invalid")));
    assert_eq!(
        refused.message(),
        "policy 'm' with binding 'm' denied request: expression '[JSONPatch{op: 'replace', path: '/data/a/b', value: \
         object.data.missing}]' resulted in error: no such key: missing"
    );
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/m";
    admin.send("PATCH", path, json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
    admin.config_map("m", json!({"a": "1"})).await.ok();
}

#[tokio::test]
async fn a_configuration_cannot_set_parts_of_atomic_fields() {
    let server = server();
    let admin = TestClient::new(&server);
    let expression =
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['--x']}]}}";
    let spec = json!({
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
        "reinvocationPolicy": "IfNeeded",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    });
    admin.configure("MutatingAdmissionPolicy", "m", json!({"spec": spec})).await.ok();
    admin.configure("MutatingAdmissionPolicyBinding", "m", json!({"spec": {"policyName": "m"}})).await.ok();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    admin.post("/api/v1/namespaces/default/pods", pod.clone()).await.rejected(
        403,
        "policy 'm' with binding 'm' denied request: error applying patch: invalid ApplyConfiguration: may not mutate \
         atomic arrays, maps or structs: .spec.containers[0].args",
    );
    let sidecar = "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'side', image: 'car', restartPolicy: 'Always'}]}}";
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/m";
    let patch = json!([{"op": "replace", "path": "/spec/mutations/0/applyConfiguration/expression", "value": sidecar}]);
    admin.send("PATCH", path, patch).await.ok();
    let made = admin.post("/api/v1/namespaces/default/pods", pod).await.ok();
    assert_eq!(made["spec"]["initContainers"][0]["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(made["spec"]["initContainers"].as_array().map(Vec::len), Some(1));
}
