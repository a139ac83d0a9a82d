//! Objects straight into etcd, in the form that kube-apiserver keeps them in: what fills a real server in seconds.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::objects::key;

/// etcd refuses transactions of more operations than 128, and more bytes than 1.5 MB.
const OPERATIONS: usize = 100;

/// A client of etcd's JSON gateway.
pub struct Etcd {
    client: Client,
}

impl Etcd {
    /// The etcd at this address.
    pub fn at(url: &str) -> Self {
        let config = kube::Config::new(url.parse().expect("an address of this machine is a URL"));
        Self { client: Client::try_from(config).expect("plain HTTP needs nothing") }
    }

    /// Writes objects of one resource, changed by `change` immediately before each goes out.
    pub async fn put(
        &self,
        resource: &str,
        objects: impl IntoIterator<Item = Value>,
        mut change: impl FnMut(&mut Value),
    ) {
        let mut operations = Vec::with_capacity(OPERATIONS);
        for mut object in objects {
            change(&mut object);
            let metadata = object["metadata"].as_object_mut().expect("objects have metadata");
            metadata.remove("resourceVersion");
            let bytes = kubewright_schema::protobuf::encode(&object).expect("it is a built-in type");
            let put = json!({"key": path(resource, &object), "value": BASE64.encode(bytes)});
            operations.push(json!({"requestPut": put}));
            if operations.len() == OPERATIONS {
                self.commit(std::mem::take(&mut operations)).await;
            }
        }
        self.commit(operations).await;
    }

    /// Deletes objects of one resource.
    pub async fn delete(&self, resource: &str, objects: impl IntoIterator<Item = Value>) {
        let deletes = objects
            .into_iter()
            .map(|object| json!({"requestDeleteRange": {"key": path(resource, &object)}}))
            .collect();
        self.commit(deletes).await;
    }

    async fn commit(&self, operations: Vec<Value>) {
        if operations.is_empty() {
            return;
        }
        let body = json!({"success": operations}).to_string().into_bytes();
        let request = Request::post("/v3/kv/txn").body(body).expect("the path is one");
        self.client.request_text(request).await.expect("etcd takes it");
    }
}

fn path(resource: &str, object: &Value) -> String {
    let (namespace, name) = key(object);
    BASE64.encode(format!("/registry/{resource}/{namespace}/{name}"))
}
