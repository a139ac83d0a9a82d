//! Cache of one kind, over one or several namespaces, and the recorded writes that it has not observed yet.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use indexmap::IndexMap;
use kube::Resource;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::{
    FieldIndex, IndexFn, IndexRef, Lazy, SharedInformer, StoreError,
    index::{CONTROLLER_INDEX, orphans_of},
};
use kubewright_core::{Object, ObjectKey};

/// The cache of one kind. Cheap to clone.
pub struct KindCache<K: Resource> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Resource> {
    dyntype: K::DynamicType,
    /// One informer for all namespaces, or one for each.
    informers: Vec<ScopedInformer<K>>,
    writes: RecordedWrites,
    /// The addresses of the declared indexes that the informers have. A static has one address, and no other has it.
    declared: RwLock<Vec<usize>>,
}

pub(super) struct ScopedInformer<K: Resource> {
    pub(super) namespace: Option<String>,
    pub(super) informer: SharedInformer<K>,
    /// The newest version written before the cache existed; zero once it is observed.
    pub(super) min_version: AtomicU64,
}

impl<K: Object> KindCache<K> {
    pub(super) fn new(dyntype: K::DynamicType, informers: Vec<ScopedInformer<K>>) -> Self {
        let (writes, declared) = (RecordedWrites::default(), RwLock::default());
        Self { shared: Arc::new(Shared { dyntype, informers, writes, declared }) }
    }

    /// Creates a cache of this informer alone, which the caller starts.
    pub fn from_informer(informer: SharedInformer<K>, dyntype: K::DynamicType) -> Self {
        Self::new(dyntype, vec![ScopedInformer { namespace: None, informer, min_version: AtomicU64::new(0) }])
    }

    /// Iterates over the informers: one, or one for each namespace.
    pub fn informers(&self) -> impl Iterator<Item = &SharedInformer<K>> {
        self.shared.informers.iter().map(|scoped| &scoped.informer)
    }

    /// Returns the name of the kind.
    pub fn kind(&self) -> std::borrow::Cow<'_, str> {
        K::kind(&self.shared.dyntype)
    }

    /// Returns the dynamic type.
    pub fn dyntype(&self) -> &K::DynamicType {
        &self.shared.dyntype
    }

    /// Returns whether objects of this namespace are cached.
    pub fn covers(&self, namespace: Option<&str>) -> bool {
        self.informer(namespace).is_some()
    }

    fn scoped(&self, namespace: Option<&str>) -> Option<&ScopedInformer<K>> {
        match &*self.shared.informers {
            [all] if all.namespace.is_none() => Some(all),
            informers => informers.iter().find(|scoped| scoped.namespace.as_deref() == namespace),
        }
    }

    fn informer(&self, namespace: Option<&str>) -> Option<&SharedInformer<K>> {
        self.scoped(namespace).map(|scoped| &scoped.informer)
    }

    /// Returns the object with this key, as cached.
    pub fn get(&self, key: &ObjectKey) -> Option<Lazy<K>> {
        self.informer(key.namespace())?.store().get_by_key(key)
    }

    /// Returns all objects.
    pub fn list(&self) -> Vec<Lazy<K>> {
        self.informers().flat_map(|informer| informer.store().list()).collect()
    }

    /// Returns the objects of one namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Lazy<K>> {
        let Some(informer) = self.informer(Some(namespace)) else { return Vec::new() };
        // Every informer has this index.
        informer.store().by_index(super::NAMESPACE_INDEX, namespace).unwrap_or_default()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.informers().map(|informer| informer.store().len()).sum()
    }

    /// Returns whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the objects that have this value in an index: a declared [`FieldIndex`], or one of this name.
    pub fn by_index(&self, index: impl Into<IndexRef<K>>, value: &str) -> Result<Vec<Lazy<K>>, StoreError> {
        let index = index.into();
        if let IndexRef::Declared(index) = index {
            self.declare_index(index)?;
        }
        self.indexed(index.name(), value)
    }

    fn indexed(&self, index: &str, value: &str) -> Result<Vec<Lazy<K>>, StoreError> {
        let mut found = Vec::new();
        for informer in self.informers() {
            found.extend(informer.store().by_index(index, value)?);
        }
        Ok(found)
    }

    /// The objects whose controlling owner has this uid.
    pub fn controlled_by(&self, uid: &str) -> Vec<Lazy<K>> {
        self.by_controller(uid)
    }

    /// How many objects have a controlling owner with this uid.
    pub fn count_controlled_by(&self, uid: &str) -> usize {
        let count = |informer: &SharedInformer<K>| informer.store().count_by_index(CONTROLLER_INDEX, uid);
        match self.informers().map(count).sum::<Result<usize, _>>() {
            Ok(count) => count,
            Err(_) => self.controlled_by(uid).len(),
        }
    }

    /// The objects of a namespace that no owner controls.
    pub fn orphans(&self, namespace: Option<&str>) -> Vec<Lazy<K>> {
        self.by_controller(&orphans_of(namespace))
    }

    fn by_controller(&self, value: &str) -> Vec<Lazy<K>> {
        self.indexed(CONTROLLER_INDEX, value).unwrap_or_else(|_| {
            // An informer that has the index already keeps it.
            for informer in self.informers() {
                let _ = informer.add_index(IndexFn::controller());
            }
            self.indexed(CONTROLLER_INDEX, value).unwrap_or_default()
        })
    }

    /// Adds an index; also while the cache is in use.
    pub fn add_index(&self, index: &IndexFn<Lazy<K>>) -> Result<(), StoreError> {
        self.informers().try_for_each(|informer| informer.add_index(index.clone()))
    }

    /// Adds a declared index, unless the cache has it; also while the cache is in use.
    pub fn declare_index(&self, index: &'static FieldIndex<K>) -> Result<(), StoreError> {
        let address = std::ptr::from_ref(index).addr();
        if self.shared.declared.read().contains(&address) {
            return Ok(());
        }
        let mut declared = self.shared.declared.write();
        if declared.contains(&address) {
            return Ok(());
        }
        match self.add_index(&index.index_fn()) {
            // The index is there; the object that it cannot be computed for is reported by the informer.
            Ok(()) | Err(StoreError::Index(_)) => declared.push(address),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the cache holds at least the state of the server at its start.
    pub fn has_synced(&self) -> bool {
        self.informers().all(SharedInformer::has_synced)
    }

    /// Waits until the cache [has synced](Self::has_synced).
    pub async fn synced(&self) {
        for informer in self.informers() {
            informer.synced().await;
        }
    }

    /// Waits until the cache has observed the recorded writes of this object. Returns `false` on timeout.
    pub async fn caught_up(&self, key: &ObjectKey, timeout: Duration) -> bool {
        let Some(scoped) = self.scoped(key.namespace()) else { return true };
        if self.shared.writes.is_empty() && scoped.min_version.load(Ordering::Acquire) == 0 {
            return true;
        }
        let observed = |reached| self.shared.has_observed(scoped, key, reached);
        wait_until(scoped.informer.applied(), &observed, timeout).await
    }

    /// Records a write: the resulting version, and the deletion if it was one.
    pub(super) fn record_write(
        &self,
        key: &ObjectKey,
        version: Option<u64>,
        deletion: Option<RecordedDeletion>,
    ) {
        self.shared.writes.record(key, version, deletion, |key, write| self.is_observed(key, write));
    }

    fn is_observed(&self, key: &ObjectKey, write: &RecordedWrite) -> bool {
        let Some(informer) = self.informer(key.namespace()) else { return true };
        let reached = informer.reached();
        (write.deletion.is_none() && write.version <= reached)
            || write.is_observed(informer.store().get_by_key(key).as_ref(), reached)
    }

    /// As [`caught_up`](Self::caught_up), for all recorded writes of this kind.
    pub async fn all_caught_up(&self, timeout: Duration) -> bool {
        let behind = |scoped: &ScopedInformer<K>| scoped.min_version.load(Ordering::Acquire) > 0;
        if self.shared.writes.is_empty() && !self.shared.informers.iter().any(behind) {
            return true;
        }
        let all = async {
            // A wait for any key of an informer reaches its minimum version.
            for scoped in self.shared.informers.iter().filter(|scoped| behind(scoped)) {
                let any_key = ObjectKey::new(scoped.namespace.as_deref(), "-");
                self.caught_up(&any_key, NO_TIMEOUT).await;
            }
            for key in self.shared.writes.unobserved(|key, write| self.is_observed(key, write)) {
                self.caught_up(&key, NO_TIMEOUT).await;
            }
        };
        tokio::time::timeout(timeout, all).await.is_ok()
    }
}

impl<K: Resource> Clone for KindCache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource> fmt::Debug for KindCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shared.informers.iter().map(|scoped| &scoped.informer)).finish()
    }
}

/// Waits until an applied revision satisfies `observed`; returns whether it did in time.
async fn wait_until(
    mut applied: watch::Receiver<u64>,
    observed: &(dyn Fn(u64) -> bool + Send + Sync),
    timeout: Duration,
) -> bool {
    let reached = async {
        loop {
            let reached = *applied.borrow_and_update();
            if observed(reached) {
                return;
            }
            if applied.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    tokio::time::timeout(timeout, reached).await.is_ok()
}

/// Used where the caller has the timeout.
const NO_TIMEOUT: Duration = Duration::from_hours(24);

impl<K: Object> Shared<K> {
    fn has_observed(&self, scoped: &ScopedInformer<K>, key: &ObjectKey, reached: u64) -> bool {
        let min_version = scoped.min_version.load(Ordering::Acquire);
        if reached < min_version {
            return false;
        }
        scoped.min_version.store(0, Ordering::Release);
        self.writes.forget_observed(key, scoped.informer.store().get_by_key(key).as_ref(), reached)
    }
}

/// A deletion by the client that records its writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDeletion {
    /// The uid of the deleted object.
    pub uid: String,
    /// Whether the object is removed at once: observing its `deletionTimestamp` is not enough.
    pub removed: bool,
}

/// From this number of writes on, those that the cache has observed are dropped when another is recorded.
const SWEEP: usize = 256;

/// The recorded writes that one cache has not observed yet.
#[derive(Default)]
struct RecordedWrites {
    /// Number of writes: nearly always zero, and then no read takes the lock.
    count: AtomicUsize,
    writes: Mutex<Writes>,
}

#[derive(Default)]
struct Writes {
    by_key: IndexMap<ObjectKey, RecordedWrite>,
    /// The number of writes after the last sweep.
    swept: usize,
}

#[derive(Debug, Default)]
struct RecordedWrite {
    version: u64,
    /// The deletion, if the write was one.
    deletion: Option<RecordedDeletion>,
}

impl RecordedWrite {
    fn is_observed<K>(&self, held: Option<&Lazy<K>>, reached: u64) -> bool {
        let version = self.version <= reached
            || held.and_then(Lazy::version).is_some_and(|version| version >= self.version);
        let observed = |deletion: &RecordedDeletion| {
            held.is_none_or(|held| held.uid() != deletion.uid || (held.is_deleting() && !deletion.removed))
        };
        version && self.deletion.as_ref().is_none_or(observed)
    }
}

impl RecordedWrites {
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns the keys of the writes that the cache has not observed yet; the others are dropped.
    fn unobserved(&self, is_observed: impl Fn(&ObjectKey, &RecordedWrite) -> bool) -> Vec<ObjectKey> {
        let mut writes = self.writes.lock();
        writes.by_key.retain(|key, write| !is_observed(key, write));
        self.count.store(writes.by_key.len(), Ordering::Release);
        writes.by_key.keys().cloned().collect()
    }

    fn record(
        &self,
        key: &ObjectKey,
        version: Option<u64>,
        deletion: Option<RecordedDeletion>,
        is_observed: impl Fn(&ObjectKey, &RecordedWrite) -> bool,
    ) {
        let mut writes = self.writes.lock();
        // Twice the number left by the last sweep: sweeping stays cheap even when the cache is stalled.
        if writes.by_key.len() >= SWEEP.max(2 * writes.swept) {
            writes.by_key.retain(|key, write| !is_observed(key, write));
            writes.swept = writes.by_key.len();
        }
        let write = writes.by_key.entry(key.clone()).or_default();
        write.version = write.version.max(version.unwrap_or(0));
        write.deletion = deletion;
        self.count.store(writes.by_key.len(), Ordering::Release);
    }

    fn forget_observed<K>(&self, key: &ObjectKey, held: Option<&Lazy<K>>, reached: u64) -> bool {
        let mut writes = self.writes.lock();
        let observed = writes.by_key.get(key).is_none_or(|write| write.is_observed(held, reached));
        if observed && writes.by_key.swap_remove(key).is_some() {
            self.count.store(writes.by_key.len(), Ordering::Release);
        }
        observed
    }
}
