//! What changes in a cluster whose storage is out of reach, told by watches of the metadata of every kind.

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

use super::seen::Seen;
use crate::lifecycle::monitors::{Metadata, Monitors, api_of};

/// Finalizers that the control plane takes away by itself.
const PASSING: [&str; 5] = [
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/pv-protection",
    "customresourcecleanup.apiextensions.k8s.io",
];

/// Watches of every kind. They end when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    clients: Clients,
    state: Arc<Mutex<State>>,
    _following: Arc<DropGuard>,
}

#[derive(Debug)]
struct State {
    /// Counts changes; what was there before is of change 0.
    changes: u64,
    last: (Instant, String),
    objects: IndexMap<(String, ObjectKey), Known>,
}

#[derive(Debug)]
struct Known {
    resource: Arc<ResourceInfo>,
    change: u64,
    going: bool,
}

impl State {
    fn tell(&mut self, resource: &Arc<ResourceInfo>, event: &Event<Metadata>) {
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
        let going = object.load().is_ok_and(|object| is_going(resource, &object.metadata));
        self.objects.insert(id, Known { resource: Arc::clone(resource), change, going });
    }
}

/// Whether an object is on its way out and waits for nobody but the control plane.
fn is_going(resource: &ResourceInfo, metadata: &ObjectMeta) -> bool {
    let held_by_others =
        metadata.finalizers.iter().flatten().any(|finalizer| !PASSING.contains(&finalizer.as_str()));
    metadata.deletion_timestamp.is_some() && (resource.plural == "namespaces" || !held_by_others)
}

impl Watched {
    /// Watches from now on; what is there already has been listed when this returns.
    pub(crate) async fn start(client: &Client) -> Result<Self, Error> {
        let clients = Clients::new(client.clone());
        let monitors = Monitors::new(&clients);
        let state =
            State { changes: 0, last: (Instant::now(), "nothing".to_owned()), objects: IndexMap::new() };
        let state = Arc::new(Mutex::new(state));
        monitors.listen({
            let state = Arc::clone(&state);
            move |resource, event| state.lock().tell(resource, event)
        });
        monitors.sync().await?;
        let stop = CancellationToken::new();
        tokio::spawn({
            let stop = stop.clone();
            async move { monitors.follow(&stop).await }
        });
        Ok(Self { clients, state, _following: Arc::new(stop.drop_guard()) })
    }

    /// The client of the cluster that is watched.
    pub(crate) fn client(&self) -> Client {
        self.clients.client()
    }

    /// For how long nothing has changed, and what did last.
    pub(super) fn quiet(&self) -> (Duration, String) {
        let state = self.state.lock();
        (state.last.0.elapsed(), state.last.1.clone())
    }

    /// Whether anything is on its way out.
    pub(super) fn anything_going(&self) -> bool {
        self.state.lock().objects.values().any(|known| known.going)
    }

    /// The newest objects that have changed, oldest first.
    pub(super) async fn changed(&self, limit: usize) -> Vec<Seen> {
        let mut touched: Vec<(u64, Arc<ResourceInfo>, ObjectKey)> = {
            let state = self.state.lock();
            let changed = state.objects.iter().filter(|(_, known)| known.change > 0);
            changed
                .map(|((_, key), known)| (known.change, Arc::clone(&known.resource), key.clone()))
                .collect()
        };
        touched.sort_by_key(|(change, ..)| *change);
        let mut objects = Vec::new();
        for (change, resource, key) in touched.split_off(touched.len().saturating_sub(limit)) {
            let api = api_of(self.clients.client(), &resource, key.namespace());
            // What has gone in the meantime, and what cannot be read, is not shown.
            let Ok(Some(found)) = api.get_opt(key.name()).await else { continue };
            let Ok(serde_json::Value::Object(object)) = serde_json::to_value(&found) else { continue };
            objects.push(Seen {
                kind: resource.kind.clone(),
                name: key.to_string(),
                version: change,
                object,
            });
        }
        objects
    }
}
