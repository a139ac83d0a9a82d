//! One informer per kind and scope, however many parts of a program ask for it.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::{
    fault::{Fault, Faults},
    list_watch::ListWatch,
    running::Running,
    shared_informer::SharedInformer,
    wire::codec::Form,
};

/// Makes informers and runs them together.
///
/// Handles are cheap and share the informers; each handle has a scope (namespace, selectors), so that
/// `factory.namespace("shop").informer::<Pod>()` and `factory.informer::<Pod>()` are two informers, and either asked for
/// twice is the same one. Dropping the last handle stops them.
///
/// ```no_run
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use kubewright::cache::InformerFactory;
/// use kubewright::k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
///
/// let factory = InformerFactory::new(client).resync(Duration::from_secs(30));
/// let services = factory.informer::<Service>();
/// let deployments = factory.namespace("shop").informer::<Deployment>();
/// factory.start();
/// factory.wait_for_sync().await?;
/// println!("{} services, {} deployments", services.store().len(), deployments.store().len());
/// factory.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
    scope: Scope,
    resync: Option<Duration>,
}

struct Shared {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    informers: IndexMap<Identity, Entry>,
    tweaks: IndexMap<TypeId, Box<dyn Any + Send + Sync>>,
    form: Form,
    faults: Option<Faults>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Scope {
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

/// What makes two requests for an informer the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    rust_type: TypeId,
    path: String,
    scope: Scope,
}

struct Entry {
    informer: Box<dyn AnyInformer>,
    running: Option<Running>,
}

/// A factory was asked for something that cannot be.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// Waiting for these would be waiting for ever.
    #[error("not started: {0:?}; call start() after the last informer() and before wait_for_sync()")]
    NotStarted(Vec<String>),
    /// The informers of this kind are made already.
    #[error("an informer of {0} exists already; tweak a kind before its first informer is asked for")]
    TooLate(&'static str),
}

/// The part of an informer that does not depend on its type.
trait AnyInformer: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn start(&self) -> Running;
    fn synced(&self) -> BoxFuture<'static, ()>;
}

impl<K> AnyInformer for SharedInformer<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Send + Sync,
{
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn start(&self) -> Running {
        SharedInformer::start(self)
    }

    fn synced(&self) -> BoxFuture<'static, ()> {
        let informer = self.clone();
        Box::pin(async move { informer.synced().await })
    }
}

type Tweak<K> = Box<dyn Fn(ListWatch<K>) -> ListWatch<K> + Send + Sync>;

impl InformerFactory {
    /// A factory of informers in all namespaces.
    pub fn new(client: Client) -> Self {
        let shared = Shared { client, state: Mutex::default() };
        Self { shared: Arc::new(shared), scope: Scope::default(), resync: None }
    }

    /// A handle whose informers have handlers that look at every object again in this period.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// How the informers made from now on keep their objects.
    #[must_use]
    pub fn form(self, form: Form) -> Self {
        self.shared.state.lock().form = form;
        self
    }

    /// Tells this function, instead of the log, what went wrong in the informers made from now on.
    #[must_use]
    pub fn on_fault(self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.shared.state.lock().faults = Some(Faults::to(handler));
        self
    }

    /// A handle to the same factory for one namespace.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> Self {
        self.scoped(|scope| scope.namespace = Some(namespace.into()))
    }

    /// A handle to the same factory for objects with matching labels.
    #[must_use]
    pub fn labels(&self, selector: impl fmt::Display) -> Self {
        self.scoped(|scope| scope.labels = Some(selector.to_string()))
    }

    /// A handle to the same factory for objects with matching fields.
    #[must_use]
    pub fn fields(&self, selector: impl fmt::Display) -> Self {
        self.scoped(|scope| scope.fields = Some(selector.to_string()))
    }

    fn scoped(&self, change: impl FnOnce(&mut Scope)) -> Self {
        let mut handle = self.clone();
        change(&mut handle.scope);
        handle
    }

    /// Changes how every informer of one kind asks for its objects and keeps them: selectors, transform, form.
    pub fn tweak<K>(
        &self,
        tweak: impl Fn(ListWatch<K>) -> ListWatch<K> + Send + Sync + 'static,
    ) -> Result<(), FactoryError>
    where
        K: Resource + 'static,
    {
        let mut state = self.shared.state.lock();
        let rust_type = TypeId::of::<K>();
        if state.informers.keys().any(|identity| identity.rust_type == rust_type) {
            return Err(FactoryError::TooLate(std::any::type_name::<K>()));
        }
        let tweak: Tweak<K> = Box::new(tweak);
        state.tweaks.insert(rust_type, Box::new(tweak));
        Ok(())
    }

    /// The informer of a kind with a Rust type. For metadata only, ask for `PartialObjectMeta<K>`.
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.informer_of(())
    }

    /// The informer of a kind that is known only at run time.
    ///
    /// The kind need not exist yet: the informer tries until it does.
    pub fn dynamic(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.informer_of(resource.clone())
    }

    /// The informer of the metadata of a kind that is known only at run time.
    pub fn metadata(&self, resource: &ApiResource) -> SharedInformer<PartialObjectMeta<DynamicObject>> {
        self.informer_of(resource.clone())
    }

    pub(crate) fn informer_of<K>(&self, dyntype: K::DynamicType) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Send + Sync,
    {
        let mut list_watch = ListWatch::<K>::dynamic(self.shared.client.clone(), dyntype);
        if let Some(namespace) = &self.scope.namespace {
            list_watch = list_watch.namespace(namespace);
        }
        list_watch = list_watch
            .labels(self.scope.labels.as_deref().unwrap_or_default())
            .fields(self.scope.fields.as_deref().unwrap_or_default());
        let identity =
            Identity { rust_type: TypeId::of::<K>(), path: list_watch.path(), scope: self.scope.clone() };
        let mut state = self.shared.state.lock();
        let found = state.informers.get(&identity);
        let found = found.and_then(|entry| entry.informer.as_any().downcast_ref::<SharedInformer<K>>());
        let informer = if let Some(informer) = found {
            informer.clone()
        } else {
            let informer = SharedInformer::new(state.configured(list_watch));
            let entry = Entry { informer: Box::new(informer.clone()), running: None };
            state.informers.insert(identity, entry);
            informer
        };
        match self.resync {
            Some(period) => informer.resync(period),
            None => informer,
        }
    }

    /// Starts every informer that is not running yet. Informers asked for later need another start.
    pub fn start(&self) {
        for entry in self.shared.state.lock().informers.values_mut() {
            if entry.running.is_none() {
                entry.running = Some(entry.informer.start());
            }
        }
    }

    /// Waits until the cache of every informer has synced. Put a time-out around it: a kind that does not exist never
    /// syncs.
    pub async fn wait_for_sync(&self) -> Result<(), FactoryError> {
        let waits: Vec<_> = {
            let state = self.shared.state.lock();
            let idle: Vec<String> = state
                .informers
                .iter()
                .filter(|(_, entry)| entry.running.is_none())
                .map(|(identity, _)| identity.path.clone())
                .collect();
            if !idle.is_empty() {
                return Err(FactoryError::NotStarted(idle));
            }
            state.informers.values().map(|entry| entry.informer.synced()).collect()
        };
        futures::future::join_all(waits).await;
        Ok(())
    }

    /// Stops an informer and forgets it; asked for again, it is made anew. Handles to it keep their last content.
    pub async fn remove<K>(&self, informer: &SharedInformer<K>)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Send + Sync,
    {
        let entry = {
            let mut state = self.shared.state.lock();
            let at = state.informers.values().position(|entry| {
                entry
                    .informer
                    .as_any()
                    .downcast_ref::<SharedInformer<K>>()
                    .is_some_and(|held| held.is(informer))
            });
            at.and_then(|at| state.informers.shift_remove_index(at))
        };
        if let Some(running) = entry.and_then(|(_, entry)| entry.running) {
            running.stop().await;
        }
    }

    /// Stops all informers and waits until they have stopped.
    pub async fn shutdown(&self) {
        let running: Vec<Running> = self
            .shared
            .state
            .lock()
            .informers
            .values_mut()
            .filter_map(|entry| entry.running.take())
            .collect();
        for running in running {
            running.stop().await;
        }
    }
}

impl State {
    fn configured<K: Resource + 'static>(&self, list_watch: ListWatch<K>) -> ListWatch<K> {
        let mut list_watch = list_watch.form(self.form);
        if let Some(faults) = self.faults.clone() {
            list_watch = list_watch.on_fault(move |fault| faults.report(fault));
        }
        match self.tweaks.get(&TypeId::of::<K>()).and_then(|tweak| tweak.downcast_ref::<Tweak<K>>()) {
            Some(tweak) => tweak(list_watch),
            None => list_watch,
        }
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_list().entries(state.informers.keys().map(|identity| &identity.path)).finish()
    }
}
