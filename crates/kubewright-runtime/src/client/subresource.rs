//! The parts of an object that are read and written by themselves.

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

use super::{Apply, ClientError, KindClient};
use kubewright_client::{ApiError, Refusal, rest::decode};
use kubewright_core::{Object, ObjectKey};

/// One subresource of a kind: `status`, `scale`, `eviction`, …
///
/// Some are a part of the object itself (`status`), others are of a kind of their own, which [`of`](Self::of) names:
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
/// Reads go to the server: a cache holds whole objects, and the status of one is in it.
pub struct Subresource<K: Object, T = K> {
    kind: KindClient<K>,
    name: String,
    /// What its answers are, unless they are the object itself.
    types: Option<[String; 2]>,
    answers: PhantomData<fn() -> T>,
}

/// What every answer is read for.
#[derive(serde::Deserialize)]
struct Answer {
    metadata: AnswerMeta,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerMeta {
    resource_version: Option<String>,
}

impl<K: Object> KindClient<K> {
    /// A part of each object that is read and written by itself.
    pub fn subresource(&self, name: &str) -> Subresource<K> {
        Subresource { kind: self.clone(), name: name.to_owned(), types: None, answers: PhantomData }
    }

    /// The status of objects.
    pub fn status(&self) -> Subresource<K> {
        self.subresource("status")
    }
}

impl<K: Object> Subresource<K> {
    /// The same part, which is of this kind and not of the object's.
    pub fn of<T: Resource<DynamicType = ()>>(self) -> Subresource<K, T> {
        let types = [T::api_version(&()).into_owned(), T::kind(&()).into_owned()];
        Subresource { kind: self.kind, name: self.name, types: Some(types), answers: PhantomData }
    }

    /// The same part for those who do not look at the answers.
    pub(super) fn unread(self) -> Subresource<K, IgnoredAny> {
        Subresource { kind: self.kind, name: self.name, types: self.types, answers: PhantomData }
    }

    /// Applies the part on the server.
    pub fn apply(&self, object: K) -> Apply<K> {
        self.kind.apply(object).part(&self.name)
    }
}

impl<K: Object, T: DeserializeOwned> Subresource<K, T> {
    /// The part, from the server; none if the object does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<T>, ClientError> {
        let request =
            self.send("get", Method::GET, key, |request, name| request.get_subresource(&self.name, name));
        match request.await {
            Ok(part) => Ok(Some(part)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates what is not kept: an `eviction`, a `binding`, a `token`.
    pub async fn create(&self, key: &ObjectKey, part: &impl Serialize) -> Result<T, ClientError> {
        let body = self.encode("create", key, part)?;
        let params = self.kind.post_params();
        self.send("create", Method::POST, key, |request, name| {
            request.create_subresource(&self.name, name, &params, body)
        })
        .await
    }

    /// Replaces the part by that of this object; refused as a conflict if the object has changed since it was read.
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

    /// Changes the part.
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

    fn encode(&self, verb: &str, key: &ObjectKey, part: &impl Serialize) -> Result<Vec<u8>, ApiError> {
        let operation = self.kind.operation(verb, key, Some(&self.name));
        self.kind.encode(&operation, part, self.types.as_ref())
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
        let answer = self.kind.answer(&operation, method, Some(key), key.namespace(), build).await?;
        // The version is that of the object, whatever the part is.
        let version = || serde_json::from_slice::<Answer>(&answer).ok()?.metadata.resource_version;
        if let (true, Some(version)) = (writes, version()) {
            self.kind.note(key, Some(&version), None);
        }
        Ok(decode(&operation, &answer)?)
    }
}

impl<K: Object, T> Clone for Subresource<K, T> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            name: self.name.clone(),
            types: self.types.clone(),
            answers: PhantomData,
        }
    }
}

impl<K: Object, T> fmt::Debug for Subresource<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subresource({} of {})", self.name, self.kind.kind())
    }
}
