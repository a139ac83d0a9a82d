//! An object as it should be, whether it exists or not.

use std::{future::IntoFuture, ops::Deref, sync::Arc};

use futures::future::BoxFuture;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{ClientError, ControlledBy, KindClient, kind_client::decode_as_cached, merge::difference};
use kubewright_client::{ApiError, OwnerError, Refusal, owner::Reference};
use kubewright_core::{Object, ObjectKey};

/// Whatever a function failed with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How often a conflict is answered by reading again, before it is the caller's.
const ATTEMPTS: u32 = 5;

/// What was necessary to bring an object into its wanted state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It was missing.
    Created,
    /// It was there and different.
    Updated,
    /// It was there and as it should be; nothing was sent.
    Unchanged,
}

/// An object in its wanted state, and what was necessary. It can be used as the object itself.
#[derive(Debug, Clone)]
pub struct Written<K> {
    object: Arc<K>,
    operation: Operation,
}

impl<K> Written<K> {
    /// What was necessary.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The object as the server has it, but for `managedFields`: it may come from the cache, which usually holds none, and
    /// what was written is read without them too.
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

/// What a function that brings an object into its wanted state may return: nothing, or a result.
pub trait MutationOutcome {
    /// Whether it went well.
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

/// A wanted state that is being put together; await it to have it so.
///
/// The function gets the object as it is, or an empty one with its name, and changes what it cares for. It may be called
/// again, on a newer object, when somebody else was faster; so it should set, not add.
#[must_use = "this does nothing until it is awaited"]
pub struct CreateOrUpdate<'f, K: Object> {
    kind: KindClient<K>,
    key: ObjectKey,
    empty: K,
    mutate: Mutate<'f, K>,
    owner: Option<Reference>,
    adopt: bool,
    patch: bool,
}

impl<K: Object> KindClient<K> {
    /// Brings an object into a wanted state: creates it if it is missing, and updates it if the function changes it.
    pub fn create_or_update<'f, R: MutationOutcome>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Default,
    {
        self.wanted(key, K::default(), mutate, false)
    }

    /// The same with a patch of what the function changes, so that others may change other fields meanwhile. Changes of
    /// the status go to the status.
    pub fn create_or_patch<'f, R: MutationOutcome>(
        &self,
        key: &ObjectKey,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> CreateOrUpdate<'f, K>
    where
        K: Default,
    {
        self.wanted(key, K::default(), mutate, true)
    }

    /// As [`create_or_update`](Self::create_or_update), from an object that says how it is created: for kinds that are
    /// known only at run time.
    pub fn create_or_update_from<'f, R: MutationOutcome>(
        &self,
        object: K,
        mutate: impl FnMut(&mut K) -> R + Send + 'f,
    ) -> Result<CreateOrUpdate<'f, K>, ClientError> {
        let key = self.key(&object)?;
        Ok(self.wanted(&key, object, mutate, false))
    }

    fn wanted<'f, R: MutationOutcome>(
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
    /// Makes this the owner that controls the object. Refused if somebody else does; an object that nobody controls is
    /// adopted, unless that is [not wanted](Self::without_adopting).
    pub fn controlled_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owned_through(Reference::to(owner, &O::DynamicType::default(), true))
    }

    /// Makes this one of the owners of the object.
    pub fn owned_by<O: Object<DynamicType: Default>>(self, owner: &O) -> Self {
        self.owned_through(Reference::to(owner, &O::DynamicType::default(), false))
    }

    /// Puts a reference to an owner on the object.
    pub fn owned_through(mut self, reference: Reference) -> Self {
        self.owner = Some(reference);
        self
    }

    /// Refuses an object that exists and does not belong to the owner yet, also when nobody controls it: an object that a
    /// person has made stays that person's.
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
                Some(found) => self.change(&Arc::clone(found)).await,
            };
            let error = match written {
                Ok(written) => return Ok(written),
                Err(error) => error,
            };
            // Somebody else has created, changed or deleted it since the cache saw it: look again, at the source.
            let outdated = error.is_conflict()
                || (found.is_none() && error.is_already_exists())
                || (found.is_some() && error.is_not_found());
            if !outdated || attempt == ATTEMPTS {
                return Err(error);
            }
            found = self.kind.live().get(&self.key).await?;
        }
    }

    async fn create(&mut self) -> Result<Written<K>, ClientError> {
        let mut object = self.empty.clone();
        self.mutated(&mut object, "create")?;
        let created = self.kind.create_reading(&object, decode_as_cached).await?;
        Ok(Written { object: Arc::new(created), operation: Operation::Created })
    }

    async fn change(&mut self, found: &Arc<K>) -> Result<Written<K>, ClientError> {
        let mut object = K::clone(found);
        if let (false, Some(owner)) = (self.adopt, &self.owner) {
            owner.is_on(&object, &self.kind.dyntype)?;
        }
        self.mutated(&mut object, "update")?;
        let unchanged = Written { object: Arc::clone(found), operation: Operation::Unchanged };
        // Most of the time nothing has changed, and to see that, two texts are much cheaper than two trees. Texts that differ
        // prove nothing: a type may write its members in any order.
        if self.text(found)? == self.text(&object)? {
            return Ok(unchanged);
        }
        let Some(change) = difference(&self.value(found)?, &self.value(&object)?) else {
            return Ok(unchanged);
        };
        let object = if self.patch {
            self.send(found, change).await?
        } else {
            self.kind.update_reading(&object, decode_as_cached).await?
        };
        Ok(Written { object: Arc::new(object), operation: Operation::Updated })
    }

    /// Status is a subresource nearly everywhere, and a patch of the object then changes nothing of it.
    async fn send(&mut self, found: &K, mut change: Value) -> Result<K, ClientError> {
        let status = change.as_object_mut().and_then(|members| members.remove("status"));
        let mut answer = None;
        if change.as_object().is_some_and(|members| !members.is_empty()) {
            // A successor of the same name must not get what was meant for this one.
            if let Some(uid) = &found.meta().uid {
                change["metadata"]["uid"] = json!(uid);
            }
            answer = Some(self.kind.patch(&self.key, &Patch::Merge(change)).await?);
        }
        if let Some(status) = status {
            let change = json!({"status": status});
            answer = Some(self.kind.status().patch(&self.key, &Patch::Merge(change)).await?);
        }
        let mut object = answer.unwrap_or_else(|| found.clone());
        object.meta_mut().managed_fields = None;
        Ok(object)
    }

    fn mutated(&mut self, object: &mut K, verb: &str) -> Result<(), ClientError> {
        let done = (self.mutate)(object);
        let operation = || self.kind.operation(verb, &self.key, None);
        done.map_err(|source| ClientError::Mutation { operation: operation(), source })?;
        if ObjectKey::of(object, &self.kind.dyntype).as_ref() != Ok(&self.key) {
            let source = "the function may not change the object's name or namespace".into();
            return Err(ClientError::Mutation { operation: operation(), source });
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        owner.put_on(object, &self.kind.dyntype).map_err(|error| match error {
            OwnerError::Controlled { controller, uid, owner, .. } => ClientError::Taken {
                operation: format!("create {} {} for {owner}", self.kind.kind(), self.key),
                kind: self.kind.kind(),
                source: ControlledBy { controller, uid },
            },
            error => error.into(),
        })
    }

    fn text(&self, object: &K) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(object).map_err(|_| self.unwritable())
    }

    fn value(&self, object: &K) -> Result<Value, ClientError> {
        serde_json::to_value(object).map_err(|_| self.unwritable())
    }

    fn unwritable(&self) -> ClientError {
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
