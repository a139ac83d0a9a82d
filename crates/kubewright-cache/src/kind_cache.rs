//! The cache of one kind, over one or several namespaces, and what of our own writes it has still to see.

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

use super::{
    FieldIndex, IndexFn, IndexRef, Lazy, SharedInformer, StoreError,
    index::{CONTROLLER_INDEX, orphans_of},
};
use kubewright_core::{Object, ObjectKey};

/// The cache of one kind. Handles are cheap and share it.
pub struct KindCache<K: Resource> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Resource> {
    dyntype: K::DynamicType,
    /// One part of all namespaces, or one for each.
    parts: Vec<Part<K>>,
    writes: OwnWrites,
    /// The addresses of the declared indexes that the informers have. A static has one address, and no other has it.
    declared: RwLock<Vec<usize>>,
}

pub(super) struct Part<K: Resource> {
    pub(super) namespace: Option<String>,
    pub(super) informer: SharedInformer<K>,
    /// The newest version that we had written before there was a cache; zero once it is reached.
    pub(super) floor: AtomicU64,
}

impl<K: Object> KindCache<K> {
    pub(super) fn new(dyntype: K::DynamicType, parts: Vec<Part<K>>) -> Self {
        let (writes, declared) = (OwnWrites::default(), RwLock::default());
        Self { shared: Arc::new(Shared { dyntype, parts, writes, declared }) }
    }

    /// A cache of this informer alone, which whoever made it starts.
    pub fn of_informer(informer: SharedInformer<K>, dyntype: K::DynamicType) -> Self {
        Self::new(dyntype, vec![Part { namespace: None, informer, floor: AtomicU64::new(0) }])
    }

    /// The informers: one, or one for each namespace.
    pub fn informers(&self) -> impl Iterator<Item = &SharedInformer<K>> {
        self.shared.parts.iter().map(|part| &part.informer)
    }

    /// What the kind is called.
    pub fn kind(&self) -> std::borrow::Cow<'_, str> {
        K::kind(&self.shared.dyntype)
    }

    /// What the type needs to know at run time.
    pub fn dyntype(&self) -> &K::DynamicType {
        &self.shared.dyntype
    }

    /// Whether objects of this namespace are cached.
    pub fn covers(&self, namespace: Option<&str>) -> bool {
        self.informer(namespace).is_some()
    }

    fn part(&self, namespace: Option<&str>) -> Option<&Part<K>> {
        match &*self.shared.parts {
            [all] if all.namespace.is_none() => Some(all),
            parts => parts.iter().find(|part| part.namespace.as_deref() == namespace),
        }
    }

    fn informer(&self, namespace: Option<&str>) -> Option<&SharedInformer<K>> {
        self.part(namespace).map(|part| &part.informer)
    }

    /// The object with this key, as the cache has it.
    pub fn get(&self, key: &ObjectKey) -> Option<Lazy<K>> {
        self.informer(key.namespace())?.store().get_by_key(key)
    }

    /// All objects.
    pub fn list(&self) -> Vec<Lazy<K>> {
        self.informers().flat_map(|informer| informer.store().list()).collect()
    }

    /// The objects of one namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Lazy<K>> {
        let Some(informer) = self.informer(Some(namespace)) else { return Vec::new() };
        // Every informer has this index.
        informer.store().by_index(super::NAMESPACE_INDEX, namespace).unwrap_or_default()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.informers().map(|informer| informer.store().len()).sum()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that have this value in an index: a declared [`FieldIndex`], or one of this name.
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

    /// Whether the cache holds at least what the server held when it started.
    pub fn has_synced(&self) -> bool {
        self.informers().all(SharedInformer::has_synced)
    }

    /// Waits until the cache [has synced](Self::has_synced).
    pub async fn synced(&self) {
        for informer in self.informers() {
            informer.synced().await;
        }
    }

    /// Waits until the cache has seen our own writes of this object. False when it has not in time.
    pub async fn caught_up(&self, key: &ObjectKey, patience: Duration) -> bool {
        let Some(part) = self.part(key.namespace()) else { return true };
        if self.shared.writes.is_empty() && part.floor.load(Ordering::Acquire) == 0 {
            return true;
        }
        let mut applied = part.informer.applied();
        let seen = async {
            loop {
                let reached = *applied.borrow_and_update();
                if self.shared.has_seen(part, key, reached) {
                    return;
                }
                if applied.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::time::timeout(patience, seen).await.is_ok()
    }

    /// Notes a write of our own: the version that came of it, or the identity that must go.
    pub(super) fn note(&self, key: &ObjectKey, version: Option<u64>, gone: Option<Gone>) {
        self.shared.writes.note(key, version, gone, |key, note| self.is_seen(key, note));
    }

    fn is_seen(&self, key: &ObjectKey, note: &Note) -> bool {
        let Some(informer) = self.informer(key.namespace()) else { return true };
        let reached = informer.reached();
        (note.gone.is_none() && note.version <= reached)
            || note.is_seen(informer.store().get_by_key(key).as_ref(), reached)
    }

    /// The same for all of our own writes of this kind.
    pub async fn all_caught_up(&self, patience: Duration) -> bool {
        let below = |part: &Part<K>| part.floor.load(Ordering::Acquire) > 0;
        if self.shared.writes.is_empty() && !self.shared.parts.iter().any(below) {
            return true;
        }
        let all = async {
            // The floor of each part is reached by a look at any key of it.
            for part in self.shared.parts.iter().filter(|part| below(part)) {
                let anything = ObjectKey::new(part.namespace.as_deref(), "-");
                self.caught_up(&anything, FOR_EVER).await;
            }
            for key in self.shared.writes.unseen(|key, note| self.is_seen(key, note)) {
                self.caught_up(&key, FOR_EVER).await;
            }
        };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

impl<K: Resource> Clone for KindCache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource> fmt::Debug for KindCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shared.parts.iter().map(|part| &part.informer)).finish()
    }
}

/// The caller keeps the time.
const FOR_EVER: Duration = Duration::from_hours(24);

impl<K: Object> Shared<K> {
    fn has_seen(&self, part: &Part<K>, key: &ObjectKey, reached: u64) -> bool {
        let floor = part.floor.load(Ordering::Acquire);
        if reached < floor {
            return false;
        }
        part.floor.store(0, Ordering::Release);
        self.writes.seen(key, part.informer.store().get_by_key(key).as_ref(), reached)
    }
}

/// An object that we have deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The uid of the deleted object.
    pub uid: String,
    /// Nothing holds it back: that it is on its way is not enough.
    pub for_good: bool,
}

/// From this many notes on, those that the cache has caught up with are swept out when another comes.
const SWEEP: usize = 256;

/// What one cache has still to see of our own writes.
#[derive(Default)]
struct OwnWrites {
    /// How many notes there are: nearly always none, and then no read takes the lock.
    count: AtomicUsize,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    by_key: IndexMap<ObjectKey, Note>,
    /// How many there were after the last sweep.
    swept: usize,
}

#[derive(Debug, Default)]
struct Note {
    version: u64,
    /// The identity that we have deleted.
    gone: Option<Gone>,
}

impl Note {
    fn is_seen<K>(&self, held: Option<&Lazy<K>>, reached: u64) -> bool {
        let version = self.version <= reached
            || held.and_then(Lazy::version).is_some_and(|version| version >= self.version);
        let gone = |gone: &Gone| {
            held.is_none_or(|held| held.uid() != gone.uid || (held.is_deleting() && !gone.for_good))
        };
        version && self.gone.as_ref().is_none_or(gone)
    }
}

impl OwnWrites {
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The keys of the notes that the cache has not caught up with; the others are dropped.
    fn unseen(&self, is_seen: impl Fn(&ObjectKey, &Note) -> bool) -> Vec<ObjectKey> {
        let mut notes = self.notes.lock();
        notes.by_key.retain(|key, note| !is_seen(key, note));
        self.count.store(notes.by_key.len(), Ordering::Release);
        notes.by_key.keys().cloned().collect()
    }

    fn note(
        &self,
        key: &ObjectKey,
        version: Option<u64>,
        gone: Option<Gone>,
        is_seen: impl Fn(&ObjectKey, &Note) -> bool,
    ) {
        let mut notes = self.notes.lock();
        // Twice as many as were left the last time: the sweep stays cheap even when the cache stands still.
        if notes.by_key.len() >= SWEEP.max(2 * notes.swept) {
            notes.by_key.retain(|key, note| !is_seen(key, note));
            notes.swept = notes.by_key.len();
        }
        let note = notes.by_key.entry(key.clone()).or_default();
        note.version = note.version.max(version.unwrap_or(0));
        note.gone = gone;
        self.count.store(notes.by_key.len(), Ordering::Release);
    }

    fn seen<K>(&self, key: &ObjectKey, held: Option<&Lazy<K>>, reached: u64) -> bool {
        let mut notes = self.notes.lock();
        let seen = notes.by_key.get(key).is_none_or(|note| note.is_seen(held, reached));
        if seen && notes.by_key.swap_remove(key).is_some() {
            self.count.store(notes.by_key.len(), Ordering::Release);
        }
        seen
    }
}
