//! Watched kinds: the events that wake a controller up.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use kube::{
    Resource,
    core::{ApiResource, DynamicObject},
};

use super::{
    handler::{ByIndex, EventHandler, ForObject, ForOwner, HandlerContext, Mapped},
    predicate::Predicate,
    request::{Cause, Requests},
    source::{Source, SourceContext, Started, SyncError},
};
use crate::{
    Error,
    client::{CachedClient, ClientError},
    manager::ClusterHandle,
};
use kubewright_cache::{Caches, Event, FieldIndex, KindCache, Lazy, Registration};
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
    source: CacheSource<K>,
    resync: Option<Duration>,
}

enum Handling<K> {
    Owner { any: bool },
    Own(Box<dyn EventHandler<K>>),
}

/// The cache that is watched.
enum CacheSource<K: Object> {
    /// That of the manager's own cluster.
    Manager,
    /// That of another cluster.
    Caches(Caches),
    /// One that the program runs itself.
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

    /// Objects for which a function returns the keys to reconcile. It is called for both sides of an update.
    pub fn mapped<I>(map: impl Fn(&Lazy<K>) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = ObjectKey> + 'static,
    {
        Self::handled(Mapped::by(move |object: &Lazy<K>, _: &HandlerContext| map(object)))
    }

    /// The same for a function that looks other objects up, in the caches of the context.
    pub fn mapped_with<I>(map: impl Fn(&Lazy<K>, &HandlerContext) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = ObjectKey> + 'static,
    {
        Self::handled(Mapped::by(map))
    }

    /// Objects that objects of kind `O` refer to: an event reconciles those that have its object's key in the index.
    ///
    /// ```
    /// use kubewright::{ObjectKey, cache::FieldIndex, controller::{Controller, Watch}};
    /// use kubewright::k8s_openapi::api::{core::v1::Secret, networking::v1::Ingress};
    ///
    /// static INGRESSES_BY_SECRET: FieldIndex<Ingress> = FieldIndex::new("secret", |ingress, values| {
    ///     let loaded = ingress.load()?;
    ///     let hosts = loaded.spec.iter().flat_map(|spec| spec.tls.iter().flatten());
    ///     let secrets = hosts.filter_map(|host| host.secret_name.as_deref());
    ///     values.extend(secrets.map(|name| ObjectKey::new(ingress.namespace(), name).to_string()));
    ///     Ok(())
    /// });
    ///
    /// let builder = Controller::of::<Ingress>().watches(Watch::<Secret>::by_index(&INGRESSES_BY_SECRET));
    /// ```
    pub fn by_index<O: Object + Resource<DynamicType = ()>>(index: &'static FieldIndex<O>) -> Self {
        Self::handled(ByIndex::new(index))
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
        Self { dyntype, handler, predicates: Vec::new(), source: CacheSource::Manager, resync: None }
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
        self.source = CacheSource::Caches(cluster.caches().clone());
        self
    }

    /// Watches a cache that the program runs itself.
    #[must_use]
    pub fn through(mut self, cache: KindCache<K>) -> Self {
        self.source = CacheSource::Cache(cache);
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
            source: self.source,
            resync: self.resync,
        }
    }
}

struct KindSource<K: Object> {
    dyntype: K::DynamicType,
    handler: Arc<Filtered<K>>,
    source: CacheSource<K>,
    resync: Option<Duration>,
}

struct Filtered<K> {
    predicates: Vec<Box<dyn Predicate<K>>>,
    handler: Box<dyn EventHandler<K>>,
}

impl<K: 'static> Filtered<K> {
    fn handle(&self, event: &Event<K>, cx: &mut HandlerContext) {
        if self.predicates.iter().all(|predicate| predicate.passes(event)) {
            cx.requests_mut().because(Cause::of(event));
            self.handler.handle(event, cx);
        }
    }
}

impl<K: Object> Source for KindSource<K> {
    fn name(&self) -> String {
        K::kind(&self.dyntype).into_owned()
    }

    fn start(self: Box<Self>, cx: &SourceContext, requests: Requests) -> Started {
        let caches = match &self.source {
            CacheSource::Caches(caches) => caches,
            CacheSource::Manager | CacheSource::Cache(_) => cx.caches(),
        };
        let cache = match &self.source {
            CacheSource::Cache(cache) => cache.clone(),
            CacheSource::Manager | CacheSource::Caches(_) => caches.dynamic(&self.dyntype),
        };
        let context = HandlerContext::new(cx, requests);
        let registrations = cache.informers().map(|informer| {
            let (handler, mut context) = (Arc::clone(&self.handler), context.clone());
            let informer = match self.resync {
                Some(interval) => informer.clone().resync(interval),
                None => informer.clone(),
            };
            informer.on_event(move |event| handler.handle(&event, &mut context))
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
