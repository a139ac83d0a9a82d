//! Reads and writes of one kind.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use kube::{
    api::{GetParams, Patch, PatchParams, PostParams},
    client::Body,
    core::{Request, request::Error as BuildError},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{CachedClient, ClientError};
use kubewright_cache::{Caches, Gone, KindCache, Lazy, without_managed_fields};
use kubewright_client::{
    ApiError, Refusal,
    rest::{check, check_segment, decode, encode_segment, read_all},
};
use kubewright_core::{KeyError, Object, ObjectKey, object::describe};

/// How long a read waits for the cache to see our own writes before it goes to the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads and writes of one kind. A clone is a handle to the same.
#[derive(Debug)]
pub struct KindClient<K: Object> {
    pub(super) client: CachedClient,
    pub(crate) dyntype: K::DynamicType,
}

/// An answer that is a `Status` and an object alike, of which only some is of interest.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) metadata: Option<AnswerMeta>,
    #[serde(default)]
    pub(super) details: Option<AnswerDetails>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnswerMeta {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct AnswerDetails {
    pub(super) uid: Option<String>,
}

/// How the answer to an operation is read.
type Reader<K> = fn(operation: &str, answer: &[u8]) -> Result<K, ApiError>;

/// The object of an answer as a cache would hold it.
pub(super) fn decode_as_cached<K: DeserializeOwned>(operation: &str, answer: &[u8]) -> Result<K, ApiError> {
    decode(operation, &without_managed_fields(answer))
}

impl<K: Object> KindClient<K> {
    pub(super) fn new(client: CachedClient, dyntype: K::DynamicType) -> Self {
        Self { client, dyntype }
    }

    /// A handle whose reads go to the server.
    #[must_use]
    pub fn live(&self) -> Self {
        Self { client: self.client.live(), dyntype: self.dyntype.clone() }
    }

    /// The cache of this kind.
    pub fn cache(&self) -> KindCache<K> {
        self.client.caches.dynamic(&self.dyntype)
    }

    pub(super) fn kind(&self) -> String {
        K::kind(&self.dyntype).into_owned()
    }

    /// The object with this key; none if it does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ClientError> {
        match self.handle(key).await? {
            Some(handle) => Ok(Some(handle.load()?)),
            None => Ok(None),
        }
    }

    /// A handle to the object with this key, for those who need its metadata only; none if it does not exist.
    pub async fn handle(&self, key: &ObjectKey) -> Result<Option<Lazy<K>>, ClientError> {
        if self.client.settings.live {
            return self.served(key).await;
        }
        let cache = self.cache();
        self.cached(&cache, key).await
    }

    /// The same from a cache that is at hand: what workers do for every key.
    pub(crate) async fn cached(
        &self,
        cache: &KindCache<K>,
        key: &ObjectKey,
    ) -> Result<Option<Lazy<K>>, ClientError> {
        if !cache.covers(key.namespace()) {
            let namespace = key.namespace().map(str::to_owned);
            return Err(ClientError::NotCached { kind: self.kind(), namespace });
        }
        self.synced(cache).await?;
        if cache.caught_up(key, PATIENCE).await {
            return Ok(cache.get(key));
        }
        tracing::debug!(kind = %self.kind(), %key, "the cache is behind our own write: asking the server");
        self.served(key).await
    }

    pub(super) async fn synced(&self, cache: &KindCache<K>) -> Result<(), ClientError> {
        if cache.has_synced() {
            return Ok(());
        }
        let waited = Caches::SYNC_PATIENCE;
        tokio::time::timeout(waited, cache.synced())
            .await
            .map_err(|_| ClientError::NotSynced { kind: self.kind(), waited })
    }

    pub(super) async fn caught_up(&self, cache: &KindCache<K>) -> bool {
        cache.all_caught_up(PATIENCE).await
    }

    async fn served(&self, key: &ObjectKey) -> Result<Option<Lazy<K>>, ClientError> {
        let operation = self.operation("get", key, None);
        let answer = self
            .request(&operation, Method::GET, Some(key), key.namespace(), |request, name| {
                if K::metadata_api() {
                    request.get_metadata(name, &GetParams::default())
                } else {
                    request.get(name, &GetParams::default())
                }
            })
            .await;
        match answer {
            Ok(object) => Ok(Some(Lazy::new(object, &self.dyntype)?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an object. Without a name it needs `generateName`.
    pub async fn create(&self, object: &K) -> Result<K, ClientError> {
        self.create_reading(object, decode).await
    }

    /// The same for those who read the answer in their own way.
    pub(super) async fn create_reading(&self, object: &K, read: Reader<K>) -> Result<K, ClientError> {
        let operation = format!("create {}", describe(object, &self.dyntype));
        let body = self.encode(&operation, object, None)?;
        let namespace = object.meta().namespace.as_deref();
        let params = self.post_params();
        let answer = self
            .answer(&operation, Method::POST, None, namespace, |request, _| request.create(&params, body))
            .await?;
        Ok(self.written(read(&operation, &answer)?))
    }

    /// Replaces an object; refused as a conflict if it has changed since it was read.
    pub async fn update(&self, object: &K) -> Result<K, ClientError> {
        self.update_reading(object, decode).await
    }

    /// The same for those who read the answer in their own way.
    pub(super) async fn update_reading(&self, object: &K, read: Reader<K>) -> Result<K, ClientError> {
        let key = self.key(object)?;
        let operation = self.operation("update", &key, None);
        let body = self.encode(&operation, object, None)?;
        let params = self.post_params();
        let answer = self
            .answer(&operation, Method::PUT, Some(&key), key.namespace(), |request, name| {
                request.replace(name, &params, body)
            })
            .await?;
        Ok(self.written(read(&operation, &answer)?))
    }

    /// Changes a part of an object.
    pub async fn patch<P>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<K, ClientError>
    where
        P: Serialize + std::fmt::Debug,
    {
        self.patch_part(key, None, patch, false).await
    }

    pub(super) async fn patch_part<P>(
        &self,
        key: &ObjectKey,
        part: Option<&str>,
        patch: &Patch<P>,
        force: bool,
    ) -> Result<K, ClientError>
    where
        P: Serialize + std::fmt::Debug,
    {
        let verb = if matches!(patch, Patch::Apply(_)) { "apply" } else { "patch" };
        let operation = self.operation(verb, key, part);
        let params = self.patch_params(force);
        let patched = self
            .request(&operation, Method::PATCH, Some(key), key.namespace(), |request, name| match part {
                Some(part) => request.patch_subresource(part, name, &params, patch),
                None if K::metadata_api() => request.patch_metadata(name, &params, patch),
                None => request.patch(name, &params, patch),
            })
            .await?;
        Ok(self.written(patched))
    }

    pub(super) fn key(&self, object: &K) -> Result<ObjectKey, KeyError> {
        ObjectKey::of(object, &self.dyntype)
    }

    /// Reads of this object now wait until the cache has come so far.
    fn written(&self, object: K) -> K {
        if let Ok(key) = self.key(&object) {
            self.note(&key, object.meta().resource_version.as_deref(), None);
        }
        object
    }

    pub(super) fn note(&self, key: &ObjectKey, version: Option<&str>, gone: Option<&Gone>) {
        if self.client.settings.dry_run {
            return;
        }
        let version = version.and_then(|version| version.parse().ok());
        self.client.caches.note(&K::url_path(&self.dyntype, None), key, version, gone);
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

    pub(super) fn operation(&self, verb: &str, key: &ObjectKey, part: Option<&str>) -> String {
        match part {
            Some(part) => format!("{verb} {part} of {} {key}", self.kind()),
            None => format!("{verb} {} {key}", self.kind()),
        }
    }

    /// An object of this kind, or of another whose `apiVersion` and `kind` are given.
    pub(super) fn encode(
        &self,
        operation: &str,
        object: &impl Serialize,
        types: Option<&[String; 2]>,
    ) -> Result<Vec<u8>, ApiError> {
        let text = serde_json::to_vec(object).map_err(|_| unwritable(operation))?;
        let named = match types {
            Some([version, kind]) => begins_with_kind(&text, version, kind),
            None => begins_with_kind(&text, &K::api_version(&self.dyntype), &K::kind(&self.dyntype)),
        };
        if named {
            return Ok(text);
        }
        let mut value = serde_json::from_slice(&text).map_err(|_| unwritable(operation))?;
        self.name_kind(&mut value, types);
        serde_json::to_vec(&value).map_err(|_| unwritable(operation))
    }

    /// Objects that were read as items of a list do not say what they are, and the server wants to know.
    pub(super) fn name_kind(&self, value: &mut serde_json::Value, types: Option<&[String; 2]>) {
        let own = || [K::api_version(&self.dyntype).into_owned(), K::kind(&self.dyntype).into_owned()];
        if let Some(object) = value.as_object_mut() {
            let [version, kind] = types.cloned().unwrap_or_else(own);
            object.insert("apiVersion".into(), version.into());
            object.insert("kind".into(), kind.into());
        }
    }

    /// Builds a request, sends it and reads the answer.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        operation: &str,
        method: Method,
        key: Option<&ObjectKey>,
        namespace: Option<&str>,
        build: impl FnOnce(Request, &str) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> Result<T, ApiError> {
        decode(operation, &self.answer(operation, method, key, namespace, build).await?)
    }

    /// The same, for those who read the answer in their own way.
    pub(super) async fn answer(
        &self,
        operation: &str,
        method: Method,
        key: Option<&ObjectKey>,
        namespace: Option<&str>,
        build: impl FnOnce(Request, &str) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> Result<Bytes, ApiError> {
        let refuse = |reason: String| ApiError::Request { operation: operation.to_owned(), reason };
        let name = key.map_or("", ObjectKey::name);
        if key.is_some() {
            check_segment("name", name).map_err(refuse)?;
        }
        namespace.map_or(Ok(()), |namespace| check_segment("namespace", namespace)).map_err(refuse)?;
        let request = Request::new(K::url_path(&self.dyntype, namespace));
        let request = build(request, &encode_segment(name)).map_err(|error| match error {
            // serde's message may quote the object.
            BuildError::SerializeBody(_) => unwritable(operation),
            error => refuse(error.to_string()),
        })?;
        let sent = self.client.caches.transport().send(request.map(Body::from));
        let response = sent.await.map_err(|error| ApiError::transport(operation, error))?;
        let response = check(operation, method == Method::POST, response).await?;
        read_all(operation, response.into_body()).await
    }
}

/// Whether an object's text begins by saying that it is of this kind, as generated types write it.
fn begins_with_kind(text: &[u8], version: &str, kind: &str) -> bool {
    let mut rest = text;
    [r#"{"apiVersion":""#, version, r#"","kind":""#, kind, "\""].iter().all(|part| {
        let follows = rest.strip_prefix(part.as_bytes());
        rest = follows.unwrap_or_default();
        follows.is_some()
    })
}

fn unwritable(operation: &str) -> ApiError {
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
    fn a_text_names_its_kind_only_at_its_beginning_and_in_full() {
        let named = |text: &str| begins_with_kind(text.as_bytes(), "apps/v1", "Deployment");
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
