//! Fake API server with fault injection: lists, watches and plain writes of any resource, in memory.
//!
//! It is no embedded cluster: it has no schemas, defaults or permissions. It injects, at a chosen moment,
//! faults that are rare on real servers.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test program uses its own part of this")]

mod answers;
mod rig;
mod script;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body::Frame;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use rig::{Rig, eventually};
pub use script::{Ending, PlannedFault};

type FrameResult = Result<Frame<Bytes>, std::io::Error>;

/// The server. Clones share it.
#[derive(Clone, Default)]
pub struct FakeApi {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    revision: u64,
    uids: u64,
    /// By path of the collection (`/api/v1/namespaces/x/pods`), then by name.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    history: Vec<Change>,
    /// Changes up to this revision are compacted.
    compacted: u64,
    watches: Vec<Watch>,
    requests: Vec<String>,
    script: script::Script,
    supports_streaming: bool,
    /// Requests whose path contains this are rejected.
    rejected: Option<(String, u16, &'static str)>,
    /// Whether connections are refused.
    is_down: bool,
    /// Whether lists at version 0 are paginated too, as by a server without a watch cache.
    pages_at_zero: bool,
}

#[derive(Clone)]
struct Change {
    revision: u64,
    collection: String,
    kind: &'static str,
    object: Value,
}

struct Watch {
    path: String,
    selector: Option<String>,
    metadata_only: bool,
    sender: mpsc::UnboundedSender<FrameResult>,
}

impl FakeApi {
    pub fn new() -> Self {
        let api = Self::default();
        api.state.lock().revision = 100;
        api.state.lock().supports_streaming = true;
        api
    }

    /// Creates a server that rejects streams of initial events, as servers before 1.32 do.
    pub fn without_streaming() -> Self {
        let api = Self::new();
        api.state.lock().supports_streaming = false;
        api
    }

    /// Creates a server that serves every list from its storage, paginated.
    pub fn without_watch_cache() -> Self {
        let api = Self::without_streaming();
        api.state.lock().pages_at_zero = true;
        api
    }

    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<answers::Answer>, std::io::Error> {
        use http_body_util::BodyExt as _;
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        answers::answer(&mut self.state.lock(), &parts, &body)
    }

    /// Returns all requests so far: method, path and query.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().requests.clone()
    }

    pub fn forget_requests(&self) {
        self.state.lock().requests.clear();
    }

    /// Returns the requests that contain this text.
    pub fn requests_with(&self, text: &str) -> Vec<String> {
        self.requests().into_iter().filter(|request| request.contains(text)).collect()
    }

    /// Plans a fault for the next matching request.
    pub fn plan(&self, planned_fault: PlannedFault) {
        self.state.lock().script.plan(planned_fault);
    }

    /// Creates or replaces an object. Sets its version and, if it is new, its uid.
    pub fn put(&self, collection: &str, object: Value) -> Value {
        self.state.lock().put(collection, object)
    }

    /// Puts a config map.
    pub fn put_config_map(&self, namespace: &str, name: &str, data: &str) -> Value {
        self.put(
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": namespace, "name": name, "managedFields": [{"manager": "test"}]},
                "data": {"value": data},
            }),
        )
    }

    pub fn delete(&self, collection: &str, name: &str) {
        self.state.lock().delete(collection, name);
    }

    pub fn delete_config_map(&self, namespace: &str, name: &str) {
        self.delete(&format!("/api/v1/namespaces/{namespace}/configmaps"), name);
    }

    /// Returns the objects below a path as `namespace/name` → version.
    pub fn content(&self, path: &str) -> BTreeMap<String, String> {
        let state = self.state.lock();
        let mut content = BTreeMap::new();
        for (_, object) in state.under(path) {
            let meta = &object["metadata"];
            let name = meta["name"].as_str().unwrap_or_default();
            let key = match meta["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_owned(),
            };
            content.insert(key, meta["resourceVersion"].as_str().unwrap_or_default().to_owned());
        }
        content
    }

    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Returns the number of open watches.
    pub fn open_watches(&self) -> usize {
        let mut state = self.state.lock();
        state.watches.retain(|watch| !watch.sender.is_closed());
        state.watches.len()
    }

    /// Rejects every request whose path contains this; `None` ends it.
    pub fn reject(&self, path: &str, with: Option<(u16, &'static str)>) {
        self.state.lock().rejected = with.map(|(code, reason)| (path.to_owned(), code, reason));
    }

    /// Refuses connections, or accepts them again. Open watches are reset.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().is_down = is_down;
        if is_down {
            self.end_watches(&Ending::Reset);
        }
    }

    /// Returns one stored object.
    pub fn object(&self, collection: &str, name: &str) -> Option<Value> {
        self.state.lock().objects.get(collection)?.get(name).cloned()
    }

    /// Ends every open watch.
    pub fn end_watches(&self, ending: &Ending) {
        for watch in std::mem::take(&mut self.state.lock().watches) {
            ending.apply(&watch.sender);
        }
    }

    /// Sends a raw line to every open watch.
    pub fn send_line(&self, line: &Value) {
        for watch in &self.state.lock().watches {
            // The watch may be closed.
            let _ = watch.sender.unbounded_send(Ok(script::line(line)));
        }
    }

    /// Sends a bookmark for this version to every open watch.
    pub fn bookmark(&self, revision: u64) {
        self.send_line(&json!({
            "type": "BOOKMARK",
            "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string()}},
        }));
    }

    /// Compacts the history: watches from before now end with 410.
    pub fn compact(&self) {
        let mut state = self.state.lock();
        state.compacted = state.revision;
        state.history.clear();
    }

    /// Restores a backup: the same objects, lower versions, no history.
    pub fn restore(&self, revision: u64) {
        let mut state = self.state.lock();
        state.revision = revision;
        state.compacted = 0;
        state.history.clear();
        let State { objects, revision, .. } = &mut *state;
        for object in objects.values_mut().flat_map(BTreeMap::values_mut) {
            *revision += 1;
            object["metadata"]["resourceVersion"] = json!(revision.to_string());
        }
        drop(state);
        self.end_watches(&Ending::Clean);
    }

    /// Makes changes that no open watch observes.
    pub fn unobserved(&self, change: impl FnOnce(&Self)) {
        let watches = std::mem::take(&mut self.state.lock().watches);
        change(self);
        self.state.lock().watches = watches;
    }
}

impl State {
    fn put(&mut self, collection: &str, mut object: Value) -> Value {
        self.revision += 1;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let held = self.objects.entry(collection.to_owned()).or_default();
        let kind = if held.contains_key(&name) { "MODIFIED" } else { "ADDED" };
        let uid = if let Some(old) = held.get(&name) {
            old["metadata"]["uid"].clone()
        } else {
            self.uids += 1;
            json!(format!("uid-{}", self.uids))
        };
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        held.insert(name, object.clone());
        self.publish(collection, kind, object.clone());
        object
    }

    fn delete(&mut self, collection: &str, name: &str) -> Option<Value> {
        let mut object = self.objects.get_mut(collection)?.remove(name)?;
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.publish(collection, "DELETED", object.clone());
        Some(object)
    }

    fn publish(&mut self, collection: &str, kind: &'static str, object: Value) {
        let change = Change { revision: self.revision, collection: collection.to_owned(), kind, object };
        self.watches.retain(|watch| watch.send(&change).is_ok());
        self.history.push(change);
    }

    /// Iterates over the objects of a collection, or of all its namespaces.
    fn under<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.objects.iter().filter(move |(collection, _)| covers(path, collection)).flat_map(|(_, held)| held)
    }
}

impl Watch {
    fn send(&self, change: &Change) -> Result<(), ()> {
        if !covers(&self.path, &change.collection) || !selects(self.selector.as_deref(), &change.object) {
            return Ok(());
        }
        let object = answers::projected(&change.object, self.metadata_only);
        let line = script::line(&json!({"type": change.kind, "object": object}));
        self.sender.unbounded_send(Ok(line)).map_err(drop)
    }
}

/// Returns whether a request for `path` covers `collection`: the same, or all namespaces of it.
fn covers(path: &str, collection: &str) -> bool {
    if path == collection {
        return true;
    }
    let Some((prefix, rest)) = collection.split_once("/namespaces/") else { return false };
    rest.split_once('/').is_some_and(|(_, plural)| path == format!("{prefix}/{plural}"))
}

/// Matches equality selectors, several separated by commas.
fn selects(selector: Option<&str>, object: &Value) -> bool {
    selector.unwrap_or_default().split(',').filter(|part| !part.is_empty()).all(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        object["metadata"]["labels"][key].as_str() == Some(value)
    })
}
