//! Create-or-update and create-or-patch.

use std::{future::IntoFuture, ops::Deref, sync::Arc};

use futures::future::BoxFuture;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{ClientError, ControlledBy, KindClient, kind_client::decode_as_cached, merge::merge_patch};
use kubewright_client::{ApiError, ApiStatus, OwnerError, owner::OwnerRef};
use kubewright_core::{Object, ObjectKey};

/// Error of a mutate function.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Number of attempts on conflicts before the error is returned.
pub(super) const MAX_ATTEMPTS: u32 = 5;

/// The write that was made; controller-runtime's `OperationResult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationResult {
    /// The object was missing and was created.
    Created,
    /// The object differed and was updated.
    Updated,
    /// The object was as wanted; nothing was sent.
    Unchanged,
}

/// An object after [`CreateOrUpdate`], and the write that was made. Dereferences to the object.
#[derive(Debug, Clone)]
pub struct Written<K> {
    object: Arc<K>,
    operation: OperationResult,
}

impl<K> Written<K> {
    /// Returns the write that was made.
    pub fn operation(&self) -> OperationResult {
        self.operation
    }

    /// Returns the object as the server has it, but without `managedFields`: it may come from the cache,
    /// which usually drops them, and the response is decoded without them too.
    pub fn into_inner(self) -> Arc<K> {
        self.object
    }
}

impl<K> Deref for Written<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

/// Return type of a mutate function: nothing, or a result.
pub trait MutationOutcome {
    /// Converts to a result.
    fn into_result(self) -> Result<(), BoxError>;
}

impl MutationOutcome for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> MutationOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

type Mutate<'f, K> = Box<dyn FnMut(&mut K) -> Result<(), BoxError> + Send + 'f>;

/// Create-or-update of an object; sent when awaited.
///
/// The mutate function gets the current object, or an empty one with its name, and sets the fields that it
/// manages. It is called again on a newer object after a conflict, so it must be idempotent.
#[must_use = "this does nothing until it is awaited"]
pub struct CreateOrUpdate<'f, K: Object> {
    kind: KindClient<K>,
    key: ObjectKey,
    empty: K,
    mutate: Mutate<'f, K>,
    owner: Option<OwnerRef>,
    adopt: bool,
    patch: bool,
}

impl<K: Object> KindClient<K> {
    /// Creates an object if it is missing, and updates it if the mutate function changes it.
    pub fn create_or_update<'f, R: MutationOutcome>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Default,
    {
        self.create_or_write(key, K::default(), mutate, false)
    }

    /// As [`create_or_update`](Self::create_or_update), but sends a merge patch of the changes, so that other
    /// clients may change other fields meanwhile. Changes of the status go to the status subresource.
    pub fn create_or_patch<'f, R: MutationOutcome>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Default,
    {
        self.create_or_write(key, K::default(), mutate, true)
    }

    /// As [`create_or_update`](Self::create_or_update), with the object to create instead of an empty one:
    /// for kinds that are known only at run time.
    pub fn create_or_update_from<'f, R: MutationOutcome>(
        &self,
        object: K,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> Result<CreateOrUpdate<'f, K>, ClientError> {
        let key = self.key(&object)?;
        Ok(self.create_or_write(&key, object, mutate, false))
    }

    fn create_or_write<'f, R: MutationOutcome>(
        &self,
        key: &ObjectKey,
        mut empty: K,
        mut mutate: impl FnMut(&mut K) -> R + Send + 'f,
        patch: bool,
    ) -> CreateOrUpdate<'f, K> {
        let mutate: Mutate<'f, K> = Box::new(move |object| mutate(object).into_result());
        empty.meta_mut().name = Some(key.name().to_owned());
        empty.meta_mut().namespace = key.namespace().map(str::to_owned);
        CreateOrUpdate {
            kind: self.clone(),
            key: key.clone(),
            empty,
            mutate,
            owner: None,
            adopt: true,
            patch,
        }
    }
}

impl<K: Object> CreateOrUpdate<'_, K> {
    /// Sets `owner` as the controller of the object. Fails if another owner controls it; an object without
    /// controller is adopted, unless [`without_adopting`](Self::without_adopting) is set.
    pub fn controlled_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owner_reference(OwnerRef::new(owner, &O::DynamicType::default(), true))
    }

    /// Adds `owner` to the owners of the object.
    pub fn owned_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owner_reference(OwnerRef::new(owner, &O::DynamicType::default(), false))
    }

    /// Sets an owner reference on the object.
    pub fn owner_reference(mut self, reference: OwnerRef) -> Self {
        self.owner = Some(reference);
        self
    }

    /// Fails if the object exists and does not belong to the owner yet, even if it has no controller: objects
    /// that users created are not adopted.
    pub fn without_adopting(mut self) -> Self {
        self.adopt = false;
        self
    }
}

impl<K: Object> CreateOrUpdate<'_, K> {
    async fn write(mut self) -> Result<Written<K>, ClientError> {
        let mut found = self.kind.get(&self.key).await?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let written = match &found {
                None => self.create().await,
                Some(found) => self.update(&Arc::clone(found)).await,
            };
            let error = match written {
                Ok(written) => return Ok(written),
                Err(error) => error,
            };
            // Another client has created, changed or deleted the object since: read it from the server.
            let outdated = error.is_conflict()
                || (found.is_none() && error.is_already_exists())
                || (found.is_some() && error.is_not_found());
            if !outdated || attempt == MAX_ATTEMPTS {
                return Err(error);
            }
            found = self.kind.live().get(&self.key).await?;
        }
    }

    async fn create(&mut self) -> Result<Written<K>, ClientError> {
        let mut object = self.empty.clone();
        self.run_mutate(&mut object, "create")?;
        let created = self.kind.create_with(&object, decode_as_cached).await?;
        Ok(Written { object: Arc::new(created), operation: OperationResult::Created })
    }

    async fn update(&mut self, found: &Arc<K>) -> Result<Written<K>, ClientError> {
        let mut object = K::clone(found);
        if let (false, Some(owner)) = (self.adopt, &self.owner) {
            owner.check_on(&object, &self.kind.dyntype)?;
        }
        self.run_mutate(&mut object, "update")?;
        let unchanged = Written { object: Arc::clone(found), operation: OperationResult::Unchanged };
        // Usually nothing has changed, and comparing the JSON texts is much cheaper than comparing trees.
        // Different texts prove nothing: a type may serialise its members in any order.
        let (before, after) = (self.text(found)?, self.text(&object)?);
        if before == after {
            return Ok(unchanged);
        }
        let Some(patch) = merge_patch(&self.value(&before)?, &self.value(&after)?) else {
            return Ok(unchanged);
        };
        let object = if self.patch {
            self.send_patch(found, patch).await?
        } else {
            self.kind.update_with(&object, decode_as_cached).await?
        };
        Ok(Written { object: Arc::new(object), operation: OperationResult::Updated })
    }

    /// Sends a merge patch. The status is patched as a subresource: a patch of the object would not change
    /// it.
    async fn send_patch(&mut self, found: &K, mut change: Value) -> Result<K, ClientError> {
        let status = change.as_object_mut().and_then(|members| members.remove("status"));
        let mut response = None;
        if change.as_object().is_some_and(|members| !members.is_empty()) {
            // The uid keeps the patch from a new object of the same name.
            if let Some(uid) = &found.meta().uid {
                change["metadata"]["uid"] = json!(uid);
            }
            response = Some(self.kind.patch(&self.key, &Patch::Merge(change)).await?);
        }
        if let Some(status) = status {
            let change = json!({"status": status});
            response = Some(self.kind.status().patch(&self.key, &Patch::Merge(change)).await?);
        }
        let mut object = response.unwrap_or_else(|| found.clone());
        object.meta_mut().managed_fields = None;
        Ok(object)
    }

    fn run_mutate(&mut self, object: &mut K, verb: &str) -> Result<(), ClientError> {
        let done = (self.mutate)(object);
        let operation = || self.kind.operation(verb, &self.key, None);
        done.map_err(|source| ClientError::Mutation { operation: operation(), source })?;
        if ObjectKey::of(object, &self.kind.dyntype).as_ref() != Ok(&self.key) {
            let source = "the function may not change the object's name or namespace".into();
            return Err(ClientError::Mutation { operation: operation(), source });
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        owner.set_on(object, &self.kind.dyntype).map_err(|error| match error {
            OwnerError::AlreadyControlled { controller, uid, owner, .. } => ClientError::AlreadyControlled {
                operation: format!("create {} {} for {owner}", self.kind.kind(), self.key),
                kind: self.kind.kind(),
                source: ControlledBy { controller, uid },
            },
            error => error.into(),
        })
    }

    fn text(&self, object: &K) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(object).map_err(|_| self.encode_error())
    }

    fn value(&self, text: &[u8]) -> Result<Value, ClientError> {
        serde_json::from_slice(text).map_err(|_| self.encode_error())
    }

    fn encode_error(&self) -> ClientError {
        let operation = self.kind.operation("update", &self.key, None);
        ApiError::Request { operation, reason: "the object cannot be written as JSON".to_owned() }.into()
    }
}

impl<'f, K: Object> IntoFuture for CreateOrUpdate<'f, K> {
    type Output = Result<Written<K>, ClientError>;
    type IntoFuture = BoxFuture<'f, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.write())
    }
}

impl<K: Object> std::fmt::Debug for CreateOrUpdate<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CreateOrUpdate({} {})", self.kind.kind(), self.key)
    }
}
