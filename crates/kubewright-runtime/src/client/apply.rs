//! Server-side apply.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use kube::api::Patch;
use serde_json::Value;

use super::{ClientError, KindClient};
use kubewright_client::{ApiError, owner::Reference};
use kubewright_core::Object;

/// An apply that is being put together; await it to have it done.
///
/// What the object says is what its field owner wants: fields that it said before and no longer says are given up, fields
/// of others stay. Everything that serialises is said, so leave out (`None`) what is somebody else's business.
#[must_use = "an apply does nothing until it is awaited"]
#[derive(Debug)]
pub struct Apply<K: Object> {
    kind: KindClient<K>,
    object: K,
    owner: Option<Reference>,
    part: Option<String>,
    force: bool,
}

impl<K: Object> KindClient<K> {
    /// Applies an object on the server.
    pub fn apply(&self, object: K) -> Apply<K> {
        Apply { kind: self.clone(), object, owner: None, part: None, force: false }
    }
}

impl<K: Object> Apply<K> {
    /// Takes fields over from other owners instead of refusing with a conflict. Controllers usually should: what they
    /// want is what their object says.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Makes this the owner that controls the object.
    pub fn controlled_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owned_through(Reference::to(owner, &O::DynamicType::default(), true))
    }

    /// Puts a reference to an owner on the object.
    pub fn owned_through(mut self, reference: Reference) -> Self {
        self.owner = Some(reference);
        self
    }

    pub(super) fn part(mut self, part: &str) -> Self {
        self.part = Some(part.to_owned());
        self
    }

    async fn send(mut self) -> Result<K, ClientError> {
        let kind = &self.kind;
        let key = kind.key(&self.object)?;
        let operation = kind.operation("apply", &key, self.part.as_deref());
        let refuse =
            |reason: &str| ApiError::Request { operation: operation.clone(), reason: reason.to_owned() };
        if kind.client.settings.field_owner.is_none() {
            return Err(refuse("apply needs a field owner: client.field_owner(\"my-operator\")").into());
        }
        if let Some(owner) = &self.owner {
            owner.put_on(&mut self.object, &kind.dyntype)?;
        }
        let mut value =
            serde_json::to_value(&self.object).map_err(|_| refuse("the object cannot be written as JSON"))?;
        kind.name_kind(&mut value, None);
        // The server refuses an apply that carries these, or a version that is not the newest.
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for bookkeeping in ["managedFields", "resourceVersion", "creationTimestamp", "generation", "uid"]
            {
                meta.remove(bookkeeping);
            }
        }
        kind.patch_part(&key, self.part.as_deref(), &Patch::Apply(value), self.force).await
    }
}

impl<K: Object> IntoFuture for Apply<K> {
    type Output = Result<K, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
