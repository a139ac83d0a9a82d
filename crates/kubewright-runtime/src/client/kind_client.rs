//! Cached client for one kind.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use kube::{
    api::{GetParams, Patch, PatchParams, PostParams},
    client::Body,
    core::{Request, request::Error as BuildError},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{CachedClient, ClientError};
use kubewright_cache::{Caches, KindCache, Lazy, RecordedDeletion, without_managed_fields};
use kubewright_client::{
    ApiError, ApiStatus, Transport,
    rest::{check, check_segment, decode, encode_segment, read_all},
};
use kubewright_core::{KeyError, Object, ObjectKey, object::describe};

/// How long a read waits for the cache to observe our own writes before it goes to the server.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// Client for reads and writes of one kind. Cheap to clone.
#[derive(Debug)]
pub struct KindClient<K: Object> {
    pub(super) client: CachedClient,
    pub(crate) dyntype: K::DynamicType,
}

/// The fields of interest of a response that is a `Status` or an object.
#[derive(Debug, serde::Deserialize)]
pub(super) struct PartialResponse {
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) metadata: Option<PartialMeta>,
    #[serde(default)]
    pub(super) details: Option<PartialDetails>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PartialMeta {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct PartialDetails {
    pub(super) uid: Option<String>,
}

/// Decoder of a response.
type Decoder<K> = fn(operation: &str, response: &[u8]) -> Result<K, ApiError>;

/// Decodes an object of a response as a cache would hold it.
pub(super) fn decode_as_cached<K: DeserializeOwned>(operation: &str, response: &[u8]) -> Result<K, ApiError> {
    decode(operation, &without_managed_fields(response))
}

impl<K: Object> KindClient<K> {
    pub(super) fn new(client: CachedClient, dyntype: K::DynamicType) -> Self {
        Self { client, dyntype }
    }

    /// Returns a client whose reads go to the server.
    #[must_use]
    pub fn live(&self) -> Self {
        Self { client: self.client.live(), dyntype: self.dyntype.clone() }
    }

    /// Returns the cache of this kind.
    pub fn cache(&self) -> KindCache<K> {
        self.client.caches.dynamic(&self.dyntype)
    }

    pub(super) fn kind(&self) -> String {
        K::kind(&self.dyntype).into_owned()
    }

    /// Returns the object with this key; `None` if it does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ClientError> {
        match self.handle(key).await? {
            Some(handle) => Ok(Some(handle.load()?)),
            None => Ok(None),
        }
    }

    /// Returns a lazily decoded object, for callers that need its metadata only; `None` if it does not exist.
    pub async fn handle(&self, key: &ObjectKey) -> Result<Option<Lazy<K>>, ClientError> {
        if self.client.settings.live {
            return self.get_live(key).await;
        }
        let cache = self.cache();
        self.get_cached(&cache, key).await
    }

    /// As [`handle`](Self::handle), from the given cache: workers hold theirs instead of looking it up for
    /// every key.
    pub(crate) async fn get_cached(
        &self,
        cache: &KindCache<K>,
        key: &ObjectKey,
    ) -> Result<Option<Lazy<K>>, ClientError> {
        if !cache.covers(key.namespace()) {
            let namespace = key.namespace().map(str::to_owned);
            return Err(ClientError::NotCached { kind: self.kind(), namespace });
        }
        self.wait_synced(cache).await?;
        if cache.caught_up(key, CATCH_UP_TIMEOUT).await {
            return Ok(cache.get(key));
        }
        tracing::debug!(kind = %self.kind(), %key, "the cache has not observed our own write: reading from the server");
        self.get_live(key).await
    }

    pub(super) async fn wait_synced(&self, cache: &KindCache<K>) -> Result<(), ClientError> {
        if cache.has_synced() {
            return Ok(());
        }
        let waited = Caches::SYNC_TIMEOUT;
        tokio::time::timeout(waited, cache.synced())
            .await
            .map_err(|_| ClientError::NotSynced { kind: self.kind(), waited })
    }

    pub(super) async fn wait_caught_up(&self, cache: &KindCache<K>) -> bool {
        cache.all_caught_up(CATCH_UP_TIMEOUT).await
    }

    async fn get_live(&self, key: &ObjectKey) -> Result<Option<Lazy<K>>, ClientError> {
        let operation = self.operation("get", key, None);
        let response = self
            .request(&operation, Method::GET, Some(key), key.namespace(), |request, name| {
                if K::metadata_api() {
                    request.get_metadata(name, &GetParams::default())
                } else {
                    request.get(name, &GetParams::default())
                }
            })
            .await;
        match response {
            Ok(object) => Ok(Some(Lazy::new(object, &self.dyntype)?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an object. Without a name it needs `generateName`.
    pub async fn create(&self, object: &K) -> Result<K, ClientError> {
        self.create_with(object, decode).await
    }

    /// As [`create`](Self::create), with the decoder of the response.
    pub(super) async fn create_with(&self, object: &K, decoder: Decoder<K>) -> Result<K, ClientError> {
        let operation = format!("create {}", describe(object, &self.dyntype));
        let body = self.encode(&operation, object, None)?;
        let namespace = object.meta().namespace.as_deref();
        let params = self.post_params();
        let response = self
            .send(&operation, &Method::POST, None, namespace, |request, _| request.create(&params, body))
            .await?;
        Ok(self.recorded(decoder(&operation, &response)?))
    }

    /// Replaces an object; fails with a conflict if it has changed since it was read.
    pub async fn update(&self, object: &K) -> Result<K, ClientError> {
        self.update_with(object, decode).await
    }

    /// As [`update`](Self::update), with the decoder of the response.
    pub(super) async fn update_with(&self, object: &K, decoder: Decoder<K>) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let operation = self.operation("update", &key, None);
        let body = self.encode(&operation, object, None)?;
        let params = self.post_params();
        let response = self
            .send(&operation, &Method::PUT, Some(&key), key.namespace(), |request, name| {
                request.replace(name, &params, body)
            })
            .await?;
        Ok(self.recorded(decoder(&operation, &response)?))
    }

    /// Patches an object.
    pub async fn patch<P>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<K, ClientError>
    where
        P: Serialize + std::fmt::Debug,
    {
        self.patch_subresource(key, None, patch, false).await
    }

    pub(super) async fn patch_subresource<P>(
        &self,
        key: &ObjectKey,
        subresource: Option<&str>,
        patch: &Patch<P>,
        force: bool,
    ) -> Result<K, ClientError>
    where
        P: Serialize + std::fmt::Debug,
    {
        let verb = if matches!(patch, Patch::Apply(_)) { "apply" } else { "patch" };
        let operation = self.operation(verb, key, subresource);
        let params = self.patch_params(force);
        let patched = self
            .request(&operation, Method::PATCH, Some(key), key.namespace(), |request, name| match subresource
            {
                Some(subresource) => request.patch_subresource(subresource, name, &params, patch),
                None if K::metadata_api() => request.patch_metadata(name, &params, patch),
                None => request.patch(name, &params, patch),
            })
            .await?;
        Ok(self.recorded(patched))
    }

    pub(super) fn key(&self, object: &K) -> Result<ObjectKey, KeyError> {
        ObjectKey::of(object, &self.dyntype)
    }

    /// Records a write: later reads of the object wait until the cache has observed it.
    fn recorded(&self, object: K) -> K {
        if let Ok(key) = self.key(&object) {
            self.record_write(&key, object.meta().resource_version.as_deref(), None);
        }
        object
    }

    pub(super) fn record_write(
        &self,
        key: &ObjectKey,
        version: Option<&str>,
        deletion: Option<&RecordedDeletion>,
    ) {
        if self.client.settings.dry_run {
            return;
        }
        let version = version.and_then(|version| version.parse().ok());
        self.client.caches.record_write(&K::url_path(&self.dyntype, None), key, version, deletion);
    }

    pub(super) fn patch_params(&self, force: bool) -> PatchParams {
        PatchParams {
            dry_run: self.client.settings.dry_run,
            force,
            field_manager: self.client.settings.field_owner.as_deref().map(str::to_owned),
            field_validation: None,
        }
    }

    pub(super) fn post_params(&self) -> PostParams {
        PostParams {
            dry_run: self.client.settings.dry_run,
            field_manager: self.client.settings.field_owner.as_deref().map(str::to_owned),
        }
    }

    pub(super) fn operation(&self, verb: &str, key: &ObjectKey, subresource: Option<&str>) -> String {
        match subresource {
            Some(subresource) => format!("{verb} {subresource} of {} {key}", self.kind()),
            None => format!("{verb} {} {key}", self.kind()),
        }
    }

    /// Encodes an object of this kind, or of another whose `apiVersion` and `kind` are given.
    pub(super) fn encode(
        &self,
        operation: &str,
        object: &impl Serialize,
        types: Option<&[String; 2]>,
    ) -> Result<Vec<u8>, ApiError> {
        let text = serde_json::to_vec(object).map_err(|_| encode_error(operation))?;
        let named = match types {
            Some([version, kind]) => starts_with_type_meta(&text, version, kind),
            None => starts_with_type_meta(&text, &K::api_version(&self.dyntype), &K::kind(&self.dyntype)),
        };
        if named {
            return Ok(text);
        }
        let mut value = serde_json::from_slice(&text).map_err(|_| encode_error(operation))?;
        self.set_type_meta(&mut value, types);
        serde_json::to_vec(&value).map_err(|_| encode_error(operation))
    }

    /// Sets `apiVersion` and `kind`, which the server requires and which objects read as items of a list
    /// lack.
    pub(super) fn set_type_meta(&self, value: &mut serde_json::Value, types: Option<&[String; 2]>) {
        let own = || [K::api_version(&self.dyntype).into_owned(), K::kind(&self.dyntype).into_owned()];
        if let Some(object) = value.as_object_mut() {
            let [version, kind] = types.cloned().unwrap_or_else(own);
            object.insert("apiVersion".into(), version.into());
            object.insert("kind".into(), kind.into());
        }
    }

    /// Builds a request, sends it and decodes the response.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        operation: &str,
        method: Method,
        key: Option<&ObjectKey>,
        namespace: Option<&str>,
        build: impl FnOnce(Request, &str) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> Result<T, ApiError> {
        decode(operation, &self.send(operation, &method, key, namespace, build).await?)
    }

    /// As [`request`](Self::request), but returns the body.
    pub(super) fn send<'a>(
        &'a self,
        operation: &'a str,
        method: &Method,
        key: Option<&ObjectKey>,
        namespace: Option<&str>,
        build: impl FnOnce(Request, &str) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> BoxFuture<'a, Result<Bytes, ApiError>> {
        let request = checked(operation, key, namespace)
            .map(|name| build(Request::new(K::url_path(&self.dyntype, namespace)), &name));
        exchange(self.client.caches.transport(), operation, *method == Method::POST, request)
    }
}

/// Returns the name as a path segment; an error if the name or the namespace cannot be part of a path.
fn checked(operation: &str, key: Option<&ObjectKey>, namespace: Option<&str>) -> Result<String, ApiError> {
    let request_error = |reason: String| ApiError::Request { operation: operation.to_owned(), reason };
    let name = key.map_or("", ObjectKey::name);
    if key.is_some() {
        check_segment("name", name).map_err(request_error)?;
    }
    namespace.map_or(Ok(()), |namespace| check_segment("namespace", namespace)).map_err(request_error)?;
    Ok(encode_segment(name))
}

/// Sends a request and returns the body of its answer. Boxed, so that it is compiled once and not with every caller.
fn exchange<'a>(
    transport: &'a Transport,
    operation: &'a str,
    creates: bool,
    request: Result<Result<http::Request<Vec<u8>>, BuildError>, ApiError>,
) -> BoxFuture<'a, Result<Bytes, ApiError>> {
    Box::pin(async move {
        let request = request?.map_err(|error| match error {
            // serde's message may quote the object.
            BuildError::SerializeBody(_) => encode_error(operation),
            error => ApiError::Request { operation: operation.to_owned(), reason: error.to_string() },
        })?;
        let sent = transport.send(request.map(Body::from));
        let response = sent.await.map_err(|error| ApiError::transport(operation, error))?;
        let response = check(operation, creates, response).await?;
        read_all(operation, response.into_body()).await
    })
}

/// Returns whether a JSON text starts with this `apiVersion` and `kind`, as generated types write them.
fn starts_with_type_meta(text: &[u8], version: &str, kind: &str) -> bool {
    let mut rest = text;
    [r#"{"apiVersion":""#, version, r#"","kind":""#, kind, "\""].iter().all(|part| {
        let follows = rest.strip_prefix(part.as_bytes());
        rest = follows.unwrap_or_default();
        follows.is_some()
    })
}

fn encode_error(operation: &str) -> ApiError {
    ApiError::Request {
        operation: operation.to_owned(),
        reason: "the object cannot be written as JSON".to_owned(),
    }
}

impl<K: Object> Clone for KindClient<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), dyntype: self.dyntype.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_meta_is_recognised_only_at_the_start_and_in_full() {
        let named = |text: &str| starts_with_type_meta(text.as_bytes(), "apps/v1", "Deployment");
        assert!(named(r#"{"apiVersion":"apps/v1","kind":"Deployment"}"#));
        assert!(named(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{}}"#));
        for text in [
            "",
            "{}",
            r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#,
            r#"{"apiVersion":"apps/v1beta1","kind":"Deployment"}"#,
            r#"{"apiVersion":"apps/v1","kind":"DeploymentList"}"#,
            r#"{"metadata":{},"apiVersion":"apps/v1","kind":"Deployment"}"#,
        ] {
            assert!(!named(text), "{text}");
        }
    }
}
