//! The caches of a whole program: which kinds, of which namespaces, how kept; made when first asked for.
//!
//! [`InformerFactory`] makes one informer per kind and scope. [`Caches`] stands above it for programs that speak of kinds
//! only: a manager, its controllers and its client. What is cached of a kind is said once, before it is first used; who
//! asks for the kind afterwards gets the same [`KindCache`], however many namespaces it is made of.
//!
//! Pitfall: an object outside of a cache's selector or namespaces is not "gone". Reads of a namespace that is not cached
//! are refused; reads of an object that the selector leaves out find nothing.

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
    kind_cache::{Gone, KindCache, Part},
};
use kubewright_client::Transport;
use kubewright_core::{Object, ObjectKey, object::is_cluster_scoped};

/// What is cached of one kind, and how.
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
    /// Everything, packed.
    pub fn new() -> Self {
        Self {
            scope: Scope::default(),
            form: None,
            keep_managed_fields: false,
            streaming: false,
            transform: None,
        }
    }

    /// Only these namespaces, whatever the default for other kinds is; none of them means all.
    #[must_use]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.scope.namespaces = Some(distinct(namespaces));
        self
    }

    /// Only objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.scope.labels = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects whose fields match.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.scope.fields = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// How objects are kept.
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

    /// Asks for the present state as a stream instead of a list, see [`ListWatch::streaming`].
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Changes every object before it is kept.
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

/// All caches of one cluster. Handles are cheap and share them.
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
    /// The newest version of one's own writes, by path and namespace: caches that are made later have to reach it.
    newest: IndexMap<String, IndexMap<Option<String>, u64>>,
}

/// A Rust type, and the kind that it stands for at run time.
type Identity = (TypeId, String);

struct Entry {
    cache: Box<dyn Any + Send + Sync>,
    note: Box<Note>,
    unsynced: Box<Unsynced>,
}

/// What the kind is called, while its cache is not filled.
type Unsynced = dyn Fn() -> Option<String> + Send + Sync;

/// Notes a write: which object, the version that came of it, the identity that must go.
type Note = dyn Fn(&ObjectKey, Option<u64>, Option<Gone>) + Send + Sync;

/// The options of a kind came after its cache was made.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the cache of {0} is in use already; say what to cache before the first controller or read asks for it"
)]
pub struct TooLate(pub String);

impl Caches {
    /// Caches of a cluster: everything in all namespaces, unless said otherwise.
    ///
    /// Over a [`Transport`] of ours, writes take a shorter way than through its [`kube::Client`].
    pub fn new(transport: impl Into<Transport>) -> Self {
        let transport = transport.into();
        let factory = InformerFactory::new(transport.client());
        Self { inner: Arc::new(Inner { transport, factory, state: Mutex::default() }) }
    }

    /// The namespaces to cache, for kinds that have no options of their own. Kinds without namespaces are not affected.
    #[must_use]
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.inner.state.lock().namespaces = distinct(namespaces);
        self
    }

    /// Tells this function, instead of the log, what goes wrong in the caches made from now on.
    #[must_use]
    pub fn on_fault(self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        // The factory is a handle: what it is told, all of its handles know.
        let _ = self.inner.factory.clone().on_fault(handler);
        self
    }

    /// What to cache of a kind that has a Rust type.
    pub fn configure<K>(&self, options: CacheOptions<K>) -> Result<(), TooLate>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let identity = identity::<K>(&());
        let too_late = || TooLate(K::kind(&()).into_owned());
        let mut state = self.inner.state.lock();
        if state.kinds.contains_key(&identity) {
            return Err(too_late());
        }
        state.scopes.insert(identity, options.scope.clone());
        self.inner.factory.tweak::<K>(move |list_watch| options.tweak(list_watch)).map_err(|_| too_late())
    }

    /// The cache of a kind with a Rust type. It is made and, if the others run, started when first asked for.
    pub fn of<K>(&self) -> KindCache<K>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.dynamic(&())
    }

    /// The cache of a kind that is described at run time.
    pub fn dynamic<K: Object>(&self, dyntype: &K::DynamicType) -> KindCache<K> {
        let identity = identity::<K>(dyntype);
        let mut state = self.inner.state.lock();
        let held = state.kinds.get(&identity).and_then(|entry| entry.cache.downcast_ref::<KindCache<K>>());
        if let Some(cache) = held {
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
        let parts = if namespaces.is_empty() {
            let floor = newest.values().copied().max().unwrap_or(0).into();
            vec![Part { namespace: None, informer: factory.informer_of::<K>(dyntype.clone()), floor }]
        } else {
            let one = |namespace: String| {
                let informer = factory.namespace(&namespace).informer_of::<K>(dyntype.clone());
                let namespace = Some(namespace);
                Part { floor: newest.get(&namespace).copied().unwrap_or(0).into(), namespace, informer }
            };
            namespaces.into_iter().map(one).collect()
        };
        let cache = KindCache::new(dyntype.clone(), parts);
        let noting = cache.clone();
        let note: Box<Note> = Box::new(move |key, version, gone| noting.note(key, version, gone));
        let watched = cache.clone();
        let unsynced: Box<Unsynced> =
            Box::new(move || (!watched.has_synced()).then(|| watched.kind().into_owned()));
        state.kinds.insert(identity, Entry { cache: Box::new(cache.clone()), note, unsynced });
        if state.started {
            factory.start();
        }
        cache
    }

    /// Starts the caches that were asked for; those asked for later start by themselves.
    pub fn start(&self) {
        let mut state = self.inner.state.lock();
        state.started = true;
        self.inner.factory.start();
    }

    /// Whether they were started.
    pub fn has_started(&self) -> bool {
        self.inner.state.lock().started
    }

    /// The kinds whose caches are not filled yet, of those that were asked for.
    pub fn unsynced(&self) -> Vec<String> {
        let state = self.inner.state.lock();
        state.kinds.values().filter_map(|entry| (entry.unsynced)()).collect()
    }

    /// Stops the caches and waits until they have stopped. What they hold stays readable.
    pub async fn stop(&self) {
        self.inner.factory.shutdown().await;
    }

    /// The client through which they follow the cluster.
    pub fn client(&self) -> &Client {
        self.inner.transport.kube()
    }

    /// …and what it is made of.
    pub fn transport(&self) -> &Transport {
        &self.inner.transport
    }

    /// Forgets about a kind, stops following it and frees its memory once nobody holds its handles.
    pub async fn remove<K: Object>(&self, dyntype: &K::DynamicType) {
        let removed = self.inner.state.lock().kinds.shift_remove(&identity::<K>(dyntype));
        let cache = removed.and_then(|entry| entry.cache.downcast::<KindCache<K>>().ok());
        for informer in cache.iter().flat_map(|cache| cache.informers()) {
            self.inner.factory.remove(informer).await;
        }
    }

    /// Notes a write of our own for all caches of the kind, whatever Rust type they are of.
    pub fn note(&self, path: &str, key: &ObjectKey, version: Option<u64>, gone: Option<&Gone>) {
        let mut state = self.inner.state.lock();
        let mut cached = false;
        for (_, entry) in state.kinds.iter().filter(|((_, held), _)| held == path) {
            (entry.note)(key, version, gone.cloned());
            cached = true;
        }
        if let (false, Some(version)) = (cached, version) {
            let namespace = key.namespace().map(str::to_owned);
            let newest = state.newest.entry(path.to_owned()).or_default().entry(namespace).or_default();
            *newest = version.max(*newest);
        }
    }

    /// How long a read waits for a cache that has not synced, before it says so.
    pub const SYNC_PATIENCE: Duration = Duration::from_secs(30);
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
