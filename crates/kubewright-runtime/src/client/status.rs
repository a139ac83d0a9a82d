//! The status of one object: changed by a function, written when it changed.

use std::{future::IntoFuture, sync::Arc};

use futures::future::BoxFuture;
use kube::api::Patch;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{ClientError, KindClient, Operation, merge::difference};
use kubewright_client::{ApiError, Refusal};
use kubewright_core::Object;

/// How often a conflict is answered by reading again, before it is the caller's.
const ATTEMPTS: u32 = 5;

/// A change of a status; await it to have it written.
///
/// Nothing is sent when the function changes nothing. It may be called again, on a newer status, when somebody else was
/// faster; so it should set, not add.
#[must_use = "this does nothing until it is awaited"]
pub struct StatusUpdate<'f, K: Object> {
    kind: KindClient<K>,
    object: Arc<K>,
    change: Change<'f>,
}

/// The status of an object, whatever else is in it.
#[derive(serde::Deserialize)]
struct Present {
    #[serde(default)]
    status: Value,
}

/// From the present status to the wanted one; an error says where the present one does not fit its type.
type Change<'f> = Box<dyn FnMut(Value) -> Result<Value, serde_json::Error> + Send + 'f>;

impl<K: Object> KindClient<K> {
    /// Changes the status of this object, if the function changes it.
    ///
    /// `S` is the type of the status; an object that has none yet gets its default.
    pub fn set_status<'f, S>(
        &self,
        object: &Arc<K>,
        mut change: impl FnMut(&mut S) + Send + 'f,
    ) -> StatusUpdate<'f, K>
    where
        S: Serialize + DeserializeOwned + Default,
    {
        let change = move |present: Value| {
            let mut status: S = match present {
                Value::Null => S::default(),
                present => serde_json::from_value(present)?,
            };
            change(&mut status);
            serde_json::to_value(&status)
        };
        StatusUpdate { kind: self.clone(), object: Arc::clone(object), change: Box::new(change) }
    }
}

impl<K: Object> StatusUpdate<'_, K> {
    async fn write(mut self) -> Result<Operation, ClientError> {
        let key = self.kind.key(&self.object)?;
        let uid = self.object.meta().uid.clone();
        let operation = self.kind.operation("update", &key, Some("status"));
        let mut object = Arc::clone(&self.object);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let malformed = |error| ApiError::decode::<K>(&operation, &error);
            // As text first: a tree of all that is beside the status would be built and thrown away.
            let text = serde_json::to_vec(&*object).map_err(malformed)?;
            let Present { status: present } = serde_json::from_slice(&text).map_err(malformed)?;
            let wanted = (self.change)(present.clone()).map_err(malformed)?;
            let Some(change) = difference(&present, &wanted) else { return Ok(Operation::Unchanged) };
            let patch = json!({
                "metadata": {"resourceVersion": object.meta().resource_version, "uid": uid},
                "status": change,
            });
            match self.kind.status().unread().patch(&key, &Patch::Merge(patch)).await {
                Ok(_) => return Ok(Operation::Updated),
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                    // Without the object there is no status; a successor of its name has to earn its own.
                    match self.kind.live().get(&key).await? {
                        Some(newer) if newer.meta().uid == uid => object = newer,
                        _ => return Ok(Operation::Unchanged),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl<'f, K: Object> IntoFuture for StatusUpdate<'f, K> {
    type Output = Result<Operation, ClientError>;
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
