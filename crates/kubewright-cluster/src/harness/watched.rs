//! Changes of a cluster whose storage is elsewhere, observed by metadata watches of every kind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use indexmap::IndexMap;
use kube::{Client, core::ObjectMeta};
use kubewright::{
    Error, ObjectKey,
    cache::Event,
    client::{Clients, ResourceInfo},
};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::seen::ChangedObject;
use crate::lifecycle::monitors::{Metadata, Monitors, api_of};

/// Finalizers that the control plane removes by itself.
const CONTROL_PLANE_FINALIZERS: [&str; 5] = [
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/pv-protection",
    "customresourcecleanup.apiextensions.k8s.io",
];

/// Watches of every kind, which end when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ChangeWatcher {
    clients: Clients,
    state: Arc<Mutex<State>>,
    _stop_on_drop: Arc<DropGuard>,
}

#[derive(Debug)]
struct State {
    /// Number of changes; objects of the initial list have number 0.
    changes: u64,
    last: (Instant, String),
    objects: IndexMap<(String, ObjectKey), WatchedObject>,
}

#[derive(Debug)]
struct WatchedObject {
    resource: Arc<ResourceInfo>,
    change: u64,
    terminating: bool,
}

impl State {
    fn observe(&mut self, resource: &Arc<ResourceInfo>, event: &Event<Metadata>) {
        if resource.plural == "leases" || event.is_sync() {
            return;
        }
        let object = event.object();
        let id = (resource.to_string(), object.key().clone());
        let listed = matches!(event, Event::Added { is_in_initial_list: true, .. });
        let change = if listed { 0 } else { self.changes + 1 };
        if !listed {
            self.changes = change;
            let version = object.resource_version();
            self.last = (Instant::now(), format!("{} {} at version {version}", id.0, id.1));
        }
        if matches!(event, Event::Deleted { .. }) {
            self.objects.shift_remove(&id);
            return;
        }
        let terminating = object.load().is_ok_and(|object| is_terminating(resource, &object.metadata));
        self.objects.insert(id, WatchedObject { resource: Arc::clone(resource), change, terminating });
    }
}

/// Whether an object is being deleted and waits for the control plane only.
fn is_terminating(resource: &ResourceInfo, metadata: &ObjectMeta) -> bool {
    let has_other_finalizers = metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| !CONTROL_PLANE_FINALIZERS.contains(&finalizer.as_str()));
    metadata.deletion_timestamp.is_some() && (resource.plural == "namespaces" || !has_other_finalizers)
}

impl ChangeWatcher {
    /// Starts the watches; returns when the initial lists are complete.
    pub(crate) async fn start(client: &Client) -> Result<Self, Error> {
        let clients = Clients::new(client.clone());
        let monitors = Monitors::new(&clients);
        let state =
            State { changes: 0, last: (Instant::now(), "nothing".to_owned()), objects: IndexMap::new() };
        let state = Arc::new(Mutex::new(state));
        monitors.listen({
            let state = Arc::clone(&state);
            move |resource, event| state.lock().observe(resource, event)
        });
        monitors.sync().await?;
        let stop = CancellationToken::new();
        tokio::spawn({
            let stop = stop.clone();
            async move { monitors.follow(&stop).await }
        });
        Ok(Self { clients, state, _stop_on_drop: Arc::new(stop.drop_guard()) })
    }

    /// The client of the watched cluster.
    pub(crate) fn client(&self) -> Client {
        self.clients.client()
    }

    /// The time since the last change, and its description.
    pub(super) fn quiet(&self) -> (Duration, String) {
        let state = self.state.lock();
        (state.last.0.elapsed(), state.last.1.clone())
    }

    /// Whether an object is being deleted.
    pub(super) fn has_terminating(&self) -> bool {
        self.state.lock().objects.values().any(|object| object.terminating)
    }

    /// The newest changed objects, oldest first.
    pub(super) async fn changed(&self, limit: usize) -> Vec<ChangedObject> {
        let mut changed_objects: Vec<(u64, Arc<ResourceInfo>, ObjectKey)> = {
            let state = self.state.lock();
            let changed = state.objects.iter().filter(|(_, object)| object.change > 0);
            changed
                .map(|((_, key), object)| (object.change, Arc::clone(&object.resource), key.clone()))
                .collect()
        };
        changed_objects.sort_by_key(|(change, ..)| *change);
        let mut objects = Vec::new();
        for (change, resource, key) in changed_objects.split_off(changed_objects.len().saturating_sub(limit))
        {
            let api = api_of(self.clients.client(), &resource, key.namespace());
            // Deleted and unreadable objects are left out.
            let Ok(Some(found)) = api.get_opt(key.name()).await else { continue };
            let Ok(serde_json::Value::Object(object)) = serde_json::to_value(&found) else { continue };
            objects.push(ChangedObject {
                kind: resource.kind.clone(),
                name: key.to_string(),
                version: change,
                object,
            });
        }
        objects
    }
}
