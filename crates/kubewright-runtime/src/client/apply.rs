//! Server-side apply.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use kube::api::Patch;
use serde_json::Value;

use super::{ClientError, KindClient};
use kubewright_client::{ApiError, owner::OwnerRef};
use kubewright_core::Object;

/// Server-side apply of an object; sent when awaited.
///
/// The object holds the fields that its field manager wants: fields applied before and left out now are given
/// up, fields of other managers stay. Every serialised field is applied, so leave fields of other managers
/// `None`.
#[must_use = "an apply does nothing until it is awaited"]
#[derive(Debug)]
pub struct Apply<K: Object> {
    kind: KindClient<K>,
    object: K,
    owner: Option<OwnerRef>,
    subresource: Option<String>,
    force: bool,
}

impl<K: Object> KindClient<K> {
    /// Applies an object on the server.
    pub fn apply(&self, object: K) -> Apply<K> {
        Apply { kind: self.clone(), object, owner: None, subresource: None, force: false }
    }
}

impl<K: Object> Apply<K> {
    /// Takes fields over from other managers instead of failing with a conflict. Recommended for controllers.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Sets `owner` as the controller of the object.
    pub fn controlled_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owner_reference(OwnerRef::new(owner, &O::DynamicType::default(), true))
    }

    /// Sets an owner reference on the object.
    pub fn owner_reference(mut self, reference: OwnerRef) -> Self {
        self.owner = Some(reference);
        self
    }

    pub(super) fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    async fn send(mut self) -> Result<K, ClientError> {
        let kind = &self.kind;
        let key = kind.key(&self.object)?;
        let operation = kind.operation("apply", &key, self.subresource.as_deref());
        let request_error =
            |reason: &str| ApiError::Request { operation: operation.clone(), reason: reason.to_owned() };
        if kind.client.settings.field_owner.is_none() {
            return Err(
                request_error("apply needs a field owner: client.field_owner(\"my-operator\")").into()
            );
        }
        if let Some(owner) = &self.owner {
            owner.set_on(&mut self.object, &kind.dyntype)?;
        }
        let mut value = serde_json::to_vec(&self.object)
            .and_then(|text| serde_json::from_slice(&text))
            .map_err(|_| request_error("the object cannot be written as JSON"))?;
        kind.set_type_meta(&mut value, None);
        // The server rejects an apply that carries these, or a version that is not the newest.
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for server_field in ["managedFields", "resourceVersion", "creationTimestamp", "generation", "uid"]
            {
                meta.remove(server_field);
            }
        }
        kind.patch_subresource(&key, self.subresource.as_deref(), &Patch::Apply(value), self.force).await
    }
}

impl<K: Object> IntoFuture for Apply<K> {
    type Output = Result<K, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
