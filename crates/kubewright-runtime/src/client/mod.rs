//! Cached client: reads from caches, writes to the server; no read is older than this client's own writes.
//!
//! | task | method |
//! |---|---|
//! | one object, from the cache | [`get`](CachedClient::get) |
//! | many, by namespace, labels or an index | [`list`](CachedClient::list) |
//! | the same, from the server | `client.live().get(…)`, `client.live().list(…)` |
//! | write | [`create`](CachedClient::create), [`update`](CachedClient::update), [`patch`](CachedClient::patch), [`apply`](CachedClient::apply), [`delete`](CachedClient::delete), [`delete_all`](CachedClient::delete_all) |
//! | create or change an object | [`create_or_update`](CachedClient::create_or_update), [`create_or_patch`](CachedClient::create_or_patch) |
//! | subresources | `client.of::<K>().status()`, `client.of::<K>().subresource(…)` |
//! | clean up before an object is deleted | [`finalizer`](KindClient::finalizer) |
//! | kinds known only at run time | [`dynamic`](CachedClient::dynamic), then the same |
//!
//! Options are set per handle: `client.dry_run()`, `client.field_owner("me")` and `client.live()` return
//! handles to the same client with the option set.
//!
//! # Pitfalls
//! - Objects are shared with the cache; clone them before changing them.
//! - The first read of a kind that is not cached yet starts an informer for all of it. For a few reads of a
//!   kind with many objects, use [`live`](CachedClient::live).

mod apply;
mod create_or_update;
mod delete;
mod error;
mod finalizer;
mod kind_client;
mod list;
mod merge;
mod status;
mod subresource;

use std::sync::Arc;

use kube::{Client, Resource, api::Patch, core::ApiResource, core::DynamicObject};
use serde::Serialize;

pub use self::{
    apply::Apply,
    create_or_update::{CreateOrUpdate, MutationOutcome, OperationResult, Written},
    delete::{Delete, DeleteAll},
    error::{ClientError, ControlledBy},
    finalizer::{CleanUp, Finalizer},
    kind_client::KindClient,
    list::List,
    status::StatusUpdate,
    subresource::Subresource,
};
use kubewright_cache::Caches;
use kubewright_core::{Object, ObjectKey};

/// Client that reads from caches and writes to the server. Cheap to clone.
///
/// ```no_run
/// # async fn example(client: kube::Client) -> kubewright::Result<()> {
/// use kubewright::{ObjectKey, cache::Caches, client::CachedClient};
/// use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Pod};
///
/// let caches = Caches::new(client);
/// caches.start();
/// let client = CachedClient::new(&caches).field_owner("example");
/// for pod in client.list::<Pod>().namespace("shop").label("app", "web").await? {
///     println!("{}", pod.key());
/// }
/// let settings = ObjectKey::namespaced("shop", "settings");
/// client
///     .create_or_update(&settings, |map: &mut ConfigMap| {
///         map.data.get_or_insert_default().insert("colour".into(), "blue".into());
///     })
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct CachedClient {
    caches: Caches,
    settings: Settings,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    live: bool,
    dry_run: bool,
    field_owner: Option<Arc<str>>,
}

impl CachedClient {
    /// Creates a client over these caches that writes to the same cluster.
    pub fn new(caches: &Caches) -> Self {
        Self { caches: caches.clone(), settings: Settings::default() }
    }

    /// Returns a client whose reads go to the server.
    #[must_use]
    pub fn live(&self) -> Self {
        self.with_settings(|settings| settings.live = true)
    }

    /// Returns a client whose writes are dry runs: validated by the server and not stored.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with_settings(|settings| settings.dry_run = true)
    }

    /// Returns a client that writes under this field manager. Apply requires one.
    #[must_use]
    pub fn field_owner(&self, name: &str) -> Self {
        self.with_settings(|settings| settings.field_owner = Some(name.into()))
    }

    fn with_settings(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut handle = self.clone();
        change(&mut handle.settings);
        handle
    }

    /// Returns the caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Returns the underlying [`kube::Client`]. Writes through it are not recorded: cached reads do not wait
    /// for them.
    pub fn client(&self) -> &Client {
        self.caches.client()
    }

    /// Returns the client for one kind, with its subresources and finalizers.
    pub fn of<K: Object + Resource<DynamicType = ()>>(&self) -> KindClient<K> {
        self.kind(())
    }

    /// Returns the client for a kind that is known only at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> KindClient<DynamicObject> {
        self.kind(resource.clone())
    }

    /// Returns the client for any kind, from its dynamic type.
    pub fn kind<K: Object>(&self, dyntype: K::DynamicType) -> KindClient<K> {
        KindClient::new(self.clone(), dyntype)
    }

    /// Returns the object with this key; `None` if it does not exist.
    pub async fn get<K: Object + Resource<DynamicType = ()>>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<Arc<K>>, ClientError> {
        self.of::<K>().get(key).await
    }

    /// Starts a list; restrict it, then await it.
    pub fn list<K: Object + Resource<DynamicType = ()>>(&self) -> List<K> {
        self.of::<K>().list()
    }

    /// Creates an object.
    pub async fn create<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Result<K, ClientError> {
        self.of::<K>().create(object).await
    }

    /// Replaces an object; fails with a conflict if it has changed since it was read.
    pub async fn update<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Result<K, ClientError> {
        self.of::<K>().update(object).await
    }

    /// Patches an object.
    pub async fn patch<K: Object + Resource<DynamicType = ()>>(
        &self,
        key: &ObjectKey,
        patch: &Patch<impl Serialize + Send + Sync + std::fmt::Debug>,
    ) -> Result<K, ClientError> {
        self.of::<K>().patch(key, patch).await
    }

    /// Applies an object on the server: its fields are set, fields of other managers stay.
    pub fn apply<K: Object + Resource<DynamicType = ()>>(&self, object: K) -> Apply<K> {
        self.of::<K>().apply(object)
    }

    /// Deletes this object, and not a later one of the same name. An object that is already gone is a
    /// success.
    pub fn delete<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Delete<K> {
        self.of::<K>().delete(object)
    }

    /// Starts the deletion of many objects; restrict it, then await it.
    pub fn delete_all<K: Object + Resource<DynamicType = ()>>(&self) -> DeleteAll<K> {
        self.of::<K>().delete_all()
    }

    /// Creates an object if it is missing, and updates it if the mutate function changes it.
    pub fn create_or_update<'f, K, R>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Object + Resource<DynamicType = ()> + Default,
        R: MutationOutcome,
    {
        self.of::<K>().create_or_update(key, mutate)
    }

    /// As [`create_or_update`](Self::create_or_update), but sends a merge patch of the changes.
    pub fn create_or_patch<'f, K, R>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Object + Resource<DynamicType = ()> + Default,
        R: MutationOutcome,
    {
        self.of::<K>().create_or_patch(key, mutate)
    }
}
