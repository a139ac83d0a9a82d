//! Status updates: changed by a function, written only when changed.

use std::{future::IntoFuture, sync::Arc};

use futures::future::BoxFuture;
use kube::api::Patch;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{ClientError, KindClient, OperationResult, create_or_update::MAX_ATTEMPTS, merge::merge_patch};
use kubewright_client::{ApiError, ApiStatus};
use kubewright_core::Object;

/// Update of the status subresource; sent when awaited.
///
/// Nothing is sent when the function changes nothing. It is called again on a newer status after a conflict,
/// so it must be idempotent.
#[must_use = "this does nothing until it is awaited"]
pub struct StatusUpdate<'f, K: Object> {
    kind: KindClient<K>,
    object: Arc<K>,
    change: Change<'f>,
}

/// An object of which only the status is decoded.
#[derive(serde::Deserialize)]
struct WithStatus {
    #[serde(default)]
    status: Value,
}

/// Maps the current status to the wanted one; fails where the current one does not fit its type.
type Change<'f> = Box<dyn FnMut(&Value) -> Result<Value, serde_json::Error> + Send + 'f>;

impl<K: Object> KindClient<K> {
    /// Updates the status of this object, if the function changes it.
    ///
    /// `S` is the type of the status; an object without status starts from its default.
    pub fn set_status<'f, S>(
        &self,
        object: &Arc<K>,
        mut change: impl FnMut(&mut S) + Send + 'f,
    ) -> StatusUpdate<'f, K>
    where
        S: Serialize + DeserializeOwned + Default,
    {
        let change = move |current: &Value| {
            // Through text, as objects are read and written: one deserialiser of a type is enough.
            let mut status: S = match current {
                Value::Null => S::default(),
                current => serde_json::from_str(&current.to_string())?,
            };
            change(&mut status);
            serde_json::from_slice(&serde_json::to_vec(&status)?)
        };
        StatusUpdate { kind: self.clone(), object: Arc::clone(object), change: Box::new(change) }
    }
}

impl<K: Object> StatusUpdate<'_, K> {
    async fn write(mut self) -> Result<OperationResult, ClientError> {
        let key = self.kind.key(&self.object)?;
        let uid = self.object.meta().uid.clone();
        let operation = self.kind.operation("update", &key, Some("status"));
        let mut object = Arc::clone(&self.object);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let malformed = |error| ApiError::decode::<K>(&operation, &error);
            // Through text: a tree of everything but the status would be built and thrown away.
            let text = serde_json::to_vec(&*object).map_err(malformed)?;
            let WithStatus { status: current } = serde_json::from_slice(&text).map_err(malformed)?;
            let wanted = (self.change)(&current).map_err(malformed)?;
            let Some(change) = merge_patch(&current, &wanted) else { return Ok(OperationResult::Unchanged) };
            let patch = json!({
                "metadata": {"resourceVersion": object.meta().resource_version, "uid": uid},
                "status": change,
            });
            match self.kind.status().discard_responses().patch(&key, &Patch::Merge(patch)).await {
                Ok(_) => return Ok(OperationResult::Updated),
                Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => {
                    // The object is gone, or a new one of the same name exists, which gets its own status.
                    match self.kind.live().get(&key).await? {
                        Some(newer) if newer.meta().uid == uid => object = newer,
                        _ => return Ok(OperationResult::Unchanged),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl<'f, K: Object> IntoFuture for StatusUpdate<'f, K> {
    type Output = Result<OperationResult, ClientError>;
    type IntoFuture = BoxFuture<'f, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.write())
    }
}

impl<K: Object> std::fmt::Debug for StatusUpdate<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatusUpdate({} {:?})", self.kind.kind(), self.object.meta().name)
    }
}
