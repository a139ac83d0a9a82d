//! Tests of mutating and validating webhooks, without sockets.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use kubewright_apiserver::{
    ApiServer,
    admission::{
        Chain,
        webhook::{Target, Transport, Webhooks},
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{MAPS, TestClient, rules};

/// Reply of a webhook.
enum Reply {
    /// A response, to which the uid is added.
    Response(Value),
    /// Exactly this status and body.
    Raw(u16, String),
    /// No reply.
    Hangs,
}

type Behaviour = dyn Fn(&str, &Value) -> Reply + Send + Sync;
type Reviews = Arc<Mutex<Vec<(String, Value)>>>;

/// Webhooks by path.
struct Hooks {
    reviews: Reviews,
    reply: Box<Behaviour>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

impl Transport for Hooks {
    fn post<'a>(
        &'a self,
        target: &'a Target,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>> {
        Box::pin(async move {
            let review: Value = serde_json::from_slice(&body).expect("a review is JSON");
            let path = target.path.split('?').next().unwrap_or_default().to_owned();
            self.reviews.lock().push((path.clone(), review.clone()));
            match (self.reply)(&path, &review) {
                Reply::Response(mut response) => {
                    if response.get("uid").is_none() {
                        response["uid"] = review["request"]["uid"].clone();
                    }
                    let answer = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
                    Ok((200, answer.to_string().into_bytes()))
                }
                Reply::Raw(code, body) => Ok((code, body.into_bytes())),
                Reply::Hangs => std::future::pending().await,
            }
        })
    }
}

fn serve(reply: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> (ApiServer, Reviews) {
    let reviews = Reviews::default();
    let hooks = Hooks { reviews: Arc::clone(&reviews), reply: Box::new(reply) };
    let chain = Chain::calling(Webhooks::default().transport(hooks));
    (ApiServer::builder().admission(chain).in_process().expect("a server starts"), reviews)
}

fn allow() -> Reply {
    Reply::Response(json!({"allowed": true}))
}

fn patch(patch: &Value) -> Reply {
    let patch = STANDARD.encode(patch.to_string());
    Reply::Response(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

/// Returns a webhook on config maps, at the path of its name.
fn hook(name: &str, more: &Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"), "clientConfig": {"url": format!("https://hooks.test/{name}")},
        "rules": rules("", &["configmaps"]), "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "timeoutSeconds": 3,
    });
    for (key, value) in more.as_object().expect("an object") {
        hook[key] = value.clone();
    }
    hook
}

async fn validating(admin: &TestClient, name: &str, more: Value) {
    let content = json!({"webhooks": [hook(name, &more)]});
    admin.configure("ValidatingWebhookConfiguration", name, content).await.ok();
}

async fn mutating(admin: &TestClient, name: &str, more: Value) {
    let content = json!({"webhooks": [hook(name, &more)]});
    admin.configure("MutatingWebhookConfiguration", name, content).await.ok();
}

fn paths(reviews: &Reviews) -> Vec<String> {
    reviews.lock().iter().map(|(path, _)| path.clone()).collect()
}

#[tokio::test]
async fn a_review_carries_the_request() {
    let (server, reviews) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    validating(&admin, "v", json!({})).await;
    admin.config_map("a", json!({"k": "1"})).await.ok();
    admin.send("PATCH", &format!("{MAPS}/a"), json!({"data": {"k": "2"}})).await.ok();
    admin.send("DELETE", &format!("{MAPS}/a?dryRun=All"), Value::Null).await.ok();
    let reviews = reviews.lock();
    let requests: Vec<&Value> = reviews.iter().map(|(_, review)| &review["request"]).collect();
    let [create, update, delete] = requests.as_slice() else { panic!("{} reviews", requests.len()) };
    assert_eq!(reviews[0].1["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(create["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(create["requestResource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!(
        (&create["operation"], &create["name"], &create["namespace"]),
        (&json!("CREATE"), &json!("a"), &json!("default"))
    );
    assert_eq!(create["object"]["data"], json!({"k": "1"}));
    assert_eq!((&create["oldObject"], &create["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(create["options"]["kind"], "CreateOptions");
    assert_eq!(create["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(
        (&update["oldObject"]["data"]["k"], &update["object"]["data"]["k"]),
        (&json!("1"), &json!("2"))
    );
    assert_eq!(
        (&delete["operation"], &delete["object"], &delete["dryRun"]),
        (&json!("DELETE"), &Value::Null, &json!(true))
    );
    assert_eq!(delete["oldObject"]["data"]["k"], "2");
    assert_eq!(
        delete["options"],
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]})
    );
}

#[tokio::test]
async fn a_rejection_has_the_message_of_the_webhook() {
    let (server, _) = serve(|path, _| {
        Reply::Response(match path {
            "/teapot" => {
                json!({"allowed": false, "status": {"code": 418, "reason": "Teapot", "message": "no coffee", "details": {"causes": [{"message": "c"}]}}})
            }
            "/reason" => json!({"allowed": false, "status": {"reason": "Because", "code": 200}}),
            _ => json!({"allowed": false}),
        })
    });
    let admin = TestClient::new(&server);
    for name in ["teapot", "reason", "silent"] {
        validating(&admin, name, json!({"objectSelector": {"matchLabels": {"for": name}}})).await;
    }
    let labelled = async |name: &str| {
        admin.post(MAPS, json!({"metadata": {"name": name, "labels": {"for": name}}})).await
    };
    let body = labelled("teapot")
        .await
        .rejected(418, "admission webhook \"teapot.example.com\" denied the request: no coffee");
    assert_eq!((&body["reason"], &body["details"]["causes"][0]["message"]), (&json!("Teapot"), &json!("c")));
    labelled("reason")
        .await
        .rejected(400, "admission webhook \"reason.example.com\" denied the request: Because");
    let body = labelled("silent")
        .await
        .rejected(400, "admission webhook \"silent.example.com\" denied the request without explanation");
    assert!(body.get("reason").is_none());
}

#[tokio::test]
async fn invalid_responses_follow_the_failure_policy() {
    let (server, _) = serve(|path, _| match path {
        "/uid" => Reply::Response(json!({"allowed": true, "uid": "other"})),
        "/kind" => Reply::Raw(200, json!({"response": {"uid": "x"}}).to_string()),
        "/absent" => Reply::Raw(
            200,
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).to_string(),
        ),
        "/patch" => Reply::Response(json!({"allowed": true, "patch": "W10="})),
        "/gone" => Reply::Raw(404, String::new()),
        "/broken" => Reply::Raw(500, "oh no\n".into()),
        _ => Reply::Raw(200, "not json".into()),
    });
    let admin = TestClient::new(&server);
    let expected = [
        ("gone", "failed to call webhook: the server could not find the requested resource"),
        (
            "broken",
            "failed to call webhook: an error on the server (\"oh no\") has prevented the request from succeeding",
        ),
        ("absent", "received invalid webhook response: webhook response was absent"),
        ("patch", "received invalid webhook response: validating webhook may not return response.patch"),
    ];
    for name in ["uid", "kind", "absent", "patch", "gone", "broken", "text"] {
        validating(&admin, name, json!({"objectSelector": {"matchLabels": {"for": name}}})).await;
    }
    let labelled = async |name: &str| {
        admin.post(MAPS, json!({"metadata": {"name": name, "labels": {"for": name}}})).await
    };
    for (name, why) in expected {
        let why = format!("failed calling webhook \"{name}.example.com\": {why}");
        let body = labelled(name).await.rejected(500, &format!("Internal error occurred: {why}"));
        assert_eq!(
            (&body["reason"], &body["details"]["causes"][0]["message"]),
            (&json!("InternalError"), &json!(why))
        );
    }
    assert!(
        labelled("uid").await.message().contains("received invalid webhook response: expected response.uid=")
    );
    assert!(
        labelled("text")
            .await
            .message()
            .contains("failed to call webhook: couldn't get version/kind; json parse error")
    );
    for name in ["uid", "kind", "absent", "patch", "gone", "broken", "text"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}");
        let ignore = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
        admin.send("PATCH", &path, ignore).await.ok();
        labelled(name).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_respond_times_out() {
    let (server, _) = serve(|_, _| Reply::Hangs);
    let admin = TestClient::new(&server);
    validating(&admin, "slow", json!({})).await;
    let before = tokio::time::Instant::now();
    admin.config_map("a", json!({})).await.rejected(
        500,
        "Internal error occurred: failed calling webhook \"slow.example.com\": failed to call webhook: Post \
         \"https://hooks.test/slow?timeout=3s\": context deadline exceeded",
    );
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn validating_webhooks_are_called_concurrently_and_the_first_rejection_wins() {
    let (server, reviews) = serve(|path, _| match path {
        "/b" | "/c" => Reply::Response(json!({"allowed": false, "status": {"message": path}})),
        _ => Reply::Hangs,
    });
    let admin = TestClient::new(&server);
    for name in ["c", "b"] {
        validating(&admin, name, json!({})).await;
    }
    for name in ["a", "d"] {
        validating(&admin, name, json!({"failurePolicy": "Ignore", "timeoutSeconds": 5})).await;
    }
    let before = tokio::time::Instant::now();
    admin
        .config_map("a", json!({}))
        .await
        .rejected(400, "admission webhook \"b.example.com\" denied the request: /b");
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(paths(&reviews), ["/a", "/b", "/c", "/d"]);
}

#[tokio::test]
async fn mutating_webhooks_are_called_in_order_of_their_names() {
    let (server, reviews) = serve(|path, review| match path {
        "/a" => patch(&json!([{"op": "add", "path": "/data", "value": {"a": "1"}}])),
        "/b" => {
            let seen = review["request"]["object"]["data"]["a"].as_str().unwrap_or("nothing").to_owned();
            patch(&json!([{"op": "add", "path": "/data/b", "value": seen}]))
        }
        _ => allow(),
    });
    let admin = TestClient::new(&server);
    mutating(&admin, "b", json!({})).await;
    mutating(&admin, "a", json!({})).await;
    validating(&admin, "v", json!({})).await;
    let map = admin.post(MAPS, json!({"metadata": {"name": "m"}})).await.ok();
    assert_eq!(map["data"], json!({"a": "1", "b": "1"}));
    assert_eq!(paths(&reviews), ["/a", "/b", "/v"]);
    assert_eq!(reviews.lock()[2].1["request"]["object"]["data"], json!({"a": "1", "b": "1"}));
    // Values added by webhooks have no field manager.
    assert!(!map["metadata"]["managedFields"].to_string().contains("f:data"));
}

#[tokio::test]
async fn a_webhook_is_reinvoked_when_the_object_changed_after_it() {
    let count =
        |review: &Value| review["request"]["object"]["data"].as_object().map_or(0, serde_json::Map::len);
    let (server, reviews) = serve(move |path, review| match (path, count(review)) {
        ("/b", 1) => patch(&json!([{"op": "add", "path": "/data/b", "value": "1"}])),
        _ => allow(),
    });
    let admin = TestClient::new(&server);
    mutating(&admin, "a", json!({"reinvocationPolicy": "IfNeeded"})).await;
    mutating(&admin, "b", json!({"reinvocationPolicy": "IfNeeded"})).await;
    mutating(&admin, "c", json!({})).await;
    admin.config_map("m", json!({"own": "1"})).await.ok();
    assert_eq!(paths(&reviews), ["/a", "/b", "/c", "/a"]);
}

#[tokio::test]
async fn defaults_and_validation_come_after_mutation() {
    let (server, _) = serve(|path, _| match path {
        "/pod" => patch(
            &json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "car:1"}}]),
        ),
        "/bad" => patch(&json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "not a label"}}])),
        "/type" => patch(&json!([{"op": "add", "path": "/data", "value": 1}])),
        "/off" => patch(&json!([{"op": "remove", "path": "/data/missing"}])),
        _ => patch(
            &json!([{"op": "add", "path": "/metadata/managedFields", "value": [{"operation": "Guess"}]}]),
        ),
    });
    let admin = TestClient::new(&server);
    mutating(&admin, "pod", json!({"rules": rules("", &["pods"])})).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = admin.post("/api/v1/namespaces/default/pods", pod).await.ok();
    assert_eq!(pod["spec"]["containers"][1]["imagePullPolicy"], "IfNotPresent");
    for name in ["bad", "type", "off", "managers"] {
        mutating(&admin, name, json!({"objectSelector": {"matchLabels": {"for": name}}})).await;
    }
    let labelled = async |name: &str| {
        admin.post(MAPS, json!({"metadata": {"name": name, "labels": {"for": name}}, "data": {}})).await
    };
    let bad = labelled("bad").await;
    assert_eq!((bad.code, bad.body["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(labelled("type").await.code, 500);
    assert_eq!(labelled("off").await.body["reason"], "InternalError");
    let kept = labelled("managers").await;
    assert!(
        kept.warnings[0].starts_with(".metadata.managedFields was in an invalid state after admission;"),
        "{:?}",
        kept.warnings
    );
    assert_eq!(kept.ok()["metadata"]["managedFields"][0]["operation"], "Update");
}

#[tokio::test]
async fn warnings_reach_the_client() {
    let (server, _) =
        serve(|_, _| Reply::Response(json!({"allowed": true, "warnings": ["careful", "really"]})));
    let admin = TestClient::new(&server);
    validating(&admin, "w", json!({})).await;
    assert_eq!(admin.config_map("a", json!({})).await.warnings, ["careful", "really"]);
}

#[tokio::test]
async fn webhooks_that_only_support_v1beta1_get_v1beta1_reviews() {
    let (server, reviews) = serve(|_, _| {
        // v1beta1 does not check the uid and the patch type.
        let patch = STANDARD.encode(json!([{"op": "add", "path": "/data/b", "value": "1"}]).to_string());
        Reply::Response(json!({"allowed": true, "uid": "", "patch": patch}))
    });
    let admin = TestClient::new(&server);
    mutating(&admin, "old", json!({"admissionReviewVersions": ["v0", "v1beta1", "v1"]})).await;
    let map = admin.config_map("m", json!({"a": "1"})).await.ok();
    assert_eq!(map["data"]["b"], "1");
    assert_eq!(reviews.lock()[0].1["apiVersion"], "admission.k8s.io/v1beta1");
}

#[tokio::test]
async fn a_deletion_cannot_be_patched() {
    let (server, _) = serve(|_, review| match review["request"]["operation"].as_str() {
        Some("DELETE") => patch(&json!([{"op": "add", "path": "/data/b", "value": "1"}])),
        _ => allow(),
    });
    let admin = TestClient::new(&server);
    admin.config_map("m", json!({})).await.ok();
    mutating(&admin, "m", json!({})).await;
    admin.send("DELETE", &format!("{MAPS}/m"), Value::Null).await.rejected(
        500,
        "Internal error occurred: admission webhook \"m.example.com\" attempted to modify the object, which is not \
         supported for this operation",
    );
}

#[tokio::test]
async fn conditions_selectors_and_versions_select_the_webhooks_to_call() {
    let (server, reviews) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    validating(
        &admin,
        "condition",
        json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'yes'"}]}),
    )
    .await;
    validating(
        &admin,
        "namespace",
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}),
    )
    .await;
    validating(&admin, "cluster", json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"], "scope": "Cluster"}]})).await;
    let autoscalers = json!([{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["horizontalpodautoscalers"]}]);
    validating(&admin, "equivalent", json!({"rules": autoscalers})).await;
    validating(&admin, "exact", json!({"rules": autoscalers, "matchPolicy": "Exact"})).await;
    admin.config_map("no", json!({})).await.ok();
    admin.config_map("yes", json!({})).await.ok();
    admin.post("/api/v1/namespaces/kube-system/configmaps", json!({"metadata": {"name": "no"}})).await.ok();
    admin.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.ok();
    let scaler = json!({
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}, "maxReplicas": 2},
    });
    admin.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler).await.ok();
    assert_eq!(paths(&reviews), ["/condition", "/namespace", "/cluster", "/equivalent"]);
    let last = reviews.lock()[3].1["request"].clone();
    assert_eq!((&last["kind"]["version"], &last["requestKind"]["version"]), (&json!("v1"), &json!("v2")));
    assert_eq!(last["object"]["apiVersion"], "autoscaling/v1");
}

#[tokio::test]
async fn services_are_resolved_by_their_names() {
    let (server, reviews) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    let service = json!({"service": {"namespace": "default", "name": "hooks", "path": "/x"}});
    validating(&admin, "s", json!({"clientConfig": service})).await;
    admin.config_map("a", json!({})).await.rejected(
        500,
        "Internal error occurred: failed calling webhook \"s.example.com\": failed to call webhook: Post \
         \"https://hooks.default.svc:443/x?timeout=3s\": service \"hooks\" not found",
    );
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
    admin.post("/api/v1/namespaces/default/services", service).await.ok();
    admin.config_map("a", json!({})).await.ok();
    assert_eq!(paths(&reviews), ["/x"]);
}

#[tokio::test]
async fn bindings_and_evictions_are_reviewed_as_such() {
    let (server, reviews) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    validating(&admin, "pods", json!({"rules": rules("", &["pods/binding", "pods/eviction"])})).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    admin.post(pods, pod).await.ok();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    admin.post(&format!("{pods}/p/binding"), binding).await.ok();
    admin.post(&format!("{pods}/p/eviction"), json!({"metadata": {"name": "p"}})).await.ok();
    let reviews = reviews.lock();
    let kinds: Vec<&Value> = reviews.iter().map(|(_, review)| &review["request"]["kind"]["kind"]).collect();
    assert_eq!(kinds, ["Binding", "Eviction"]);
    assert_eq!(reviews[0].1["request"]["object"]["target"]["name"], "n");
}

#[tokio::test]
async fn an_invalid_ca_bundle_fails_before_the_call() {
    let (server, reviews) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    let config = json!({"url": "https://hooks.test/x", "caBundle": STANDARD.encode("no certificate")});
    validating(&admin, "c", json!({"clientConfig": config})).await;
    admin.config_map("a", json!({})).await.rejected(
        500,
        "Internal error occurred: failed calling webhook \"c.example.com\": could not get REST client: unable to load \
         root certificates: unable to parse bytes as PEM block",
    );
    assert!(paths(&reviews).is_empty());
}

#[tokio::test]
async fn a_rule_for_reviews_gets_a_warning() {
    let (server, _) = serve(|_, _| allow());
    let admin = TestClient::new(&server);
    let rules = json!([{"apiGroups": ["authentication.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["tokenreviews"]}]);
    let content = json!({"webhooks": [hook("r", &json!({"rules": rules}))]});
    let answer = admin.configure("ValidatingWebhookConfiguration", "r", content).await;
    assert_eq!(answer.code, 201);
    assert_eq!(
        answer.warnings,
        [
            "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect"
        ]
    );
}
