//! The cached client: reads from caches, writes to the server, and no read is older than one's own write.
//!
//! | you want | you call |
//! |---|---|
//! | one object, from the cache | [`get`](CachedClient::get) |
//! | many, by namespace, labels or an index | [`list`](CachedClient::list) |
//! | the same, from the server | `client.live().get(…)`, `client.live().list(…)` |
//! | to write | [`create`](CachedClient::create), [`update`](CachedClient::update), [`patch`](CachedClient::patch), [`apply`](CachedClient::apply), [`delete`](CachedClient::delete), [`delete_all`](CachedClient::delete_all) |
//! | an object to be as you say, whether it exists or not | [`create_or_update`](CachedClient::create_or_update), [`create_or_patch`](CachedClient::create_or_patch) |
//! | a part of an object | `client.of::<K>().status()`, `client.of::<K>().subresource(…)` |
//! | something done before an object goes | [`finalizer`](KindClient::finalizer) |
//! | a kind that is known only at run time | [`dynamic`](CachedClient::dynamic), then the same |
//!
//! Settings go with the handle: `client.dry_run()`, `client.field_owner("me")` and `client.live()` are handles to the same
//! client that do so.
//!
//! # Pitfalls
//! - What is read is shared with the cache; clone it before changing it.
//! - The first read of a kind that nobody watches yet starts a cache of all of it. For a few reads of a kind with many
//!   objects, use [`live`](CachedClient::live).

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
    create_or_update::{CreateOrUpdate, MutationOutcome, Operation, Written},
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

/// Reads from caches and writes to the server. A clone is a handle to the same.
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
    /// A client over these caches, writing to the cluster that they follow.
    pub fn new(caches: &Caches) -> Self {
        Self { caches: caches.clone(), settings: Settings::default() }
    }

    /// A handle whose reads go to the server.
    #[must_use]
    pub fn live(&self) -> Self {
        self.tuned(|settings| settings.live = true)
    }

    /// A handle whose writes are checked by the server and not stored.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.tuned(|settings| settings.dry_run = true)
    }

    /// A handle whose writes are noted, field by field, as this owner's. Apply needs one.
    #[must_use]
    pub fn field_owner(&self, name: &str) -> Self {
        self.tuned(|settings| settings.field_owner = Some(name.into()))
    }

    fn tuned(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut handle = self.clone();
        change(&mut handle.settings);
        handle
    }

    /// The caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The [`kube::Client`] underneath. What is written through it, this client's reads do not wait for.
    pub fn client(&self) -> &Client {
        self.caches.client()
    }

    /// The client for one kind: everything below, and its subresources and finalizers.
    pub fn of<K: Object + Resource<DynamicType = ()>>(&self) -> KindClient<K> {
        self.kind(())
    }

    /// The client for a kind that is known only at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> KindClient<DynamicObject> {
        self.kind(resource.clone())
    }

    /// The client for any kind, from what its type needs to know at run time.
    pub fn kind<K: Object>(&self, dyntype: K::DynamicType) -> KindClient<K> {
        KindClient::new(self.clone(), dyntype)
    }

    /// The object with this key; none if it does not exist.
    pub async fn get<K: Object + Resource<DynamicType = ()>>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<Arc<K>>, ClientError> {
        self.of::<K>().get(key).await
    }

    /// Many objects: narrow it down, then await it.
    pub fn list<K: Object + Resource<DynamicType = ()>>(&self) -> List<K> {
        self.of::<K>().list()
    }

    /// Creates an object.
    pub async fn create<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Result<K, ClientError> {
        self.of::<K>().create(object).await
    }

    /// Replaces an object; refused as a conflict if it has changed since it was read.
    pub async fn update<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Result<K, ClientError> {
        self.of::<K>().update(object).await
    }

    /// Changes a part of an object.
    pub async fn patch<K: Object + Resource<DynamicType = ()>>(
        &self,
        key: &ObjectKey,
        patch: &Patch<impl Serialize + Send + Sync + std::fmt::Debug>,
    ) -> Result<K, ClientError> {
        self.of::<K>().patch(key, patch).await
    }

    /// Applies an object on the server: its fields become as they are here, others stay as they are.
    pub fn apply<K: Object + Resource<DynamicType = ()>>(&self, object: K) -> Apply<K> {
        self.of::<K>().apply(object)
    }

    /// Deletes this object, and not a later one of the same name. That it is gone already is a success.
    pub fn delete<K: Object + Resource<DynamicType = ()>>(&self, object: &K) -> Delete<K> {
        self.of::<K>().delete(object)
    }

    /// Deletes many objects: narrow it down, then await it.
    pub fn delete_all<K: Object + Resource<DynamicType = ()>>(&self) -> DeleteAll<K> {
        self.of::<K>().delete_all()
    }

    /// Brings an object into a wanted state: creates it if it is missing, and updates it if the function changes it.
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

    /// The same with a patch of what the function changes, so that others may change other fields meanwhile.
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
