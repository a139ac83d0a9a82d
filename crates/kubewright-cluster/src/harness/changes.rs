//! What has changed in a cluster, and whether it still does.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kubewright_apiserver::{ApiServer, registry::Registry};
use tokio::time::Instant;

use super::{HarnessError, seen::Seen, watched::Watched};

/// Kinds that change without end and mean nothing: heartbeats and what people read.
const RESTLESS: [&str; 2] = ["leases", "events"];
/// A cluster in which nothing has changed for so long has settled.
const QUIET: Duration = Duration::from_secs(30);
/// How long a cluster may take to settle.
const PATIENCE: Duration = Duration::from_hours(1);
/// The same for a control plane in real time; while something is being deleted, a pause means less.
const REAL_QUIET: Duration = Duration::from_millis(1500);
const REAL_QUIET_WHILE_GOING: Duration = Duration::from_secs(10);
const REAL_PATIENCE: Duration = Duration::from_secs(90);

/// Where it can be seen what changes.
#[derive(Debug, Clone)]
pub(crate) enum Changes {
    /// In the storage of a server in this process.
    Stored {
        registry: Arc<Registry>,
        /// The version that it had in the beginning.
        since: u64,
    },
    /// By watches.
    Watched(Watched),
}

impl Changes {
    /// The changes of a server from now on.
    pub(crate) fn stored(server: &ApiServer) -> Self {
        let registry = Arc::clone(server.registry());
        Self::Stored { since: registry.storage().revision(), registry }
    }

    /// The newest objects that have changed, oldest first. Of those that cost a request each, not more than `limit`.
    pub(super) async fn objects(&self, limit: usize) -> Vec<Seen> {
        match self {
            Self::Stored { registry, since } => stored_since(registry, *since),
            Self::Watched(watched) => watched.changed(limit).await,
        }
    }

    pub(super) async fn settled(&self) -> Result<(), HarnessError> {
        match self {
            Self::Stored { registry, .. } => storage_settled(registry).await,
            Self::Watched(watched) => watches_settled(watched).await,
        }
    }
}

async fn storage_settled(registry: &Registry) -> Result<(), HarnessError> {
    let started = Instant::now();
    let mut before = newest(registry);
    loop {
        tokio::time::sleep(QUIET).await;
        let now = newest(registry);
        if now == before {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            let (_, last) = now;
            return Err(HarnessError::Restless { waited: started.elapsed(), last });
        }
        before = now;
    }
}

async fn watches_settled(watched: &Watched) -> Result<(), HarnessError> {
    let started = Instant::now();
    loop {
        let (quiet, last) = watched.quiet();
        let enough = if watched.anything_going() { REAL_QUIET_WHILE_GOING } else { REAL_QUIET };
        // What was done just before may not have been heard of yet.
        if quiet.min(started.elapsed()) >= enough {
            return Ok(());
        }
        if started.elapsed() > REAL_PATIENCE {
            return Err(HarnessError::Restless { waited: started.elapsed(), last });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether a resource, named as the storage does, is one of those that never rest.
fn is_restless(resource: &str) -> bool {
    RESTLESS.contains(&resource.rsplit('/').next().unwrap_or(resource))
}

/// How many objects there are, and the newest of them.
fn newest(registry: &Registry) -> (usize, String) {
    let snapshot = registry.storage().snapshot();
    let (mut count, mut newest) = (0, (0, String::new()));
    for resource in snapshot.resources().filter(|name| !is_restless(name)) {
        for (key, object) in snapshot.collection(resource).range(None, None) {
            count += 1;
            if object.revision > newest.0 {
                newest = (object.revision, format!("{resource} {key} at version {}", object.revision));
            }
        }
    }
    (count, newest.1)
}

fn stored_since(registry: &Registry, since: u64) -> Vec<Seen> {
    let types = registry.types();
    let kinds: BTreeMap<&Arc<str>, &str> = types.all().iter().map(|ty| (&ty.storage, &*ty.kind)).collect();
    let snapshot = registry.storage().snapshot();
    let mut objects = Vec::new();
    for resource in snapshot.resources() {
        let Some(kind) = kinds.get(resource) else { continue };
        let collection = snapshot.collection(resource);
        for (key, object) in collection.range(None, None).filter(|(_, object)| object.revision > since) {
            objects.push(Seen {
                kind: (*kind).to_owned(),
                name: key.to_string(),
                version: object.revision,
                object: object.decode(),
            });
        }
    }
    objects.sort_by_key(|seen| seen.version);
    objects
}
