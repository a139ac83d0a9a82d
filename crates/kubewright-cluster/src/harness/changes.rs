//! Changes of a cluster, and detection of a settled one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kubewright_apiserver::{ApiServer, registry::Registry};
use tokio::time::Instant;

use super::{HarnessError, seen::ChangedObject, watched::ChangeWatcher};

/// Resources whose changes do not count: heartbeats and events.
const IGNORED_RESOURCES: [&str; 2] = ["leases", "events"];
/// A cluster without a change for this long has settled.
const QUIET_PERIOD: Duration = Duration::from_secs(30);
/// Time-out for a cluster to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_hours(1);
/// The same in real time; longer while objects are being deleted.
const REAL_QUIET_PERIOD: Duration = Duration::from_millis(1500);
const REAL_QUIET_PERIOD_TERMINATING: Duration = Duration::from_secs(10);
const REAL_SETTLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Source of changes.
#[derive(Debug, Clone)]
pub(crate) enum Changes {
    /// The storage of an API server in this process.
    Stored {
        registry: Arc<Registry>,
        /// The revision at the start of the test.
        since: u64,
    },
    /// Watches of a control plane elsewhere.
    Watched(ChangeWatcher),
}

impl Changes {
    /// Changes of this server from now on.
    pub(crate) fn stored(server: &ApiServer) -> Self {
        let registry = Arc::clone(server.registry());
        Self::Stored { since: registry.storage.revision(), registry }
    }

    /// The changed objects, oldest first. Of those that cost a request each, the newest `limit`.
    pub(super) async fn objects(&self, limit: usize) -> Vec<ChangedObject> {
        match self {
            Self::Stored { registry, since } => stored_since(registry, *since),
            Self::Watched(watcher) => watcher.changed(limit).await,
        }
    }

    pub(super) async fn settled(&self) -> Result<(), HarnessError> {
        match self {
            Self::Stored { registry, .. } => storage_settled(registry).await,
            Self::Watched(watcher) => watches_settled(watcher).await,
        }
    }
}

async fn storage_settled(registry: &Registry) -> Result<(), HarnessError> {
    let started = Instant::now();
    let mut before = newest(registry);
    loop {
        tokio::time::sleep(QUIET_PERIOD).await;
        let now = newest(registry);
        if now == before {
            return Ok(());
        }
        if started.elapsed() > SETTLE_TIMEOUT {
            let (_, last) = now;
            return Err(HarnessError::NotSettled { waited: started.elapsed(), last });
        }
        before = now;
    }
}

async fn watches_settled(watcher: &ChangeWatcher) -> Result<(), HarnessError> {
    let started = Instant::now();
    loop {
        let (quiet, last) = watcher.quiet();
        let enough =
            if watcher.has_terminating() { REAL_QUIET_PERIOD_TERMINATING } else { REAL_QUIET_PERIOD };
        // Watch events of the last writes may not have arrived yet.
        if quiet.min(started.elapsed()) >= enough {
            return Ok(());
        }
        if started.elapsed() > REAL_SETTLE_TIMEOUT {
            return Err(HarnessError::NotSettled { waited: started.elapsed(), last });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether changes of a storage resource do not count.
fn is_ignored(resource: &str) -> bool {
    IGNORED_RESOURCES.contains(&resource.rsplit('/').next().unwrap_or(resource))
}

/// The number of objects and a description of the newest.
fn newest(registry: &Registry) -> (usize, String) {
    let snapshot = registry.storage.snapshot();
    let (mut count, mut newest) = (0, (0, String::new()));
    for resource in snapshot.resources().filter(|name| !is_ignored(name)) {
        for (key, object) in snapshot.collection(resource).range(None, None) {
            count += 1;
            if object.revision > newest.0 {
                newest = (object.revision, format!("{resource} {key} at version {}", object.revision));
            }
        }
    }
    (count, newest.1)
}

fn stored_since(registry: &Registry, since: u64) -> Vec<ChangedObject> {
    let types = registry.types();
    let kinds: BTreeMap<&Arc<str>, &str> = types.all().iter().map(|ty| (&ty.storage, &*ty.kind)).collect();
    let snapshot = registry.storage.snapshot();
    let mut objects = Vec::new();
    for resource in snapshot.resources() {
        let Some(kind) = kinds.get(resource) else { continue };
        let collection = snapshot.collection(resource);
        for (key, object) in collection.range(None, None).filter(|(_, object)| object.revision > since) {
            objects.push(ChangedObject {
                kind: (*kind).to_owned(),
                name: key.to_string(),
                version: object.revision,
                object: object.decode(),
            });
        }
    }
    objects.sort_by_key(|object| object.version);
    objects
}
