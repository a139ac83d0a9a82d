#![doc = include_str!("../README.md")]
//!
//! What the server remembers: objects as encoded bytes, one revision, snapshots, and the history that watchers read.
//!
//! - One global revision counts all writes, as etcd's does. Writes go through one lock, one at a time, and each
//!   publishes a new [`Snapshot`]; readers never wait for writers and hold a consistent state for as long as they like.
//! - An [`Object`] is its encoded JSON plus the few things that selectors, owners and finalizers need. Nothing is
//!   encoded again for a read. Objects of one owner are kept as what differs from the first of them.
//! - Every resource has a [`Feed`] of its changes. [`Cursor`]s walk it from any retained revision; older ones are
//!   [`Expired`]. A read at an older revision takes the present snapshot and undoes the changes since.
//!
//! - With a data directory ([`Storage::open`]) a write is published when it is on disk, and not before: what readers and
//!   watchers have seen, no crash takes back. Writers see each other's decisions at once ([`Storage::snapshot`]); what
//!   leaves the server comes from [`Storage::committed`], and whoever acknowledges a write waits for
//!   [`Storage::confirmed`]. Without a directory all of this is the same thing and costs nothing.
//!
//! Pitfall: [`Storage`] knows nothing of Kubernetes rules. Whoever writes must have read first and passes the revision
//! it read; a write that lost a race is told what is there now.

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
use self::{durable::Durable, siblings::Siblings};
pub use self::{
    durable::{DataDirError, NotStored},
    history::{Cursor, Event, Expired, Feed, Retention},
    object::{Draft, Meta, Object, Written},
    snapshot::{Collection, Snapshot},
};

/// A write found something else than it expected.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the stored object is not the one that was read")]
pub struct Raced {
    /// What is stored now.
    pub current: Option<Arc<Object>>,
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing under this key.
    Absent,
    /// The object of this revision.
    Revision(u64),
}

/// The store of one server.
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
/// # Ok::<(), kubewright_storage::Raced>(())
/// ```
#[derive(Debug, Default)]
pub struct Storage {
    shared: Arc<Shared>,
    durable: Option<Durable>,
    siblings: Siblings,
}

/// What the store and the thread that writes its log share.
#[derive(Debug, Default)]
struct Shared {
    /// What everybody may be told.
    published: ArcSwap<Snapshot>,
    /// Held while a write is decided, and while one is published; readers never take it.
    writer: Mutex<()>,
    feeds: RwLock<OrdMap<Arc<str>, Arc<Feed>>>,
    retention: Retention,
    /// History begins here: at 0, or at what was found in the data directory.
    floor: u64,
}

impl Shared {
    fn starting_with(snapshot: Snapshot, retention: Retention) -> Self {
        let floor = snapshot.revision;
        Self { published: ArcSwap::from_pointee(snapshot), retention, floor, ..Self::default() }
    }

    fn committed(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// The snapshot first, then the history: whoever hears of a change can also read it. The write lock is held.
    fn publish(&self, resource: &str, event: Event, snapshot: Snapshot) {
        let feed = self.feed(resource);
        self.published.store(Arc::new(snapshot));
        feed.push(event, self.retention);
    }

    /// The same for writes that were decided earlier.
    fn publish_all(&self, writes: impl Iterator<Item = (Arc<str>, Event, Snapshot)>) {
        let _writing = self.writer.lock();
        for (resource, event, snapshot) in writes {
            self.publish(&resource, event, snapshot);
        }
    }

    fn feed(&self, resource: &str) -> Arc<Feed> {
        if let Some(feed) = self.feeds.read().get(resource) {
            return Arc::clone(feed);
        }
        let mut feeds = self.feeds.write();
        if let Some(feed) = feeds.get(resource) {
            return Arc::clone(feed);
        }
        let feed = Arc::new(Feed::starting_at(self.floor));
        feeds.insert(resource.into(), Arc::clone(&feed));
        feed
    }
}

impl Storage {
    /// A store in memory that keeps this much history.
    pub fn with_retention(retention: Retention) -> Self {
        Self::over(Shared::starting_with(Snapshot::default(), retention))
    }

    /// A store of its own, in memory, that begins with everything that this one holds now and continues its revisions. It
    /// shares the objects until one of the two changes them, so it costs the same however many there are. History begins
    /// anew: watches of the fork start from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        let snapshot = Snapshot::clone(&self.snapshot());
        Self::over(Shared::starting_with(snapshot, self.shared.retention))
    }

    fn over(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), ..Self::default() }
    }

    /// A store in a directory, which is made when it is not there. Blocks while it reads what is in it.
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
    /// storage.confirmed().await?;
    /// drop(storage);
    ///
    /// let again = Storage::open(directory.path(), Retention::default())?;
    /// assert_eq!(again.get("configmaps", &key).unwrap().revision, 1);
    /// # Ok(()) }
    /// ```
    pub fn open(directory: &Path, retention: Retention) -> Result<Self, DataDirError> {
        let siblings = Siblings::default();
        let (shared, durable) = Durable::open(directory, retention, &siblings)?;
        Ok(Self { shared, durable: Some(durable), siblings })
    }

    /// Everything that is decided: what the next write is checked against. Not to be shown to anybody.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.head().load_full()
    }

    /// Everything that no crash takes back: what may be shown.
    pub fn committed(&self) -> Arc<Snapshot> {
        self.shared.committed()
    }

    fn head(&self) -> &ArcSwap<Snapshot> {
        self.durable.as_ref().map_or(&self.shared.published, |durable| &durable.head)
    }

    /// One object as it is decided.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.head().load().get(resource, key)
    }

    /// The revision of the last write that may be shown.
    pub fn revision(&self) -> u64 {
        self.shared.published.load().revision
    }

    /// A revision up to which every change is in the history: no write is between its snapshot and its event.
    pub fn settled(&self) -> u64 {
        let _writing = self.shared.writer.lock();
        self.revision()
    }

    /// Whether writes can be taken; when the data directory cannot be written, they had better not begin.
    pub fn accepts_writes(&self) -> Result<(), NotStored> {
        self.durable.as_ref().map_or(Ok(()), Durable::accepts)
    }

    /// Returns when everything that has been decided is committed.
    pub async fn confirmed(&self) -> Result<(), NotStored> {
        match &self.durable {
            None => Ok(()),
            Some(durable) => durable.confirmed(&self.shared.published).await,
        }
    }

    /// The same, blocking the thread: for whoever starts a server.
    pub fn confirmed_blocking(&self) -> Result<(), NotStored> {
        match &self.durable {
            None => Ok(()),
            Some(durable) => durable.confirmed_blocking(&self.shared.published),
        }
    }

    /// Creates or replaces an object.
    pub fn put(
        &self,
        resource: &str,
        key: &ObjectKey,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Object>, Raced> {
        let form = self.siblings.form(resource, &draft);
        let _writing = self.shared.writer.lock();
        let snapshot = self.head().load_full();
        let mut collection = snapshot.collection(resource);
        let before = collection.get(key).cloned();
        check(before.as_ref(), expect)?;
        let revision = snapshot.revision + 1;
        let object = Arc::new(draft.finish_as(revision, form, &self.siblings));
        collection.objects.insert(key.clone(), Arc::clone(&object));
        let event = Event {
            revision,
            key: key.clone(),
            before,
            after: Some(Arc::clone(&object)),
            shown: Arc::clone(&object),
        };
        self.decide(&snapshot, resource, collection, event);
        Ok(object)
    }

    /// Removes an object; answers what watchers are shown: its last state under the revision of the removal.
    pub fn remove(&self, resource: &str, key: &ObjectKey, revision: u64) -> Result<Arc<Object>, Raced> {
        let _writing = self.shared.writer.lock();
        let snapshot = self.head().load_full();
        let mut collection = snapshot.collection(resource);
        let before = collection.get(key).cloned();
        check(before.as_ref(), Expect::Revision(revision))?;
        let Some(before) = before else { return Err(Raced { current: None }) };
        let revision = snapshot.revision + 1;
        let shown = Arc::new(before.at(revision));
        collection.objects.remove(key);
        let event = Event {
            revision,
            key: key.clone(),
            before: Some(before),
            after: None,
            shown: Arc::clone(&shown),
        };
        self.decide(&snapshot, resource, collection, event);
        Ok(shown)
    }

    /// Makes a write happen. The write lock is held.
    fn decide(&self, old: &Snapshot, resource: &str, collection: Collection, event: Event) {
        let mut next = Snapshot { revision: event.revision, resources: old.resources.clone() };
        match next.resources.get_mut(resource) {
            Some(known) => *known = collection,
            None => drop(next.resources.insert(resource.into(), collection)),
        }
        match &self.durable {
            None => self.shared.publish(resource, event, next),
            Some(durable) => durable.hand_over(resource, event, next),
        }
    }

    /// The history of a resource.
    pub fn feed(&self, resource: &str) -> Arc<Feed> {
        self.shared.feed(resource)
    }

    /// The objects of a resource as they were at a revision that is not in the future.
    pub fn collection_at(&self, resource: &str, revision: u64) -> Result<Collection, Expired> {
        let (mut collection, undo) = {
            // Between the publication of a snapshot and of its event, only the writer sees both.
            let _writing = self.shared.writer.lock();
            let feed = self.feed(resource);
            (self.shared.published.load().collection(resource), feed.after(revision, usize::MAX)?)
        };
        for event in undo.iter().rev() {
            match &event.before {
                Some(before) => collection.objects.insert(event.key.clone(), Arc::clone(before)),
                None => collection.objects.remove(&event.key),
            };
        }
        Ok(collection)
    }

    /// Forgets all history: watches and reads from before now answer 410, as after an etcd compaction.
    pub fn compact(&self) {
        let _writing = self.shared.writer.lock();
        let revision = self.revision();
        for feed in self.shared.feeds.read().values() {
            feed.compact(revision);
        }
    }

    /// Ends every watch.
    pub fn close(&self) {
        for feed in self.shared.feeds.read().values() {
            feed.close();
        }
    }
}

fn check(current: Option<&Arc<Object>>, expect: Expect) -> Result<(), Raced> {
    let fits = match (current, expect) {
        (None, Expect::Absent) => true,
        (Some(object), Expect::Revision(revision)) => object.revision == revision,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Raced { current: current.cloned() }) }
}

#[cfg(test)]
mod tests;
