//! Tests of CRDs and custom resources through a `kube::Client` in process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]

mod histories;
mod lifecycle;
mod samples;
mod versions;
mod writes;

use futures::{AsyncBufReadExt, TryStreamExt};
use http::{Method, Request};
use kube::{Client, core::Status};
use kubewright_apiserver::ApiServer;
use kubewright_core::Clock;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// Server with a JSON client.
struct World {
    /// Requests and watches end when it is dropped.
    _server: ApiServer,
    client: Client,
}

impl World {
    fn new() -> Self {
        let clock = Clock::starting_at("2026-08-01T00:00:00Z".parse().unwrap());
        let server = ApiServer::builder().clock(clock).seed(7).in_process().unwrap();
        Self { client: server.client(), _server: server }
    }

    /// Starts a server with a CRD of widgets.
    async fn with(version: Value) -> Self {
        let world = Self::new();
        world.post(DEFINITIONS, &widgets([version])).await.unwrap();
        world
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<Value, Status> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", media).body(body);
        match self.client.request::<Value>(request.unwrap()).await {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => Err(*status),
            Err(other) => panic!("{path}: {other}"),
        }
    }

    async fn get(&self, path: &str) -> Result<Value, Status> {
        self.send(Method::GET, path, "application/json", &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.send(Method::POST, path, "application/json", body).await
    }

    async fn put(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.send(Method::PUT, path, "application/json", body).await
    }

    async fn merge(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.send(Method::DELETE, path, "application/json", &Value::Null).await
    }

    /// Returns the status code of a response that is not JSON.
    async fn code(&self, path: &str) -> u16 {
        let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
        self.client.send(request).await.unwrap().status().as_u16()
    }

    /// Starts a watch; the stream ends when the server ends it.
    async fn watch(&self, path: &str) -> Events {
        let request = Request::get(path).body(Vec::new()).unwrap();
        let lines = self.client.request_stream(request).await.unwrap();
        Events(Box::pin(lines.lines()))
    }
}

struct Events(std::pin::Pin<Box<dyn futures::Stream<Item = std::io::Result<String>> + Send>>);

impl Events {
    async fn next(&mut self) -> Option<(String, Value)> {
        let line = self.0.try_next().await.unwrap()?;
        let event: Value = serde_json::from_str(&line).unwrap();
        Some((event["type"].as_str().unwrap().to_owned(), event["object"].clone()))
    }
}

/// Returns a CRD of widgets in the group `example.com`.
fn widgets(versions: impl Into<Vec<Value>>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions.into(),
        },
    })
}

/// Returns a storage version whose spec has these properties.
fn version(name: &str, spec: Value) -> Value {
    let spec = json!({"type": "object", "properties": spec});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"name": name, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn condition<'c>(crd: &'c Value, kind: &str) -> &'c Value {
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}
