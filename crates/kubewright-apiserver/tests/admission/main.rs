//! Tests of admission: policies, webhooks and custom plugins.

mod mutations;
mod plugins;
mod policies;
mod refusals;
mod tls;
mod webhooks;

use http_body_util::BodyExt;
use kubewright_apiserver::{ApiServer, authn::User};
use serde_json::{Value, json};

/// Response of the server.
#[derive(Debug)]
struct Answer {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    #[track_caller]
    fn ok(self) -> Value {
        assert!(self.code < 300, "{} {}", self.code, self.body);
        self.body
    }

    #[track_caller]
    fn rejected(self, code: u16, message: &str) -> Value {
        assert_eq!((self.code, self.message()), (code, message));
        self.body
    }
}

/// Client of a server.
struct TestClient(kube::Client);

impl TestClient {
    fn new(server: &ApiServer) -> Self {
        Self(server.client())
    }

    fn user(server: &ApiServer, name: &str) -> Self {
        Self(server.client_as(User { name: name.into(), ..User::default() }))
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        let media = match method {
            "PATCH" if body.is_array() => "application/json-patch+json",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(kube::client::Body::from(bytes))
            .expect("a request");
        let response = self.0.send(request).await.expect("the server answers");
        let code = response.status().as_u16();
        let text = |value: &http::HeaderValue| {
            let value = value.to_str().expect("a header is text");
            value.trim_start_matches("299 - \"").trim_end_matches('"').to_owned()
        };
        let warnings = response.headers().get_all("warning").iter().map(text).collect();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        Answer { code, body: serde_json::from_slice(&body).unwrap_or_default(), warnings }
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, body).await
    }

    /// Creates an admission configuration object.
    async fn configure(&self, kind: &str, name: &str, content: Value) -> Answer {
        let plural = match kind {
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
                kind.to_lowercase().replace("policy", "policies")
            }
            other => other.to_lowercase() + "s",
        };
        let mut body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
        for (key, value) in content.as_object().expect("content is an object") {
            body[key] = value.clone();
        }
        self.post(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), body).await
    }

    /// Creates a validating policy bound to all namespaces.
    async fn policy(&self, name: &str, spec: Value) {
        self.configure("ValidatingAdmissionPolicy", name, json!({"spec": spec})).await.ok();
        let binding = json!({"spec": {"policyName": name, "validationActions": ["Deny"]}});
        self.configure("ValidatingAdmissionPolicyBinding", name, binding).await.ok();
    }

    async fn config_map(&self, name: &str, data: Value) -> Answer {
        self.post(MAPS, json!({"metadata": {"name": name}, "data": data})).await
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns rules for all operations on some resources.
fn rules(group: &str, resources: &[&str]) -> Value {
    json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": resources}])
}

fn on_maps() -> Value {
    json!({"resourceRules": rules("", &["configmaps"])})
}

fn server() -> ApiServer {
    ApiServer::builder().in_process().expect("a server starts")
}
