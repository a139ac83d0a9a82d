//! Tests of the built-in plugins, and of custom plugins, authenticators and authorizers.

use kubewright_apiserver::{
    ApiServer,
    admission::{Attributes, Chain, Operation, Plugin},
    authn::{RequestAuthenticator, User},
    authz::{Access, Authorize, Opinion},
    registry::Registry,
    status::Status,
};
use serde_json::{Value, json};

use super::{TestClient, on_maps, server};

#[test]
fn plugins_can_be_disabled_by_name() {
    let chain = Chain::standard().without("LimitRanger").unwrap();
    assert!(!chain.names().any(|name| name == "LimitRanger"));
    let error = chain.without("LimitRanger").unwrap_err().to_string();
    let start = "there is no admission plugin \"LimitRanger\" to switch off; known are: NamespaceLifecycle,";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn a_server_does_not_start_with_unknown_plugins() {
    let builder = ApiServer::builder().enable_admission_plugins(["Guess"]);
    let error = builder.in_process().unwrap_err().to_string();
    assert!(error.starts_with("there is no admission plugin \"Guess\" to switch on;"), "{error}");
    let builder = ApiServer::builder().disable_admission_plugins(["Guess"]);
    assert!(builder.in_process().is_err());
}

/// Plugin that labels created objects and rejects forbidden ones.
#[derive(Debug)]
struct Labeller;

impl Plugin for Labeller {
    fn name(&self) -> &'static str {
        "Own"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation == Operation::Create && attributes.is("", "configmaps") {
            attributes.object["metadata"]["labels"] = json!({"seen": "yes"});
        }
        Ok(())
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.name() == "forbidden" { Err(attributes.forbid("by its name")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_custom_plugin_runs_before_policies_and_webhooks() {
    let chain = Chain::standard().with(Labeller);
    let names: Vec<_> = chain.names().collect();
    let place = |name: &str| names.iter().position(|known| *known == name);
    assert!(place("Own") > place("DefaultIngressClass") && place("Own") < place("MutatingAdmissionPolicy"));
    let server = ApiServer::builder().admission(chain).in_process().unwrap();
    let admin = TestClient::new(&server);
    let validations = json!([{"expression": "object.metadata.labels.seen == 'yes'"}]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    admin.config_map("a", json!({})).await.ok();
    admin
        .config_map("forbidden", json!({}))
        .await
        .rejected(403, "configmaps \"forbidden\" is forbidden: by its name");
}

/// Plugin that requires managedFields.
#[derive(Debug)]
struct RequiresManagers;

impl RequiresManagers {
    fn look(attributes: &Attributes<'_>) -> Result<(), Status> {
        let is_known = attributes.object["metadata"]["managedFields"][0]["operation"] == "Update";
        let is_config_map_create =
            attributes.operation == Operation::Create && attributes.is("", "configmaps");
        if is_config_map_create && !is_known { Err(attributes.forbid("nobody made it")) } else { Ok(()) }
    }
}

impl Plugin for RequiresManagers {
    fn name(&self) -> &'static str {
        "RequiresManagers"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        Self::look(attributes)
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        Self::look(attributes)
    }
}

#[tokio::test]
async fn plugins_see_the_managed_fields_of_new_objects() {
    let chain = Chain::standard().with(RequiresManagers);
    let server = ApiServer::builder().admission(chain).in_process().unwrap();
    let seen = TestClient::new(&server).config_map("a", json!({"k": "v"})).await.ok();

    let server = self::server();
    let admin = TestClient::new(&server);
    let validations = json!([{"expression": "object.metadata.managedFields.size() == 1"}]);
    admin.policy("p", json!({"matchConstraints": on_maps(), "validations": validations})).await;
    let judged = admin.config_map("a", json!({"k": "v"})).await.ok();
    let plain = TestClient::new(&self::server()).config_map("a", json!({"k": "v"})).await.ok();
    let fields = |map: &Value| map["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(fields(&plain), json!({"f:data": {".": {}, "f:k": {}}}));
    assert_eq!((fields(&seen), fields(&judged)), (fields(&plain), fields(&plain)));
}

/// Authenticator that trusts a header and a token.
#[derive(Debug)]
struct HeaderAuthenticator;

impl RequestAuthenticator for HeaderAuthenticator {
    fn authenticate(&self, _: &Registry, headers: &http::HeaderMap) -> Result<Option<User>, Status> {
        match headers.get("x-remote-user").and_then(|value| value.to_str().ok()) {
            None => Ok(None),
            Some("mallory") => Err(Status::unauthorized()),
            Some(name) => Ok(Some(User { name: name.into(), ..User::default() })),
        }
    }

    fn token(&self, _: &Registry, token: &str) -> Option<User> {
        (token == "opensesame").then(|| User { name: "ali".into(), ..User::default() })
    }
}

/// Sends a request with a header; returns the code and the user that the server authenticated.
async fn who(server: &ApiServer, header: (&str, &str)) -> (u16, Value) {
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .header(header.0, header.1)
        .body(kube::client::Body::from(review.to_string().into_bytes()))
        .expect("a request");
    let response = server.service().oneshot(request).await.expect("the server answers");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("an answer is JSON");
    (code, body["status"]["userInfo"].clone())
}

#[tokio::test]
async fn a_custom_authenticator_authenticates_requests() {
    let server = ApiServer::builder().authenticator(HeaderAuthenticator).in_process().unwrap();
    let (code, user) = who(&server, ("x-remote-user", "alice")).await;
    assert_eq!((code, user), (201, json!({"username": "alice", "groups": ["system:authenticated"]})));
    let (code, user) = who(&server, ("authorization", "Bearer opensesame")).await;
    assert_eq!((code, &user["username"]), (201, &json!("ali")));
    assert_eq!(who(&server, ("x-remote-user", "mallory")).await.0, 401);
    assert_eq!(who(&server, ("authorization", "Bearer closed")).await.0, 401);
    // Anonymous users may not even review themselves.
    assert_eq!(who(&server, ("x-other", "1")).await.0, 403);
}

/// Authorizer that allows a robot everything and denies access to secrets.
#[derive(Debug)]
struct RobotAuthorizer;

impl Authorize for RobotAuthorizer {
    fn authorize(&self, _: &Registry, user: &User, access: &Access<'_>) -> Opinion {
        match (user.name.as_str(), access.resource) {
            (_, "secrets") => Opinion::Deny("not here".into()),
            ("robot", _) => Opinion::Allow("a robot".into()),
            _ => Opinion::None,
        }
    }
}

#[tokio::test]
async fn a_custom_authorizer_runs_before_rbac() {
    let server = ApiServer::builder().authorizer(RobotAuthorizer).in_process().unwrap();
    let (admin, robot, alice) =
        (TestClient::new(&server), TestClient::user(&server, "robot"), TestClient::user(&server, "alice"));
    robot.config_map("a", json!({})).await.ok();
    assert_eq!(alice.config_map("b", json!({})).await.code, 403);
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(admin.send("GET", secrets, Value::Null).await.code, 403);
    admin.config_map("b", json!({})).await.ok();
}

#[tokio::test]
async fn optional_plugins_work_once_enabled() {
    let plugins = [
        "AlwaysPullImages",
        "ExtendedResourceToleration",
        "PodNodeSelector",
        "LimitPodHardAntiAffinityTopology",
    ];
    let server = ApiServer::builder().enable_admission_plugins(plugins).in_process().unwrap();
    let admin = TestClient::new(&server);
    let annotations = json!({"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "zone=a, disk=ssd"}}});
    admin.send("PATCH", "/api/v1/namespaces/default", annotations).await.ok();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, more: Value| {
        let resources = json!({"limits": {"example.com/gpu": "1"}});
        let mut spec = json!({"containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "Never", "resources": resources}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let made = admin.post(pods, pod("a", json!({"nodeSelector": {"zone": "a"}}))).await.ok();
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a", "disk": "ssd"}));
    let toleration = json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"});
    assert!(made["spec"]["tolerations"].as_array().unwrap().contains(&toleration));
    admin.post(pods, pod("b", json!({"nodeSelector": {"zone": "b"}}))).await.rejected(
        403,
        "pods \"b\" is forbidden: pod node label selector conflicts with its namespace node label selector",
    );
    let term = json!({"topologyKey": "zone", "labelSelector": {}});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    admin.post(pods, pod("c", json!({"affinity": affinity}))).await.rejected(
        403,
        "pods \"c\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key \
         kubernetes.io/hostname is allowed",
    );
}

#[tokio::test]
async fn classes_are_defaulted_and_enforced() {
    let server = server();
    let admin = TestClient::new(&server);
    let default = |class: &str| json!({format!("{class}.kubernetes.io/is-default-class"): "true"});
    let class = json!({"metadata": {"name": "fast", "annotations": default("storageclass")}, "provisioner": "p", "allowVolumeExpansion": false});
    admin.post("/apis/storage.k8s.io/v1/storageclasses", class).await.ok();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |name: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        })
    };
    assert_eq!(admin.post(claims, claim("a")).await.ok()["spec"]["storageClassName"], "fast");
    let grow = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let grown = admin.send("PATCH", &format!("{claims}/a"), grow.clone()).await;
    assert!(matches!(grown.code, 403 | 422), "{}", grown.body);
    let class = json!({"metadata": {"name": "nginx", "annotations": default("ingressclass")}, "spec": {"controller": "example.com/c"}});
    admin.post("/apis/networking.k8s.io/v1/ingressclasses", class).await.ok();
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
    let made = admin.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress).await.ok();
    assert_eq!(made["spec"]["ingressClassName"], "nginx");
}

#[tokio::test]
async fn pods_get_the_overhead_of_their_runtime_class() {
    let server = server();
    let admin = TestClient::new(&server);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, more: Value| {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"name": name}, "spec": spec})
    };
    admin
        .post(pods, pod("a", json!({"runtimeClassName": "kata"})))
        .await
        .rejected(403, "pods \"a\" is forbidden: pod rejected: RuntimeClass \"kata\" not found");
    let class = json!({
        "metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}},
    });
    admin.post("/apis/node.k8s.io/v1/runtimeclasses", class).await.ok();
    let made = admin.post(pods, pod("a", json!({"runtimeClassName": "kata"}))).await.ok();
    assert_eq!(
        (&made["spec"]["overhead"], &made["spec"]["nodeSelector"]),
        (&json!({"cpu": "100m"}), &json!({"kata": "yes"}))
    );
    let other = json!({"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}});
    admin.post(pods, pod("b", other)).await.rejected(
        403,
        "pods \"b\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
    );
}

#[tokio::test]
async fn policies_cannot_read_params_that_their_authors_cannot() {
    let server = server();
    let admin = TestClient::new(&server);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]});
    admin
        .post(&format!("{rbac}/clusterroles"), json!({"metadata": {"name": "author"}, "rules": [rule]}))
        .await
        .ok();
    let binding = json!({
        "metadata": {"name": "author"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    });
    admin.post(&format!("{rbac}/clusterrolebindings"), binding).await.ok();
    let alice = TestClient::user(&server, "alice");
    let spec = json!({
        "matchConstraints": on_maps(), "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "params != null"}],
    });
    let refused = alice.configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.body["details"]["causes"][0]["message"],
        "Forbidden: user &{alice  [system:authenticated] map[]} must have \"get\" permission on all objects of the \
         referenced paramKind (kind=Secret, apiVersion=v1)"
    );
    admin.configure("ValidatingAdmissionPolicy", "p", json!({"spec": spec})).await.ok();
    let reference = json!({"name": "s", "namespace": "default", "parameterNotFoundAction": "Deny"});
    let binding = json!({"spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}});
    let refused = alice.configure("ValidatingAdmissionPolicyBinding", "b", binding).await;
    assert!(
        refused.message().ends_with("does not have \"get\" permission on the object referenced by paramRef"),
        "{}",
        refused.message()
    );
}

#[tokio::test]
async fn pods_get_a_token_volume_of_their_service_account() {
    let server = ApiServer::builder().enable_admission_plugins(["ServiceAccount"]).in_process().unwrap();
    let admin = TestClient::new(&server);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, account: &str| json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}});
    admin.post(pods, pod("a", "")).await.rejected(
        403,
        "pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found",
    );
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]});
    admin.post(accounts, account).await.ok();
    let made = admin.post(pods, pod("a", "")).await.ok();
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], spec["volumes"][0]["name"]);
    assert_eq!(spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["path"], "token");
    let account = json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false});
    admin.post(accounts, account).await.ok();
    let made = admin.post(pods, pod("b", "quiet")).await.ok();
    assert!(made["spec"].get("volumes").is_none());
}

#[tokio::test]
async fn an_operator_that_may_not_update_finalizers_does_not_block_its_owners() {
    let server = ApiServer::builder()
        .enable_admission_plugins(["OwnerReferencesPermissionEnforcement"])
        .in_process()
        .unwrap();
    let admin = TestClient::new(&server);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = |resource: &str| json!({"apiGroups": ["", "apps"], "resources": [resource], "verbs": ["*"]});
    admin
        .post(
            &format!("{rbac}/clusterroles"),
            json!({"metadata": {"name": "op"}, "rules": [rule("configmaps")]}),
        )
        .await
        .ok();
    let binding = json!({
        "metadata": {"name": "op"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "op"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "operator"}],
    });
    admin.post(&format!("{rbac}/clusterrolebindings"), binding).await.ok();
    let operator = TestClient::user(&server, "operator");
    let owned = |block: bool| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "blockOwnerDeletion": block});
        json!({"metadata": {"name": "m", "ownerReferences": [owner]}})
    };
    operator.post(super::MAPS, owned(true)).await.rejected(
        403,
        "configmaps \"m\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
         set finalizers on: , <nil>",
    );
    operator.post(&format!("{}?dryRun=All", super::MAPS), owned(false)).await.ok();
    let rules = json!({"rules": [rule("configmaps"), rule("deployments/finalizers")]});
    admin.send("PATCH", &format!("{rbac}/clusterroles/op"), rules).await.ok();
    operator.post(super::MAPS, owned(true)).await.ok();
}
