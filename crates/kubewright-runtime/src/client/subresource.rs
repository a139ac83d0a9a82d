//! Subresources.

use std::{fmt, marker::PhantomData};

use http::Method;
use kube::{
    Resource,
    api::{Patch, PatchParams},
    core::request::Error as BuildError,
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{Apply, ClientError, KindClient, kind_client::PartialMeta};
use kubewright_client::{ApiError, ApiStatus, rest::decode};
use kubewright_core::{Object, ObjectKey};

/// Client for one subresource of a kind: `status`, `scale`, `eviction`, …
///
/// Some subresources are the object itself (`status`), others have a kind of their own, set by
/// [`of`](Self::of):
///
/// ```no_run
/// # async fn example(client: kubewright::client::CachedClient) -> kubewright::Result<()> {
/// use kubewright::k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
/// use kubewright::{ObjectKey, kube::api::Patch};
///
/// let scale = client.of::<Deployment>().subresource("scale").of::<Scale>();
/// let three = Patch::Merge(serde_json::json!({"spec": {"replicas": 3}}));
/// scale.patch(&ObjectKey::namespaced("shop", "web"), &three).await?;
/// # Ok(()) }
/// ```
///
/// Reads go to the server: a cache holds whole objects, status included.
pub struct Subresource<K: Object, T = K> {
    kind: KindClient<K>,
    name: String,
    /// `apiVersion` and `kind` of the subresource, unless they are the object's.
    types: Option<[String; 2]>,
    response: PhantomData<fn() -> T>,
}

/// An object of which only the metadata is decoded.
#[derive(serde::Deserialize)]
struct PartialObject {
    metadata: PartialMeta,
}

impl<K: Object> KindClient<K> {
    /// Returns the client for a subresource.
    pub fn subresource(&self, name: &str) -> Subresource<K> {
        Subresource { kind: self.clone(), name: name.to_owned(), types: None, response: PhantomData }
    }

    /// Returns the client for the status.
    pub fn status(&self) -> Subresource<K> {
        self.subresource("status")
    }
}

impl<K: Object> Subresource<K> {
    /// Sets the kind of the subresource, if it is not the object's.
    pub fn of<T: Resource<DynamicType = ()>>(self) -> Subresource<K, T> {
        let types = [T::api_version(&()).into_owned(), T::kind(&()).into_owned()];
        Subresource { kind: self.kind, name: self.name, types: Some(types), response: PhantomData }
    }

    /// Discards responses instead of decoding them.
    pub(super) fn discard_responses(self) -> Subresource<K, IgnoredAny> {
        Subresource { kind: self.kind, name: self.name, types: self.types, response: PhantomData }
    }

    /// Applies the subresource on the server.
    pub fn apply(&self, object: K) -> Apply<K> {
        self.kind.apply(object).subresource(&self.name)
    }
}

impl<K: Object, T: DeserializeOwned> Subresource<K, T> {
    /// Reads the subresource from the server; `None` if the object does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<T>, ClientError> {
        let request =
            self.send("get", Method::GET, key, |request, name| request.get_subresource(&self.name, name));
        match request.await {
            Ok(subresource) => Ok(Some(subresource)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a subresource that is not stored: an `eviction`, a `binding`, a `token`.
    pub async fn create(&self, key: &ObjectKey, subresource: &impl Serialize) -> Result<T, ClientError> {
        let body = self.encode("create", key, subresource)?;
        let params = self.kind.post_params();
        self.send("create", Method::POST, key, |request, name| {
            request.create_subresource(&self.name, name, &params, body)
        })
        .await
    }

    /// Replaces the subresource; fails with a conflict if the object has changed since it was read.
    pub async fn update(&self, object: &T) -> Result<T, ClientError>
    where
        T: Resource + Serialize,
    {
        let meta = object.meta();
        let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        let body = self.encode("update", &key, object)?;
        let params = self.kind.post_params();
        let updated = self.send("update", Method::PUT, &key, |request, name| {
            request.replace_subresource(&self.name, name, &params, body)
        });
        updated.await
    }

    /// Patches the subresource.
    pub async fn patch<P>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<T, ClientError>
    where
        P: Serialize + fmt::Debug,
    {
        let params: PatchParams = self.kind.patch_params(false);
        let patched = self.send("patch", Method::PATCH, key, |request, name| {
            request.patch_subresource(&self.name, name, &params, patch)
        });
        patched.await
    }

    fn encode(&self, verb: &str, key: &ObjectKey, subresource: &impl Serialize) -> Result<Vec<u8>, ApiError> {
        let operation = self.kind.operation(verb, key, Some(&self.name));
        self.kind.encode(&operation, subresource, self.types.as_ref())
    }

    async fn send(
        &self,
        verb: &str,
        method: Method,
        key: &ObjectKey,
        build: impl FnOnce(kube::core::Request, &str) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> Result<T, ClientError> {
        let operation = self.kind.operation(verb, key, Some(&self.name));
        let writes = method != Method::GET;
        let response = self.kind.send(&operation, &method, Some(key), key.namespace(), build).await?;
        // The resourceVersion is always the one of the object.
        let version = || serde_json::from_slice::<PartialObject>(&response).ok()?.metadata.resource_version;
        if let (true, Some(version)) = (writes, version()) {
            self.kind.record_write(key, Some(&version), None);
        }
        Ok(decode(&operation, &response)?)
    }
}

impl<K: Object, T> Clone for Subresource<K, T> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            name: self.name.clone(),
            types: self.types.clone(),
            response: PhantomData,
        }
    }
}

impl<K: Object, T> fmt::Debug for Subresource<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subresource({} of {})", self.name, self.kind.kind())
    }
}
