//! The caches of a program: kinds, namespaces and storage options; created on first use.
//!
//! [`InformerFactory`] creates one informer per kind and scope. [`Caches`] is the layer above for programs
//! that think in kinds only: a manager, its controllers and its client; controller-runtime's `cache.Cache`.
//! The options of a kind are set before its first use; all callers then share one [`KindCache`], whatever the
//! number of namespaces.
//!
//! Pitfall: an object outside of a cache's selector or namespaces is not deleted. Reads of a namespace that
//! is not cached fail; reads of an object that the selector excludes find nothing.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
    time::Duration,
};

use indexmap::IndexMap;
use kube::{Client, Resource};
use parking_lot::Mutex;

use super::{
    Fault, Form, InformerFactory, ListWatch,
    kind_cache::{KindCache, RecordedDeletion, ScopedInformer},
};
use kubewright_client::Transport;
use kubewright_core::{Object, ObjectKey, object::is_cluster_scoped};

/// Options of the cache of one kind: scope and storage.
///
/// ```
/// use kubewright::cache::CacheOptions;
/// use kubewright::k8s_openapi::api::core::v1::Pod;
///
/// let pods = CacheOptions::<Pod>::new()
///     .namespaces(["shop", "bank"])
///     .labels("app=web")
///     .transform(|pod| pod.spec = None);
/// ```
pub struct CacheOptions<K> {
    scope: Scope,
    form: Option<Form>,
    keep_managed_fields: bool,
    streaming: bool,
    transform: Option<Arc<Transform<K>>>,
}

type Transform<K> = dyn Fn(&mut K) + Send + Sync;

#[derive(Debug, Clone, Default)]
struct Scope {
    namespaces: Option<Vec<String>>,
    labels: Option<String>,
    fields: Option<String>,
}

impl<K> CacheOptions<K> {
    /// Creates options for all objects, packed.
    pub fn new() -> Self {
        Self {
            scope: Scope::default(),
            form: None,
            keep_managed_fields: false,
            streaming: false,
            transform: None,
        }
    }

    /// Restricts the cache to namespaces, overriding the default; empty means all.
    #[must_use]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.scope.namespaces = Some(distinct(namespaces));
        self
    }

    /// Restricts the cache to objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.scope.labels = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Restricts the cache to objects whose fields match.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.scope.fields = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Sets the storage form of objects.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// Keeps `metadata.managedFields`.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Reads the initial state as a stream instead of a list, see [`ListWatch::streaming`].
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Transforms every object before it is stored.
    #[must_use]
    pub fn transform(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transform = Some(Arc::new(change));
        self
    }
}

impl<K: Object> CacheOptions<K> {
    fn tweak(&self, mut list_watch: ListWatch<K>) -> ListWatch<K> {
        if let Some(form) = self.form {
            list_watch = list_watch.form(form);
        }
        if self.keep_managed_fields {
            list_watch = list_watch.keep_managed_fields();
        }
        list_watch = list_watch.streaming(self.streaming);
        match self.transform.clone() {
            Some(transform) => list_watch.transform(move |object| transform(object)),
            None => list_watch,
        }
    }
}

impl<K> Default for CacheOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// All caches of one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Transport,
    factory: InformerFactory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    namespaces: Vec<String>,
    scopes: IndexMap<Identity, Scope>,
    kinds: IndexMap<Identity, Entry>,
    /// The newest version written by this client, by path and namespace: caches created later must reach it.
    newest: IndexMap<String, IndexMap<Option<String>, u64>>,
}

/// A Rust type, and its kind at run time.
type Identity = (TypeId, String);

struct Entry {
    cache: Box<dyn Any + Send + Sync>,
    record_write: Box<RecordWrite>,
    unsynced: Box<Unsynced>,
}

/// Returns the name of the kind while its cache has not synced.
type Unsynced = dyn Fn() -> Option<String> + Send + Sync;

/// Records a write: object, resulting version and deletion.
type RecordWrite = dyn Fn(&ObjectKey, Option<u64>, Option<RecordedDeletion>) + Send + Sync;

/// The options of a kind were set after its cache was created.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the cache of {0} is in use already; say what to cache before the first controller or read asks for it"
)]
pub struct CacheInUseError(pub String);

impl Caches {
    /// Creates the caches of a cluster: all objects in all namespaces by default.
    ///
    /// Over a [`Transport`] instead of a [`kube::Client`], writes bypass the client's queue.
    pub fn new(transport: impl Into<Transport>) -> Self {
        let transport = transport.into();
        let factory = InformerFactory::new(transport.client());
        Self { inner: Arc::new(Inner { transport, factory, state: Mutex::default() }) }
    }

    /// Sets the namespaces to cache, for kinds without options of their own. Ignored for cluster-scoped
    /// kinds.
    #[must_use]
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.inner.state.lock().namespaces = distinct(namespaces);
        self
    }

    /// Sets the handler of faults in caches created from now on; the default logs them.
    #[must_use]
    pub fn on_fault(self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        // The factory is a handle: its clones share the setting.
        let _ = self.inner.factory.clone().on_fault(handler);
        self
    }

    /// Sets the options of a kind with a Rust type.
    pub fn configure<K>(&self, options: CacheOptions<K>) -> Result<(), CacheInUseError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let identity = identity::<K>(&());
        let in_use = || CacheInUseError(K::kind(&()).into_owned());
        let mut state = self.inner.state.lock();
        if state.kinds.contains_key(&identity) {
            return Err(in_use());
        }
        state.scopes.insert(identity, options.scope.clone());
        self.inner.factory.tweak::<K>(move |list_watch| options.tweak(list_watch)).map_err(|_| in_use())
    }

    /// Returns the cache of a kind with a Rust type; creates it, and starts it if the others run, on first
    /// use.
    pub fn of<K>(&self) -> KindCache<K>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.dynamic(&())
    }

    /// Returns the cache of a kind that is known only at run time.
    pub fn dynamic<K: Object>(&self, dyntype: &K::DynamicType) -> KindCache<K> {
        let identity = identity::<K>(dyntype);
        let mut state = self.inner.state.lock();
        let existing =
            state.kinds.get(&identity).and_then(|entry| entry.cache.downcast_ref::<KindCache<K>>());
        if let Some(cache) = existing {
            return cache.clone();
        }
        let scope = state.scopes.get(&identity).cloned().unwrap_or_default();
        let namespaces = match &scope.namespaces {
            _ if is_cluster_scoped::<K>() => Vec::new(),
            Some(namespaces) => namespaces.clone(),
            None => state.namespaces.clone(),
        };
        let factory = &self.inner.factory;
        let mut factory = factory.labels(scope.labels.as_deref().unwrap_or_default());
        if let Some(fields) = &scope.fields {
            factory = factory.fields(fields);
        }
        let newest = state.newest.shift_remove(&identity.1).unwrap_or_default();
        let informers = if namespaces.is_empty() {
            let min_version = newest.values().copied().max().unwrap_or(0).into();
            vec![ScopedInformer {
                namespace: None,
                informer: factory.informer_of::<K>(dyntype.clone()),
                min_version,
            }]
        } else {
            let one = |namespace: String| {
                let informer = factory.namespace(&namespace).informer_of::<K>(dyntype.clone());
                let namespace = Some(namespace);
                ScopedInformer {
                    min_version: newest.get(&namespace).copied().unwrap_or(0).into(),
                    namespace,
                    informer,
                }
            };
            namespaces.into_iter().map(one).collect()
        };
        let cache = KindCache::new(dyntype.clone(), informers);
        let recording = cache.clone();
        let record_write: Box<RecordWrite> =
            Box::new(move |key, version, deletion| recording.record_write(key, version, deletion));
        let watched = cache.clone();
        let unsynced: Box<Unsynced> =
            Box::new(move || (!watched.has_synced()).then(|| watched.kind().into_owned()));
        state.kinds.insert(identity, Entry { cache: Box::new(cache.clone()), record_write, unsynced });
        if state.started {
            factory.start();
        }
        cache
    }

    /// Starts the caches created so far; later ones start by themselves.
    pub fn start(&self) {
        let mut state = self.inner.state.lock();
        state.started = true;
        self.inner.factory.start();
    }

    /// Returns whether the caches were started.
    pub fn has_started(&self) -> bool {
        self.inner.state.lock().started
    }

    /// Returns the kinds whose caches have not synced yet.
    pub fn unsynced(&self) -> Vec<String> {
        let state = self.inner.state.lock();
        state.kinds.values().filter_map(|entry| (entry.unsynced)()).collect()
    }

    /// Stops the caches and waits until they have stopped. Their content stays readable.
    pub async fn stop(&self) {
        self.inner.factory.shutdown().await;
    }

    /// Returns the client of the caches.
    pub fn client(&self) -> &Client {
        self.inner.transport.kube()
    }

    /// Returns the transport of the caches.
    pub fn transport(&self) -> &Transport {
        &self.inner.transport
    }

    /// Removes a kind: stops its informers and frees the memory once its handles are dropped.
    pub async fn remove<K: Object>(&self, dyntype: &K::DynamicType) {
        let removed = self.inner.state.lock().kinds.shift_remove(&identity::<K>(dyntype));
        let cache = removed.and_then(|entry| entry.cache.downcast::<KindCache<K>>().ok());
        for informer in cache.iter().flat_map(|cache| cache.informers()) {
            self.inner.factory.remove(informer).await;
        }
    }

    /// Records a write in all caches of the kind, of any Rust type.
    pub fn record_write(
        &self,
        path: &str,
        key: &ObjectKey,
        version: Option<u64>,
        deletion: Option<&RecordedDeletion>,
    ) {
        let mut state = self.inner.state.lock();
        let mut cached = false;
        for (_, entry) in state.kinds.iter().filter(|((_, existing), _)| existing == path) {
            (entry.record_write)(key, version, deletion.cloned());
            cached = true;
        }
        if let (false, Some(version)) = (cached, version) {
            let namespace = key.namespace().map(str::to_owned);
            let newest = state.newest.entry(path.to_owned()).or_default().entry(namespace).or_default();
            *newest = version.max(*newest);
        }
    }

    /// How long a read waits for a cache to sync.
    pub const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
}

fn identity<K: Object>(dyntype: &K::DynamicType) -> Identity {
    (TypeId::of::<K>(), K::url_path(dyntype, None))
}

fn distinct<S: Into<String>>(namespaces: impl IntoIterator<Item = S>) -> Vec<String> {
    let set: indexmap::IndexSet<String> = namespaces.into_iter().map(Into::into).collect();
    set.into_iter().collect()
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.inner.state.lock().kinds.keys().map(|(_, path)| path)).finish()
    }
}

impl<K> fmt::Debug for CacheOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheOptions").field("scope", &self.scope).finish_non_exhaustive()
    }
}
