//! The watched kinds, with a row for every object.

use std::{collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;
use jiff::Timestamp;
use kube::{Client, core::DynamicObject};
use kubewright::{
    ObjectKey,
    cache::{Event, Lazy, ListWatch, Registration, Running, SharedInformer},
    client::ResourceInfo,
};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;

use crate::health::{Health, State};

/// Status of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The API version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its health.
    #[serde(flatten)]
    pub health: Health,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl Row {
    /// `namespace/name`.
    pub fn path(&self) -> String {
        ObjectKey::new(self.namespace.as_deref(), &self.name).to_string()
    }
}

/// The watched kinds and their objects. Clones share the state.
#[derive(Clone)]
pub struct Board {
    shared: Arc<Shared>,
}

struct Shared {
    words: Vec<String>,
    namespace: Option<String>,
    state: Mutex<Watching>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Watching {
    /// Whether the requested kinds have been reconciled once.
    begun: bool,
    kinds: IndexMap<String, Watched>,
    missing: IndexMap<String, String>,
}

/// A watched kind: dropping it stops the informer and removes the rows.
struct Watched {
    informer: SharedInformer<DynamicObject>,
    handler: Registration,
    rows: Rows,
    _running: Running,
}

type Rows = Arc<Mutex<BTreeMap<ObjectKey, Row>>>;

impl Board {
    /// Creates a board that shows these kinds at least, named as for `kubectl get`.
    pub fn new<W: Into<String>>(kinds: impl IntoIterator<Item = W>) -> Self {
        Self::with_namespace(kinds.into_iter().map(Into::into).collect(), None)
    }

    /// Limits the board to one namespace and cluster-scoped objects.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self::with_namespace(self.shared.words.clone(), Some(namespace.to_owned()))
    }

    fn with_namespace(words: Vec<String>, namespace: Option<String>) -> Self {
        let shared = Shared { words, namespace, state: Mutex::default(), changes: watch::Sender::new(()) };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.shared.words
    }

    /// Watches exactly these kinds in this order, and sets the missing ones.
    pub(crate) fn watch(
        &self,
        client: &Client,
        served: IndexMap<String, Arc<ResourceInfo>>,
        missing: IndexMap<String, String>,
    ) {
        let mut state = self.shared.state.lock();
        let mut before = std::mem::take(&mut state.kinds);
        state.kinds = served
            .into_iter()
            .map(|(name, info)| {
                let watched = before.swap_remove(&name).unwrap_or_else(|| self.start(client, &info));
                (name, watched)
            })
            .collect();
        state.missing = missing;
        state.begun = true;
        drop(state);
        // Dropped outside of the lock, which a running handler may be waiting for.
        drop(before);
        self.shared.changes.send_replace(());
    }

    fn start(&self, client: &Client, info: &ResourceInfo) -> Watched {
        let resource = info.api_resource();
        let (api_version, kind) = (resource.api_version.clone(), info.kind.clone());
        let mut list_watch = ListWatch::dynamic(client.clone(), resource);
        if let Some(namespace) = self.shared.namespace.as_ref().filter(|_| info.is_namespaced()) {
            list_watch = list_watch.namespace(namespace);
        }
        let informer = SharedInformer::new(list_watch);
        let rows = Rows::default();
        let handler = informer.on_event({
            let (rows, changes) = (Arc::clone(&rows), self.shared.changes.clone());
            move |event| {
                match event {
                    Event::Deleted { object, .. } => rows.lock().remove(object.key()),
                    Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                        rows.lock().insert(object.key().clone(), row(&api_version, &kind, &object))
                    }
                };
                changes.send_replace(());
            }
        });
        let running = informer.start();
        Watched { informer, handler, rows, _running: running }
    }

    /// All rows: kinds in the requested order, objects by namespace and name.
    pub fn rows(&self) -> Vec<Row> {
        let state = self.shared.state.lock();
        state.kinds.values().flat_map(|kind| kind.rows.lock().values().cloned().collect::<Vec<_>>()).collect()
    }

    /// The watched kinds, such as `deployments.apps`.
    pub fn kinds(&self) -> Vec<String> {
        let state = self.shared.state.lock();
        state.kinds.keys().map(|name| name.trim_end_matches('.').to_owned()).collect()
    }

    /// The requested kinds that cannot be shown, and why.
    pub fn missing(&self) -> Vec<(String, String)> {
        let state = self.shared.state.lock();
        state.missing.iter().map(|(word, why)| (word.clone(), why.clone())).collect()
    }

    /// Whether the initial lists of all requested kinds are complete.
    pub fn is_complete(&self) -> bool {
        let state = self.shared.state.lock();
        state.begun
            && state.kinds.values().all(|kind| kind.informer.has_synced() && kind.handler.has_synced())
    }

    /// Returns a receiver of changes.
    pub fn changes(&self) -> Changes {
        Changes(self.shared.changes.subscribe())
    }
}

/// Receiver of a board's changes. Changes between two calls are coalesced.
#[derive(Debug)]
pub struct Changes(watch::Receiver<()>);

impl Changes {
    /// Waits for the next change.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The board was dropped: there are no more changes.
            std::future::pending::<()>().await;
        }
    }
}

fn row(api_version: &str, kind: &str, object: &Lazy<DynamicObject>) -> Row {
    let (health, created) = match object.load() {
        Ok(object) => {
            let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (Health::of(api_version, kind, &object), created)
        }
        Err(error) => (Health::new(State::Unknown, error.to_string()), None),
    };
    Row {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
        health,
        created,
    }
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("kinds", &self.kinds()).finish_non_exhaustive()
    }
}
