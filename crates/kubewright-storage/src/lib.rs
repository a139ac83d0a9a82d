#![doc = include_str!("../README.md")]
//!
//! Object storage: encoded objects, one global revision, snapshots, and the history for watches.
//!
//! - One global revision counts all writes, as in etcd. Writes are serialised by one lock, and each publishes
//!   a new [`Snapshot`]; readers never wait for writers and can keep a consistent state for as long as they
//!   like.
//! - An [`Object`] is its encoded JSON plus the metadata that selectors, owners and finalizers need. Reads do
//!   not encode. Objects of one owner are delta-encoded against a base object.
//! - Every resource has a [`History`] of its changes. [`Cursor`]s read it from any retained revision; older
//!   ones are [`Expired`]. A read at an older revision takes the current snapshot and reverts the changes
//!   since.
//!
//! - With a data directory ([`Storage::open`]) a write is published when it is on disk: no crash undoes what
//!   readers and watchers have seen. Writers see accepted writes at once ([`Storage::snapshot`]); responses
//!   come from [`Storage::committed`], and callers that acknowledge a write wait for [`Storage::flush`].
//!   Without a directory, accepted and committed are the same and `flush` is free.
//!
//! Pitfall: [`Storage`] does not know the rules of Kubernetes. A writer passes the revision that it read; if
//! the object changed since, it gets a [`Conflict`] with the current object.

mod durable;
mod history;
mod object;
mod siblings;
mod snapshot;

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use imbl::OrdMap;
use kubewright_core::ObjectKey;
use parking_lot::{Mutex, RwLock};

pub use self::durable::replace;
use self::{durable::Durable, siblings::Bases};
pub use self::{
    durable::{DataDirError, WriteError},
    history::{Cursor, Event, Expired, History, Retention},
    object::{Draft, Meta, Object, StoredVersion},
    snapshot::{Collection, Snapshot},
};

/// Error of a write whose expectation did not hold.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the stored object is not the one that was read")]
pub struct Conflict {
    /// The stored object.
    pub current: Option<Arc<Object>>,
}

/// Precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No object has this key.
    Absent,
    /// The object has this revision.
    Revision(u64),
}

/// Storage of one server.
///
/// ```
/// use kubewright_core::ObjectKey;
/// use kubewright_storage::{Draft, Expect, Storage};
/// use serde_json::json;
///
/// let storage = Storage::default();
/// let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
/// let draft = Draft::encode(object.as_object().unwrap(), Box::default());
/// let key = ObjectKey::namespaced("default", "a");
/// let stored = storage.put("configmaps", &key, Expect::Absent, draft)?;
///
/// let before = storage.snapshot();
/// storage.remove("configmaps", &key, stored.revision)?;
/// assert!(before.get("configmaps", &key).is_some());
/// assert!(storage.snapshot().get("configmaps", &key).is_none());
/// # Ok::<(), kubewright_storage::Conflict>(())
/// ```
#[derive(Debug, Default)]
pub struct Storage {
    shared: Arc<Shared>,
    durable: Option<Durable>,
    bases: Bases,
}

/// State shared between the storage and its committer thread.
#[derive(Debug, Default)]
struct Shared {
    /// The state that readers see.
    published: ArcSwap<Snapshot>,
    /// Held while a write is accepted or published; readers never take it.
    writer: Mutex<()>,
    histories: RwLock<OrdMap<Arc<str>, Arc<History>>>,
    retention: Retention,
    /// First revision of the history: 0, or the revision of the data directory.
    compact_revision: u64,
}

impl Shared {
    fn new(snapshot: Snapshot, retention: Retention) -> Self {
        let compact_revision = snapshot.revision;
        Self { published: ArcSwap::from_pointee(snapshot), retention, compact_revision, ..Self::default() }
    }

    fn committed(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// Publishes a write: the snapshot first, then the event, so that a watcher can read what it was notified
    /// of. The caller holds the write lock.
    fn publish(&self, resource: &str, event: Event, snapshot: Snapshot) {
        let history = self.history(resource);
        self.published.store(Arc::new(snapshot));
        history.push(event, self.retention);
    }

    /// Publishes writes that were accepted earlier.
    fn publish_all(&self, writes: impl Iterator<Item = (Arc<str>, Event, Snapshot)>) {
        let _writing = self.writer.lock();
        for (resource, event, snapshot) in writes {
            self.publish(&resource, event, snapshot);
        }
    }

    fn history(&self, resource: &str) -> Arc<History> {
        if let Some(history) = self.histories.read().get(resource) {
            return Arc::clone(history);
        }
        let mut histories = self.histories.write();
        if let Some(history) = histories.get(resource) {
            return Arc::clone(history);
        }
        let history = Arc::new(History::new(self.compact_revision));
        histories.insert(resource.into(), Arc::clone(&history));
        history
    }
}

impl Storage {
    /// Creates a storage in memory with these history limits.
    pub fn with_retention(retention: Retention) -> Self {
        Self::new(Shared::new(Snapshot::default(), retention))
    }

    /// Creates an independent storage in memory that starts with the current objects and revision of this
    /// one. Objects are shared until one side changes them, so a fork is O(1). History starts empty: watches
    /// of the fork begin here.
    #[must_use]
    pub fn fork(&self) -> Self {
        let snapshot = Snapshot::clone(&self.snapshot());
        Self::new(Shared::new(snapshot, self.shared.retention))
    }

    fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), ..Self::default() }
    }

    /// Opens or creates a storage in a directory. Blocks while it reads the files.
    ///
    /// ```
    /// use kubewright_core::ObjectKey;
    /// use kubewright_storage::{Draft, Expect, Retention, Storage};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let directory = tempfile::tempdir()?;
    /// let key = ObjectKey::namespaced("default", "a");
    /// let storage = Storage::open(directory.path(), Retention::default())?;
    /// let draft = Draft::encode(json!({"metadata": {"name": "a"}}).as_object().unwrap(), Box::default());
    /// storage.put("configmaps", &key, Expect::Absent, draft)?;
    /// storage.flush().await?;
    /// drop(storage);
    ///
    /// let again = Storage::open(directory.path(), Retention::default())?;
    /// assert_eq!(again.get("configmaps", &key).unwrap().revision, 1);
    /// # Ok(()) }
    /// ```
    pub fn open(directory: &Path, retention: Retention) -> Result<Self, DataDirError> {
        let bases = Bases::default();
        let (shared, durable) = Durable::open(directory, retention, &bases)?;
        Ok(Self { shared, durable: Some(durable), bases })
    }

    /// Returns the state after all accepted writes, which the next write is checked against. Do not send it
    /// to clients.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.head().load_full()
    }

    /// Returns the committed state, which no crash undoes: what clients may see.
    pub fn committed(&self) -> Arc<Snapshot> {
        self.shared.committed()
    }

    fn head(&self) -> &ArcSwap<Snapshot> {
        self.durable.as_ref().map_or(&self.shared.published, |durable| &durable.head)
    }

    /// Returns an object after all accepted writes.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.head().load().get(resource, key)
    }

    /// Returns the revision of the last committed write.
    pub fn revision(&self) -> u64 {
        self.shared.published.load().revision
    }

    /// Returns the revision up to which every change is in the history: no write is between its snapshot and
    /// its event.
    pub fn history_revision(&self) -> u64 {
        let _writing = self.shared.writer.lock();
        self.revision()
    }

    /// Returns an error if the data directory cannot be written, so that writes are rejected up front.
    pub fn accepts_writes(&self) -> Result<(), WriteError> {
        self.durable.as_ref().map_or(Ok(()), Durable::check_writable)
    }

    /// Waits until all accepted writes are committed.
    pub async fn flush(&self) -> Result<(), WriteError> {
        match &self.durable {
            None => Ok(()),
            Some(durable) => durable.flush(&self.shared.published).await,
        }
    }

    /// Blocking variant of [`Self::flush`], for starting a server.
    pub fn flush_blocking(&self) -> Result<(), WriteError> {
        match &self.durable {
            None => Ok(()),
            Some(durable) => durable.flush_blocking(&self.shared.published),
        }
    }

    /// Creates or replaces an object.
    pub fn put(
        &self,
        resource: &str,
        key: &ObjectKey,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Object>, Conflict> {
        let encoding = self.bases.encoding(resource, &draft);
        let _writing = self.shared.writer.lock();
        let snapshot = self.head().load_full();
        let mut collection = snapshot.collection(resource);
        let before = collection.get(key).cloned();
        check(before.as_ref(), expect)?;
        let revision = snapshot.revision + 1;
        let object = Arc::new(draft.finish_encoded(revision, encoding, &self.bases));
        collection.objects.insert(key.clone(), Arc::clone(&object));
        let event = Event {
            revision,
            key: key.clone(),
            before,
            after: Some(Arc::clone(&object)),
            shown: Arc::clone(&object),
        };
        self.apply(&snapshot, resource, collection, event);
        Ok(object)
    }

    /// Removes an object; returns its last state with the revision of the removal, as watchers see it.
    pub fn remove(&self, resource: &str, key: &ObjectKey, revision: u64) -> Result<Arc<Object>, Conflict> {
        let _writing = self.shared.writer.lock();
        let snapshot = self.head().load_full();
        let mut collection = snapshot.collection(resource);
        let before = collection.get(key).cloned();
        check(before.as_ref(), Expect::Revision(revision))?;
        let Some(before) = before else { return Err(Conflict { current: None }) };
        let revision = snapshot.revision + 1;
        let shown = Arc::new(before.with_revision(revision));
        collection.objects.remove(key);
        let event = Event {
            revision,
            key: key.clone(),
            before: Some(before),
            after: None,
            shown: Arc::clone(&shown),
        };
        self.apply(&snapshot, resource, collection, event);
        Ok(shown)
    }

    /// Applies a write. The caller holds the write lock.
    fn apply(&self, old: &Snapshot, resource: &str, collection: Collection, event: Event) {
        let mut next = Snapshot { revision: event.revision, resources: old.resources.clone() };
        match next.resources.get_mut(resource) {
            Some(known) => *known = collection,
            None => drop(next.resources.insert(resource.into(), collection)),
        }
        match &self.durable {
            None => self.shared.publish(resource, event, next),
            Some(durable) => durable.enqueue(resource, event, next),
        }
    }

    /// Returns the history of a resource.
    pub fn history(&self, resource: &str) -> Arc<History> {
        self.shared.history(resource)
    }

    /// Returns the objects of a resource at a revision that is not in the future.
    pub fn collection_at(&self, resource: &str, revision: u64) -> Result<Collection, Expired> {
        let (mut collection, undo) = {
            // A snapshot is published before its event; under the write lock both are consistent.
            let _writing = self.shared.writer.lock();
            let history = self.history(resource);
            (self.shared.published.load().collection(resource), history.after(revision, usize::MAX)?)
        };
        for event in undo.iter().rev() {
            match &event.before {
                Some(before) => collection.objects.insert(event.key.clone(), Arc::clone(before)),
                None => collection.objects.remove(&event.key),
            };
        }
        Ok(collection)
    }

    /// Drops all history: watches and reads from earlier revisions get 410, as after an etcd compaction.
    pub fn compact(&self) {
        let _writing = self.shared.writer.lock();
        let revision = self.revision();
        for history in self.shared.histories.read().values() {
            history.compact(revision);
        }
    }

    /// Ends every watch.
    pub fn close(&self) {
        for history in self.shared.histories.read().values() {
            history.close();
        }
    }
}

fn check(current: Option<&Arc<Object>>, expect: Expect) -> Result<(), Conflict> {
    let fits = match (current, expect) {
        (None, Expect::Absent) => true,
        (Some(object), Expect::Revision(revision)) => object.revision == revision,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Conflict { current: current.cloned() }) }
}

#[cfg(test)]
mod tests;
