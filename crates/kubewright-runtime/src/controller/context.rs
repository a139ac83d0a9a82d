//! What a reconciler gets.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        Apply, CachedClient, ClientError, CreateOrUpdate, Delete, Finalizer, KindClient, List,
        MutationOutcome, StatusUpdate,
    },
    controller::{EventSink, Request},
    events::EventType,
};
use kubewright_cache::{DecodeError, KindCache, Lazy};
use kubewright_core::{Clock, Object, ObjectKey};

/// One reconcile: the key, the object, and everything to act with. A clone is the same.
///
/// Reads are from the cache, and never older than what was written through this context, or through any other of the
/// same manager.
#[derive(Clone)]
pub struct Context<K: Object> {
    pub(super) shared: Arc<Shared<K>>,
    pub(super) request: Request,
    pub(super) object: Option<Lazy<K>>,
    pub(super) id: u64,
}

/// What all reconciles of a controller have in common.
pub(super) struct Shared<K: Object> {
    pub(super) client: CachedClient,
    pub(super) kind: KindClient<K>,
    pub(super) cache: KindCache<K>,
    pub(super) recorder: Arc<dyn EventSink>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
}

impl<K: Object> Context<K> {
    /// Which object this is about.
    pub fn key(&self) -> &ObjectKey {
        self.request.key()
    }

    /// Who asked for this reconcile first, and why.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The number of this reconcile, as its span has it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The object, as it was when this reconcile began; none if it is gone.
    ///
    /// An object that does not fit its type is an error, not an absence: nothing may be cleaned up because of it.
    pub fn object(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.object.as_ref().map(Lazy::load).transpose()
    }

    /// The same without decoding it: its key, version, labels and owners are at hand.
    pub fn handle(&self) -> Option<&Lazy<K>> {
        self.object.as_ref()
    }

    /// The client: everything that can be read and written.
    pub fn client(&self) -> &CachedClient {
        &self.shared.client
    }

    /// The client for the kind of this controller.
    pub fn own_kind(&self) -> &KindClient<K> {
        &self.shared.kind
    }

    /// Another object, from the cache.
    pub async fn get<T: Object + Resource<DynamicType = ()>>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<Arc<T>>, ClientError> {
        self.shared.client.get(key).await
    }

    /// Other objects, from the cache: narrow it down, then await it.
    pub fn list<T: Object + Resource<DynamicType = ()>>(&self) -> List<T> {
        self.shared.client.list()
    }

    /// Brings an object of this name, in the namespace of this one, into a wanted state.
    pub fn create_or_update<'f, T, R>(
        &self,
        name: &str,
        mutate: impl FnMut(&mut T) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, T>
    where
        T: Object + Resource<DynamicType = ()> + Default,
        R: MutationOutcome,
    {
        self.shared.client.create_or_update(&self.neighbour(name), mutate)
    }

    /// The same with a patch of what the function changes.
    pub fn create_or_patch<'f, T, R>(
        &self,
        name: &str,
        mutate: impl FnMut(&mut T) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, T>
    where
        T: Object + Resource<DynamicType = ()> + Default,
        R: MutationOutcome,
    {
        self.shared.client.create_or_patch(&self.neighbour(name), mutate)
    }

    /// Applies an object on the server.
    pub fn apply<T: Object + Resource<DynamicType = ()>>(&self, object: T) -> Apply<T> {
        self.shared.client.apply(object)
    }

    /// Deletes this object, and not a later one of the same name.
    pub fn delete<T: Object + Resource<DynamicType = ()>>(&self, object: &T) -> Delete<T> {
        self.shared.client.delete(object)
    }

    /// The key of an object of this name, in the namespace of this one.
    pub fn neighbour(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.key().namespace(), name)
    }

    /// Changes the status of the object; nothing is written when the function changes nothing, or when the object is
    /// gone. `S` is the type of the status.
    pub async fn status<'f, S>(&self, change: impl FnMut(&mut S) + Send + 'f) -> Result<(), ClientError>
    where
        S: Serialize + DeserializeOwned + Default,
    {
        match self.object()? {
            Some(object) => {
                let update: StatusUpdate<'_, K> = self.shared.kind.set_status(&object, change);
                update.await.map(drop)
            }
            None => Ok(()),
        }
    }

    /// Puts a finalizer on the object, or says that it is time to clean up.
    pub async fn finalizer(&self, name: &str) -> Result<Finalizer<K>, ClientError> {
        match self.object()? {
            Some(object) => self.shared.kind.finalizer_of(object, name).await,
            None => Ok(Finalizer::Gone),
        }
    }

    /// Records a normal event about the object.
    pub fn event(&self, reason: &str, message: impl AsRef<str>) {
        self.shared.recorder.record(&self.reference(), EventType::Normal, reason, message.as_ref());
    }

    /// Records a warning about the object.
    pub fn warning(&self, reason: &str, message: impl AsRef<str>) {
        self.shared.recorder.record(&self.reference(), EventType::Warning, reason, message.as_ref());
    }

    fn reference(&self) -> ObjectReference {
        let dyntype = self.shared.cache.dyntype();
        let (uid, version) = match &self.object {
            Some(object) => (Some(object.uid().to_owned()), Some(object.resource_version().to_owned())),
            None => (None, None),
        };
        ObjectReference {
            api_version: Some(K::api_version(dyntype).into_owned()),
            kind: Some(K::kind(dyntype).into_owned()),
            name: Some(self.key().name().to_owned()),
            namespace: self.key().namespace().map(str::to_owned),
            uid,
            resource_version: version,
            ..ObjectReference::default()
        }
    }

    /// What time it is.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Whether the controller is asked to stop. Long reconciles should look, and finish what they must not leave undone.
    pub fn is_cancelled(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Waits until the controller is asked to stop.
    pub async fn cancelled(&self) {
        self.shared.stop.cancelled().await;
    }
}

impl<K: Object> std::fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("request", &self.request)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
