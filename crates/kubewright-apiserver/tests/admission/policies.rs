//! `ValidatingAdmissionPolicy`.

use serde_json::json;

use super::{MAPS, TestClient, on_maps, rules, server};

#[tokio::test]
async fn a_policy_without_a_binding_has_no_effect() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec = json!({"matchConstraints": on_maps(), "validations": [{"expression": "false"}]});
    admin.configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await.ok();
    admin.config_map("a", json!({})).await.ok();
}

#[tokio::test]
async fn a_denial_names_policy_binding_and_message() {
    let server = server();
    let admin = TestClient::new(&server);
    let validations = json!([{"expression": "object.data.size() < 2", "message": "one is enough"}]);
    admin.policy("few", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    admin.config_map("a", json!({"a": "1"})).await.ok();
    let denied = admin.config_map("b", json!({"a": "1", "b": "2"})).await.rejected(
        422,
        "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request: one is enough",
    );
    assert_eq!(denied["reason"], "Invalid");
    assert_eq!(
        denied["details"]["causes"][0]["message"],
        "ValidatingAdmissionPolicy 'few' with binding 'few' denied request: one is enough"
    );
}

#[tokio::test]
async fn the_reason_decides_the_code_and_the_expression_is_the_last_message() {
    let server = server();
    let admin = TestClient::new(&server);
    for (name, reason, code) in [("f", "Forbidden", 403), ("t", "RequestEntityTooLarge", 413)] {
        let validations =
            json!([{"expression": format!("object.metadata.name != '{name}'"), "reason": reason}]);
        admin.policy(name, json!({"matchConstraints": on_maps(), "validations": validations})).await;
        let denied = admin.config_map(name, json!({})).await;
        assert_eq!((denied.code, denied.body["reason"].as_str()), (code, Some(reason)));
        assert!(denied.message().ends_with(&format!("failed expression: object.metadata.name != '{name}'")));
    }
}

#[tokio::test]
async fn the_message_expression_wins_unless_it_fails_or_spans_lines() {
    let server = server();
    let admin = TestClient::new(&server);
    let validations = json!([{
        "expression": "!has(object.data.no)", "message": "plain",
        "messageExpression": "object.data.no == 'lines' ? 'a\\nb' : 'got ' + object.data.other",
    }]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    let message =
        async |data| admin.config_map("a", data).await.message().rsplit(": ").next().unwrap().to_owned();
    assert_eq!(message(json!({"no": "1", "other": "x"})).await, "got x");
    assert_eq!(message(json!({"no": "1"})).await, "plain");
    assert_eq!(message(json!({"no": "lines"})).await, "plain");
}

#[tokio::test]
async fn variables_are_evaluated_lazily_and_can_refer_to_each_other() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec = json!({
        "matchConstraints": on_maps(),
        "variables": [
            {"name": "broken", "expression": "object.data.missing"},
            {"name": "n", "expression": "int(object.data.n)"},
            {"name": "double", "expression": "variables.n * 2"},
        ],
        "validations": [
            {"expression": "variables.double < 10", "messageExpression": "string(variables.double) + ' is too much'"},
        ],
    });
    admin.policy("p", spec).await;
    admin.config_map("a", json!({"n": "4"})).await.ok();
    let denied = admin.config_map("b", json!({"n": "5"})).await;
    assert!(denied.message().ends_with("denied request: 10 is too much"), "{}", denied.message());
    let failed = admin.config_map("c", json!({"n": "x"})).await;
    assert!(
        failed.message().contains("composited variable \"double\" fails to evaluate"),
        "{}",
        failed.message()
    );
}

#[tokio::test]
async fn match_conditions_exclude_requests_and_their_errors_follow_the_failure_policy() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec = |policy: &str| {
        json!({
            "failurePolicy": policy, "matchConstraints": on_maps(), "validations": [{"expression": "false"}],
            "matchConditions": [{"name": "c", "expression": "object.data.judge == 'yes'"}],
        })
    };
    admin.policy("p", spec("Fail")).await;
    admin.config_map("a", json!({"judge": "no"})).await.ok();
    assert_eq!(admin.config_map("b", json!({"judge": "yes"})).await.code, 422);
    let failed = admin.config_map("c", json!({})).await;
    assert_eq!(failed.code, 422);
    assert!(
        failed
            .message()
            .ends_with("expression 'object.data.judge == 'yes'' resulted in error: no such key: data"),
        "{}",
        failed.message()
    );
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p";
    admin.send("PATCH", path, json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
    admin.config_map("c", json!({})).await.ok();
}

#[tokio::test]
async fn old_objects_requests_and_namespaces_are_available() {
    let server = server();
    let admin = TestClient::new(&server);
    let validations = json!([
        {"expression": "request.operation != 'UPDATE' || oldObject.data.a == object.data.a", "message": "immutable"},
        {"expression": "request.operation != 'DELETE' || object == null", "message": "an object on delete"},
        {"expression": "request.operation != 'DELETE' || oldObject.data.a != 'keep'", "message": "kept"},
        {"expression": "request.operation != 'CREATE' || oldObject == null", "message": "old on create"},
        {"expression": "namespaceObject.metadata.name == request.namespace", "message": "namespace"},
        {"expression": "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'"},
        {"expression": "request.userInfo.username == 'kubernetes-admin'", "message": "who"},
    ]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    admin.config_map("a", json!({"a": "keep"})).await.ok();
    let path = format!("{MAPS}/a");
    let changed = admin.send("PATCH", &path, json!({"data": {"a": "2"}})).await;
    assert!(changed.message().ends_with("denied request: immutable"), "{}", changed.message());
    admin.send("PATCH", &path, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let deleted = admin.send("DELETE", &path, json!(null)).await;
    assert!(deleted.message().ends_with("denied request: kept"), "{}", deleted.message());
}

#[tokio::test]
async fn the_authorizer_decides_for_the_user_and_for_service_accounts() {
    let server = server();
    let admin = TestClient::new(&server);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]});
    admin
        .post(&format!("{rbac}/clusterroles"), json!({"metadata": {"name": "maps"}, "rules": [rule]}))
        .await
        .ok();
    let binding = json!({
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"},
        "subjects": [
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"},
            {"kind": "ServiceAccount", "namespace": "default", "name": "robot"},
        ],
    });
    admin.post(&format!("{rbac}/clusterrolebindings"), binding).await.ok();
    let validations = json!([
        {"expression": "object.metadata.name != 'secret' || authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"},
        {"expression": "authorizer.requestResource.check('create').allowed()"},
        {"expression": "authorizer.serviceAccount('default', 'robot').group('').resource('configmaps').check('create').allowed()"},
        {"expression": "!authorizer.serviceAccount('default', 'robot').path('/healthz').check('post').allowed()"},
    ]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    let alice = TestClient::user(&server, "alice");
    alice.config_map("a", json!({})).await.ok();
    assert_eq!(alice.config_map("secret", json!({})).await.code, 422);
    admin.config_map("secret", json!({})).await.ok();
}

#[tokio::test]
async fn expressions_over_the_cost_limit_fail() {
    let server = server();
    let admin = TestClient::new(&server);
    // Two checks fit into the budget of one expression, a third does not.
    let check = "authorizer.group('').resource('pods').check('get').allowed()";
    let expression = format!("{check} && {check} && {check}");
    let validations = json!([{"expression": expression}]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    let cut = admin.config_map("a", json!({})).await;
    assert!(cut.message().ends_with("operation cancelled: actual cost limit exceeded"), "{}", cut.message());
}

#[tokio::test]
async fn parameters_are_found_by_name_by_selector_and_in_the_namespace_of_the_request() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec = json!({
        "matchConstraints": {"resourceRules": rules("", &["secrets"])},
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.metadata.name != params.data.name", "messageExpression": "'not ' + params.data.name"}],
    });
    admin.configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await.ok();
    let reference = json!({"selector": {"matchLabels": {"is": "param"}}, "parameterNotFoundAction": "Deny"});
    let binding = json!({"spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}});
    admin.configure("ValidatingAdmissionPolicyBinding", "p", binding).await.ok();
    let secret = async |namespace: &str, name: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        admin.post(&path, json!({"metadata": {"name": name}})).await
    };
    assert!(
        secret("default", "a")
            .await
            .message()
            .ends_with("no params found for policy binding with `Deny` parameterNotFoundAction")
    );
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "labels": {"is": "param"}}, "data": {"name": name}});
        admin.post(MAPS, map).await.ok();
    }
    assert!(secret("default", "a").await.message().ends_with("denied request: not a"));
    assert!(secret("default", "b").await.message().ends_with("denied request: not b"));
    secret("default", "c").await.ok();
    // Parameters of another namespace are ignored.
    assert_eq!(secret("kube-system", "c").await.code, 422);
}

#[tokio::test]
async fn an_unknown_param_kind_is_a_configuration_error() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec = json!({
        "matchConstraints": on_maps(), "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"},
        "validations": [{"expression": "params != null"}],
    });
    admin.policy("p", spec).await;
    let refused = admin.config_map("a", json!({})).await;
    assert!(refused.message().ends_with(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
    ), "{}", refused.message());
}

#[tokio::test]
async fn the_warn_action_warns_once_and_rejects_nothing() {
    let server = server();
    let admin = TestClient::new(&server);
    let spec =
        json!({"matchConstraints": on_maps(), "validations": [{"expression": "false", "message": "hm"}]});
    admin.configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await.ok();
    let binding = json!({"spec": {"policyName": "p", "validationActions": ["Warn", "Audit"]}});
    admin.configure("ValidatingAdmissionPolicyBinding", "b", binding).await.ok();
    let answer = admin.config_map("a", json!({})).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.warnings, ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm"]);
}

#[tokio::test]
async fn a_policy_for_one_version_matches_writes_of_another() {
    let server = server();
    let admin = TestClient::new(&server);
    let rule = |policy: &str| {
        let rules = json!([{"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]}]);
        json!({
            "matchConstraints": {"resourceRules": rules, "matchPolicy": policy},
            "validations": [{
                "expression": "object.apiVersion != 'autoscaling/v2' || object.spec.metrics[0].resource.target.averageUtilization < 90",
                "messageExpression": "request.kind.version + ' for ' + request.requestKind.version",
            }],
        })
    };
    admin.policy("exact", rule("Exact")).await;
    let old = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}, "maxReplicas": 2, "targetCPUUtilizationPercentage": 95},
    });
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers?dryRun=All";
    admin.post(path, old.clone()).await.ok();
    admin.policy("equivalent", rule("Equivalent")).await;
    let denied = admin.post(path, old).await;
    assert!(denied.message().ends_with("denied request: v2 for v1"), "{}", denied.message());
}

#[tokio::test]
async fn policies_do_not_apply_to_admission_configuration() {
    let server = server();
    let admin = TestClient::new(&server);
    let all = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
    admin
        .policy(
            "lockout",
            json!({"matchConstraints": {"resourceRules": all}, "validations": [{"expression": "false"}]}),
        )
        .await;
    assert_eq!(admin.config_map("a", json!({})).await.code, 422);
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/lockout";
    admin.send("DELETE", path, json!(null)).await.ok();
    admin.config_map("a", json!({})).await.ok();
}

#[tokio::test]
async fn a_scale_is_validated_as_a_scale() {
    let server = server();
    let admin = TestClient::new(&server);
    let apps = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    admin.post(apps, json!({"metadata": {"name": "d"}, "spec": spec})).await.ok();
    let validations = json!([{"expression": "object.kind == 'Scale' && object.spec.replicas < 5 && request.subResource == 'scale'"}]);
    admin.policy("p", json!({"matchConstraints": {"resourceRules": rules("apps", &["deployments/scale"])}, "validations": validations})).await;
    let path = format!("{apps}/d/scale");
    admin.send("PATCH", &path, json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(admin.send("PATCH", &path, json!({"spec": {"replicas": 7}})).await.code, 422);
}
