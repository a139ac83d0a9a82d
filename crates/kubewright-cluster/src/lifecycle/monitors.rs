//! Informers of the metadata of every kind, including kinds that come and go.
//!
//! The garbage collector, the namespace controller and quotas look at all kinds alike. Each registers with [`Monitors`]
//! for every change; one informer per kind serves all of them. Definitions of custom resources and of aggregated APIs are
//! watched themselves: a change of those is the moment to ask the server again what it serves.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kubewright::{
    Error,
    cache::{Event, ListWatch, Registration, Running, SharedInformer},
    client::{Clients, ResourceInfo},
    controller::{
        HandlerContext, Requests,
        source::{Source, SourceContext, Started},
    },
    manager::{RunContext, Runnable, RunnableFuture},
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What the cache has of an object of any kind.
pub type Metadata = PartialObjectMeta<DynamicObject>;

/// Handler of every change.
type Listener = Arc<dyn Fn(&Arc<ResourceInfo>, &Event<Metadata>) + Send + Sync>;

/// Kinds whose objects own nothing and are owned by nobody, and come by the thousand.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];
/// Kinds that define kinds.
const DEFINING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")];

/// Informers of the metadata of every kind. A clone is a handle to the same.
#[derive(Clone)]
pub struct Monitors {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Clients,
    listeners: Mutex<Vec<Listener>>,
    watched: Mutex<IndexMap<String, Watched>>,
    /// A kind was defined or removed.
    stale: Arc<Notify>,
}

/// One kind that is watched. Dropping it ends that.
struct Watched {
    informer: SharedInformer<Metadata>,
    told: Registration,
    _running: Running,
}

impl Monitors {
    /// Monitors that watch nothing yet.
    pub fn new(clients: &Clients) -> Self {
        let shared = Shared {
            clients: clients.clone(),
            listeners: Mutex::default(),
            watched: Mutex::default(),
            stale: Arc::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Tells of every change from now on. To be called before they are [followed](Self::follow), or what was there is missed.
    pub fn listen(&self, listener: impl Fn(&Arc<ResourceInfo>, &Event<Metadata>) + Send + Sync + 'static) {
        self.shared.listeners.lock().push(Arc::new(listener));
    }

    /// Source of requests from every change of every kind. To be made before the monitors are [followed](Self::follow);
    /// events before the controller starts are dropped, as it begins with a list of its own kind.
    pub(crate) fn source(
        &self,
        name: &'static str,
        handle: impl Fn(&Event<Metadata>, &HandlerContext) + Send + Sync + 'static,
    ) -> impl Source {
        let context: Arc<OnceLock<HandlerContext>> = Arc::default();
        let started = Arc::clone(&context);
        self.listen(move |_, event| {
            if let Some(cx) = started.get() {
                handle(event, cx);
            }
        });
        MonitorSource { name, context }
    }

    /// Watches all kinds that there are, and waits until they are listed and told of.
    pub async fn sync(&self) -> Result<(), Error> {
        let served = self.shared.clients.discovery().refresh().await?;
        let mut wanted: IndexMap<String, Arc<ResourceInfo>> = IndexMap::new();
        for resource in served.preferred() {
            let id = (resource.group.as_str(), resource.plural.as_str());
            let usable = ["delete", "list", "watch"].iter().all(|verb| resource.supports(verb));
            if usable && !IGNORED.contains(&id) {
                wanted.insert(resource.to_string(), resource);
            }
        }
        let synced: Vec<_> = {
            let mut watched = self.shared.watched.lock();
            // A group that cannot be asked has not lost its kinds.
            if served.failures.is_empty() {
                watched.retain(|name, _| wanted.contains_key(name));
            }
            for (name, resource) in wanted {
                watched.entry(name).or_insert_with(|| self.watch(&resource));
            }
            watched.values().map(|one| one.told.when_synced()).collect()
        };
        for one in synced {
            one.await;
        }
        Ok(())
    }

    fn watch(&self, resource: &Arc<ResourceInfo>) -> Watched {
        let client = self.shared.clients.client();
        let informer = SharedInformer::new(ListWatch::dynamic(client, resource.api_resource()));
        let listeners = self.shared.listeners.lock().clone();
        let defining = DEFINING.contains(&(resource.group.as_str(), resource.plural.as_str()));
        let (resource, stale) = (Arc::clone(resource), Arc::clone(&self.shared.stale));
        let told = informer.on_event(move |event| {
            for listener in &listeners {
                listener(&resource, &event);
            }
            if defining && !event.is_sync() {
                stale.notify_one();
            }
        });
        let running = informer.start();
        Watched { informer, told, _running: running }
    }

    /// Follows the kinds that come and go until it is told to stop.
    pub async fn follow(&self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.shared.stale.notified() => {}
            }
            if let Err(error) = self.sync().await {
                tracing::warn!(%error, "cannot see which kinds the server serves; trying again at the next change");
            }
        }
        self.shared.watched.lock().clear();
    }

    /// How many kinds are watched.
    pub fn len(&self) -> usize {
        self.shared.watched.lock().len()
    }

    /// Whether no kind is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all kinds that are watched have been listed.
    pub fn has_synced(&self) -> bool {
        self.shared.watched.lock().values().all(|one| one.informer.has_synced())
    }

    /// The kind that an `apiVersion` and a `kind` name; `None` when the server does not serve it.
    pub(crate) async fn resource(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ResourceInfo>>, Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match self.shared.clients.mapper().kind(&GroupVersionKind::gvk(group, version, kind)).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_no_match() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Source of a controller that handles changes of every kind.
struct MonitorSource {
    name: &'static str,
    /// Set when the controller starts.
    context: Arc<OnceLock<HandlerContext>>,
}

impl Source for MonitorSource {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn start(self: Box<Self>, cx: &SourceContext, requests: Requests) -> Started {
        self.context.get_or_init(|| HandlerContext::new(cx, requests));
        Started::new((), std::future::ready(Ok(())))
    }
}

/// The objects of a kind, in a namespace where the kind has them.
pub(crate) fn api_of(
    client: kube::Client,
    resource: &ResourceInfo,
    namespace: Option<&str>,
) -> kube::Api<DynamicObject> {
    let kind: ApiResource = resource.api_resource();
    match namespace {
        Some(namespace) if resource.is_namespaced() => kube::Api::namespaced_with(client, namespace, &kind),
        _ => kube::Api::all_with(client, &kind),
    }
}

/// The monitors as a manager runs them: what is elected starts when all kinds have been listed.
impl Runnable for Monitors {
    fn name(&self) -> String {
        "monitors".to_owned()
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> RunnableFuture<'a> {
        Box::pin(self.sync())
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            self.follow(cx.stop()).await;
            Ok(())
        })
    }
}

impl std::fmt::Debug for Monitors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitors").field("kinds", &self.len()).finish_non_exhaustive()
    }
}
