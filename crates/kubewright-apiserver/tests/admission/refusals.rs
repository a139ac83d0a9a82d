//! Tests of configuration that is rejected on write.

use serde_json::{Value, json};

use super::{TestClient, on_maps, rules, server};

async fn policy_errors(spec: Value) -> Vec<String> {
    let server = server();
    let answer =
        TestClient::new(&server).configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await;
    causes(&answer.body)
}

fn causes(body: &Value) -> Vec<String> {
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let shown = |cause: &Value| {
        format!(
            "{}: {}",
            cause["field"].as_str().unwrap_or_default(),
            cause["message"].as_str().unwrap_or_default()
        )
    };
    causes.iter().map(shown).collect()
}

#[tokio::test]
async fn expressions_that_do_not_compile_are_rejected_with_their_position() {
    let errors = policy_errors(json!({
        "matchConstraints": on_maps(),
        "matchConditions": [{"name": "c", "expression": " 1 "}],
        "variables": [{"name": "v", "expression": "nothing"}, {"name": "for", "expression": "1"}],
        "validations": [
            {"expression": "object.a +"},
            {"expression": "'text'", "messageExpression": "1"},
            {"expression": "params.a == 1"},
            {"expression": "variables.w == 1"},
            {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"},
        ],
    }))
    .await;
    assert_eq!(
        errors[0],
        "spec.matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int"
    );
    assert_eq!(
        errors[1],
        "spec.variables[0].expression: Invalid value: \"nothing\": compilation failed: ERROR: <input>:1:1: undeclared \
         reference to 'nothing' (in container '')\n | nothing\n | ^"
    );
    assert_eq!(errors[2], "spec.variables[1].name: Invalid value: \"for\": must be a valid CEL identifier");
    assert!(errors[3].starts_with("spec.validations[0].expression: Invalid value: \"object.a +\": compilation failed: ERROR: <input>:1:11: Syntax error"));
    assert_eq!(
        errors[4],
        "spec.validations[1].expression: Invalid value: \"'text'\": must evaluate to bool but got string"
    );
    assert_eq!(
        errors[5],
        "spec.validations[1].messageExpression: Invalid value: \"1\": must evaluate to string but got int"
    );
    assert!(errors[6].contains("undeclared reference to 'params'"), "{}", errors[6]);
    assert!(errors[7].contains("undefined field 'w'"), "{}", errors[7]);
    assert!(errors[8].contains("undeclared reference to 'authorizer'"), "{}", errors[8]);
    assert_eq!(errors.len(), 9);
}

#[tokio::test]
async fn incomplete_policies_are_rejected() {
    assert_eq!(
        policy_errors(json!({"failurePolicy": "Maybe", "paramKind": {"apiVersion": "a/b/c"}})).await,
        [
            "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
            "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "spec.paramKind.kind: Required value",
            "spec.matchConstraints: Required value",
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
            "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
        ]
    );
    assert_eq!(
        policy_errors(json!({
            "matchConstraints": {"matchPolicy": "Roughly", "resourceRules": []},
            "validations": [{"expression": " ", "message": " ", "reason": "Because"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "1 == 1"}, {"key": "k", "valueExpression": ""}],
        }))
        .await,
        [
            "spec.matchConstraints.matchPolicy: Unsupported value: \"Roughly\": supported values: \"Equivalent\", \"Exact\"",
            "spec.matchConstraints.resourceRules: Required value",
            "spec.validations[0].expression: Required value: expression is not specified",
            "spec.validations[0].message: Invalid value: \" \": must be non-empty if specified",
            "spec.validations[0].reason: Unsupported value: \"Because\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
            "spec.auditAnnotations[0].valueExpression: Invalid value: \"1 == 1\": must evaluate to one of [string null_type] but got bool",
            "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
            "spec.auditAnnotations[1].key: Duplicate value: \"k\"",
        ]
    );
}

#[tokio::test]
async fn contradictory_rules_are_rejected() {
    let rule = json!({
        "apiGroups": ["", "*"], "apiVersions": ["v1", ""], "operations": ["CREATE", "READ"],
        "resources": ["pods/*", "pods/status", "*/*", ""], "scope": "Galaxy", "resourceNames": ["a/b", "a/b"],
    });
    assert_eq!(
        policy_errors(
            json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]})
        )
        .await,
        [
            "spec.matchConstraints.resourceRules[0].resourceNames[0]: Invalid value: \"a/b\": may not contain '/'",
            "spec.matchConstraints.resourceRules[0].resourceNames[1]: Invalid value: \"a/b\": may not contain '/'",
            "spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: \"a/b\"",
            "spec.matchConstraints.resourceRules[0].operations[1]: Unsupported value: \"READ\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            "spec.matchConstraints.resourceRules[0].apiGroups: Invalid value: [\"\",\"*\"]: if '*' is present, must not specify other API groups",
            "spec.matchConstraints.resourceRules[0].apiVersions[1]: Required value",
            "spec.matchConstraints.resourceRules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            "spec.matchConstraints.resourceRules[0].resources[3]: Required value",
            "spec.matchConstraints.resourceRules[0].resources: Invalid value: [\"pods/*\",\"pods/status\",\"*/*\",\"\"]: if '*/*' is present, must not specify other resources",
            "spec.matchConstraints.resourceRules[0].scope: Unsupported value: \"Galaxy\": supported values: \"*\", \"Cluster\", \"Namespaced\"",
        ]
    );
}

#[tokio::test]
async fn invalid_webhooks_are_rejected_with_all_errors() {
    let server = server();
    let admin = TestClient::new(&server);
    let hooks = json!([
        {"name": "short", "clientConfig": {"url": "http://u:p@/x?q#f"}, "admissionReviewVersions": ["v2", "v2"], "sideEffects": "Some", "timeoutSeconds": 31},
        {"name": "a.b.c", "clientConfig": {}, "rules": rules("", &["pods"]), "failurePolicy": "Maybe", "matchConditions": [{"name": "c", "expression": "params"}]},
        {"name": "a.b.c", "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 70000, "path": "x//y"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None"},
    ]);
    let answer = admin.configure("ValidatingWebhookConfiguration", "w", json!({"webhooks": hooks})).await;
    assert_eq!(answer.code, 422);
    assert_eq!(
        causes(&answer.body),
        [
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            "webhooks[0].clientConfig.url: Invalid value: \"\": host must be specified; desired format: https://host[/path]",
            "webhooks[0].clientConfig.url: Invalid value: \"u:p\": user information is not permitted in the URL",
            "webhooks[0].clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL",
            "webhooks[0].clientConfig.url: Invalid value: \"q\": query parameters are not permitted in the URL",
            "webhooks[0].admissionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1",
            "webhooks[1].failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
            "webhooks[1].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[1].clientConfig: Required value: exactly one of url or service is required",
            "webhooks[1].matchConditions[0].expression: Invalid value: \"params\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params\n | ^",
            "webhooks[1].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            "webhooks[2].clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": must start with a '/'",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": segment[0] may not be empty",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": segment[1] may not be empty",
            "webhooks[2].name: Duplicate value: \"a.b.c\"",
        ]
    );
}

#[tokio::test]
async fn invalid_mutating_policies_are_rejected() {
    let server = server();
    let admin = TestClient::new(&server);
    let deletes =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}]);
    let spec = json!({
        "matchConstraints": {"resourceRules": deletes},
        "mutations": [
            {"patchType": "JSONPatch"},
            {"patchType": "Diff"},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "JSONPatch{op: 'add'}"}, "jsonPatch": {"expression": ""}},
        ],
    });
    let answer = admin.configure("MutatingAdmissionPolicy", "m", json!({"spec": spec})).await;
    assert_eq!(
        causes(&answer.body),
        [
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
            "spec.mutations[1].patchType: Unsupported value: \"Diff\": supported values: \"ApplyConfiguration\", \"JSONPatch\"",
            "spec.mutations[2].applyConfiguration.expression: Invalid value: \"JSONPatch{op: 'add'}\": must evaluate to Object but got JSONPatch",
            "spec.mutations[2].jsonPatch: Invalid value: \"{jsonPatch}\": must not be specified when patchType is ApplyConfiguration",
            "spec.reinvocationPolicy: Required value",
        ]
    );
}
