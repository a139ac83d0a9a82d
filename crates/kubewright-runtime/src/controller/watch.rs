//! One kind that wakes a controller up.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use kube::{
    Resource,
    core::{ApiResource, DynamicObject},
};

use super::{
    handler::{EventHandler, ForObject, ForOwner, Mapped},
    predicate::Predicate,
    request::{Cause, Requests},
    source::{Source, SourceContext, Started, SyncError},
};
use crate::{
    Error,
    client::{CachedClient, ClientError},
    manager::ClusterHandle,
};
use kubewright_cache::{Caches, Event, KindCache, Lazy, Registration};
use kubewright_client::ApiStatus;
use kubewright_core::{Object, ObjectKey};

/// A kind to watch, for the controller of an `Owner`: which events pass, and whose keys they lead to.
///
/// ```
/// use kubewright::{ObjectKey, cache::Lazy, controller::{Controller, Watch, predicate::ResourceVersionChanged}};
/// use kubewright::k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
///
/// let builder = Controller::of::<ConfigMap>()
///     .watches(Watch::<Deployment>::owned().when(ResourceVersionChanged))
///     .watches(Watch::mapped(|secret: &Lazy<Secret>| {
///         secret.label("used-by").map(|name| ObjectKey::new(secret.namespace(), name))
///     }));
/// ```
pub struct Watch<K: Object> {
    dyntype: K::DynamicType,
    handler: Handling<K>,
    predicates: Vec<Box<dyn Predicate<K>>>,
    from: From<K>,
    resync: Option<Duration>,
}

enum Handling<K> {
    Owner { any: bool },
    Own(Box<dyn EventHandler<K>>),
}

/// Whose cache is watched.
enum From<K: Object> {
    /// That of the manager's own cluster.
    Manager,
    /// That of another cluster.
    Caches(Caches),
    /// One that somebody else runs.
    Cache(KindCache<K>),
}

impl<K: Object + Resource<DynamicType = ()>> Watch<K> {
    /// Objects that the controller's kind controls.
    pub fn owned() -> Self {
        Self::of((), Handling::Owner { any: false })
    }

    /// Objects that the controller's kind owns, whether it controls them or not.
    pub fn owned_by_any() -> Self {
        Self::of((), Handling::Owner { any: true })
    }

    /// Objects for which a function names the keys to reconcile. It is asked for both sides of an update.
    pub fn mapped<I>(map: impl Fn(&Lazy<K>) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = ObjectKey> + 'static,
    {
        Self::handled(Mapped::by(map))
    }

    /// Objects whose events a handler turns into requests.
    pub fn handled(handler: impl EventHandler<K>) -> Self {
        Self::of((), Handling::Own(Box::new(handler)))
    }
}

impl Watch<DynamicObject> {
    /// Objects of a kind that is known only at run time, and that the controller's kind controls.
    pub fn dynamic(resource: &ApiResource) -> Self {
        Self::of(resource.clone(), Handling::Owner { any: false })
    }
}

impl<K: Object> Watch<K> {
    fn of(dyntype: K::DynamicType, handler: Handling<K>) -> Self {
        Self { dyntype, handler, predicates: Vec::new(), from: From::Manager, resync: None }
    }

    pub(super) fn itself(dyntype: K::DynamicType) -> Self {
        Self::of(dyntype, Handling::Own(Box::new(ForObject)))
    }

    /// Only events that pass. Several of these must all pass.
    #[must_use]
    pub fn when(mut self, predicate: impl Predicate<K>) -> Self {
        self.predicates.push(Box::new(predicate));
        self
    }

    /// Turns events into requests with this handler instead.
    #[must_use]
    pub fn by(mut self, handler: impl EventHandler<K>) -> Self {
        self.handler = Handling::Own(Box::new(handler));
        self
    }

    /// Hears of every object again in this interval, as of an update that changes nothing. It costs no request.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.resync = Some(interval);
        self
    }

    /// Watches another cluster than the manager's own.
    #[must_use]
    pub fn in_cluster(mut self, cluster: &ClusterHandle) -> Self {
        self.from = From::Caches(cluster.caches().clone());
        self
    }

    /// Watches a cache that somebody else runs.
    #[must_use]
    pub fn through(mut self, cache: KindCache<K>) -> Self {
        self.from = From::Cache(cache);
        self
    }

    /// The watch as a source for the controller of `O`.
    pub(super) fn into_source<O: Object>(self, owner: &O::DynamicType, cluster_scoped: bool) -> impl Source {
        let handler: Box<dyn EventHandler<K>> = match self.handler {
            Handling::Own(handler) => handler,
            Handling::Owner { any } => {
                let mut handler = ForOwner::of::<O>(owner);
                if any {
                    handler = handler.any();
                }
                if cluster_scoped {
                    handler = handler.cluster_scoped();
                }
                Box::new(handler)
            }
        };
        KindSource {
            dyntype: self.dyntype,
            handler: Arc::new(Filtered { predicates: self.predicates, handler }),
            from: self.from,
            resync: self.resync,
        }
    }
}

struct KindSource<K: Object> {
    dyntype: K::DynamicType,
    handler: Arc<Filtered<K>>,
    from: From<K>,
    resync: Option<Duration>,
}

struct Filtered<K> {
    predicates: Vec<Box<dyn Predicate<K>>>,
    handler: Box<dyn EventHandler<K>>,
}

impl<K: 'static> Filtered<K> {
    fn handle(&self, event: &Event<K>, requests: &mut Requests) {
        if self.predicates.iter().all(|predicate| predicate.passes(event)) {
            self.handler.handle(event, requests.because(Cause::of(event)));
        }
    }
}

impl<K: Object> Source for KindSource<K> {
    fn name(&self) -> String {
        K::kind(&self.dyntype).into_owned()
    }

    fn start(self: Box<Self>, cx: &SourceContext, requests: Requests) -> Started {
        let caches = match &self.from {
            From::Caches(caches) => caches,
            From::Manager | From::Cache(_) => cx.caches(),
        };
        let cache = match self.from {
            From::Cache(ref cache) => cache.clone(),
            _ => caches.dynamic(&self.dyntype),
        };
        let registrations = cache.informers().map(|informer| {
            let (handler, mut requests) = (Arc::clone(&self.handler), requests.clone());
            let informer = match self.resync {
                Some(interval) => informer.clone().resync(interval),
                None => informer.clone(),
            };
            informer.on_event(move |event| handler.handle(&event, &mut requests))
        });
        let registrations: Vec<Registration> = registrations.collect();
        let synced: Vec<_> = registrations.iter().map(Registration::when_synced).collect();
        let kind = CachedClient::new(caches).kind::<K>(self.dyntype.clone());
        let name = self.name();
        let probe: Probe = Box::new(move || {
            let kind = kind.clone();
            Box::pin(async move { kind.probe().await })
        });
        Started::new(
            registrations,
            synced_in_time(Box::pin(join_all(synced)), name, probe, cx.sync_timeout()),
        )
    }
}

/// How long a reflector may take to notice that its kind is served after all: its longest wait, and then some.
const NOTICING: Duration = Duration::from_mins(1);

/// Asks the server for one object of a kind.
type Probe = Box<dyn Fn() -> BoxFuture<'static, Result<(), ClientError>> + Send + Sync>;

/// Waits for a cache. Time is up only for a kind that the server serves.
async fn synced_in_time(
    mut synced: BoxFuture<'static, Vec<()>>,
    name: String,
    probe: Probe,
    timeout: Duration,
) -> Result<(), Error> {
    let mut was_missing = false;
    loop {
        let patience = if was_missing { timeout.max(NOTICING) } else { timeout };
        if tokio::time::timeout(patience, &mut synced).await.is_ok() {
            return Ok(());
        }
        match probe().await {
            // Installed later, most likely: a custom resource that nobody has defined yet.
            Err(error) if error.is_not_found() => {
                tracing::warn!(kind = name, "the server does not serve this kind yet: waiting for it");
                was_missing = true;
            }
            // Served since the last look: the reflector will notice.
            Ok(()) if was_missing => {
                tokio::select! {
                    biased;
                    _ = &mut synced => return Ok(()),
                    () = tokio::time::sleep(NOTICING) => was_missing = false,
                }
            }
            probed => {
                let cause = probed.err().map(Into::into);
                return Err(SyncError { kind: name, waited: timeout, cause }.into());
            }
        }
    }
}
