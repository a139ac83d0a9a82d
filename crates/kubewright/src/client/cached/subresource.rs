//! The parts of an object that are read and written by themselves.

use kube::api::Patch;
use serde::Serialize;

use super::{Apply, ClientError, KindClient};
use crate::{Object, ObjectKey};

/// One subresource of a kind: `status`, `scale`, `ephemeralcontainers`, …
///
/// Reads go to the server: a cache holds whole objects, and the status of one is in it.
#[derive(Debug, Clone)]
pub struct Subresource<K: Object> {
    kind: KindClient<K>,
    name: String,
}

impl<K: Object> KindClient<K> {
    /// A part of each object that is read and written by itself.
    pub fn subresource(&self, name: &str) -> Subresource<K> {
        Subresource { kind: self.clone(), name: name.to_owned() }
    }

    /// The status of objects.
    pub fn status(&self) -> Subresource<K> {
        self.subresource("status")
    }
}

impl<K: Object> Subresource<K> {
    /// The part, from the server; none if the object does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<K>, ClientError> {
        self.kind.read(key, Some(&self.name)).await
    }

    /// Replaces the part by that of this object; refused as a conflict if the object has changed since it was read.
    pub async fn update(&self, object: &K) -> Result<K, ClientError> {
        self.kind.replace(object, Some(&self.name)).await
    }

    /// Changes the part.
    pub async fn patch<P>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<K, ClientError>
    where
        P: Serialize + std::fmt::Debug,
    {
        self.kind.patch_part(key, Some(&self.name), patch, false).await
    }

    /// Applies the part on the server.
    pub fn apply(&self, object: K) -> Apply<K> {
        self.kind.apply(object).part(&self.name)
    }
}
