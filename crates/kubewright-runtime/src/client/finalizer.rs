//! Finalizers: clean-up before an object is deleted.
//!
//! A finalizer is a name in `metadata.finalizers` that keeps an object from being removed. Typical mistakes
//! are to start the work before the name is stored (a crash in between leaks resources), to remove the name
//! before the clean-up is done, or to remove it from a new object of the same name. [`KindClient::finalizer`]
//! rules these out:
//!
//! ```no_run
//! # use kubewright::{prelude::*, client::cached::Finalizer, k8s_openapi::api::core::v1::ConfigMap};
//! # async fn make_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
//! # async fn remove_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
//! async fn reconcile(cx: Context<ConfigMap>) -> Result<Action> {
//!     match cx.finalizer("example.com/bucket").await? {
//!         Finalizer::Held(map) => make_bucket(&map).await?,      // the finalizer is stored: safe to begin
//!         Finalizer::CleanUp(cleanup) => {
//!             remove_bucket(cleanup.object()).await?;            // on failure the finalizer stays: retried
//!             cleanup.done().await?;
//!         }
//!         Finalizer::Gone => {}
//!     }
//!     Ok(Action::done())
//! }
//! ```

use std::sync::Arc;

use kube::api::Patch;
use serde_json::json;

use super::{ClientError, KindClient};
use kubewright_cache::RecordedDeletion;
use kubewright_client::ApiStatus;
use kubewright_core::{Object, ObjectKey};

/// State of an object with respect to a finalizer.
#[derive(Debug)]
pub enum Finalizer<K: Object> {
    /// The object is not being deleted and has the finalizer.
    Held(Arc<K>),
    /// The object is being deleted: clean up, then call [`CleanUp::done`].
    CleanUp(CleanUp<K>),
    /// The object is gone, or is being deleted without this finalizer.
    Gone,
}

/// An object that waits for clean-up. Dropping this keeps the finalizer.
#[derive(Debug)]
pub struct CleanUp<K: Object> {
    kind: KindClient<K>,
    object: Arc<K>,
    name: String,
}

impl<K: Object> KindClient<K> {
    /// Adds the finalizer to a live object, or returns the object to clean up.
    pub async fn finalizer(&self, key: &ObjectKey, name: &str) -> Result<Finalizer<K>, ClientError> {
        match self.get(key).await? {
            Some(object) => self.finalizer_of(object, name).await,
            None => Ok(Finalizer::Gone),
        }
    }

    pub(crate) async fn finalizer_of(&self, object: Arc<K>, name: &str) -> Result<Finalizer<K>, ClientError> {
        let meta = object.meta();
        let held = meta.finalizers.iter().flatten().any(|held| held == name);
        match (meta.deletion_timestamp.is_some(), held) {
            (true, true) => {
                Ok(Finalizer::CleanUp(CleanUp { kind: self.clone(), object, name: name.to_owned() }))
            }
            (true, false) => Ok(Finalizer::Gone),
            (false, true) => Ok(Finalizer::Held(object)),
            (false, false) => {
                let mut names = meta.finalizers.clone().unwrap_or_default();
                names.push(name.to_owned());
                match self.set_finalizers(&object, &names).await {
                    Ok(object) => Ok(Finalizer::Held(Arc::new(object))),
                    Err(error) if error.is_not_found() => Ok(Finalizer::Gone),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Replaces the finalizers. Fails with a conflict when the object has changed, because the list is
    /// replaced as a whole; the uid excludes a new object of the same name.
    async fn set_finalizers(&self, object: &K, names: &[String]) -> Result<K, ClientError> {
        let meta = object.meta();
        let patch = json!({"metadata": {
            "finalizers": names, "resourceVersion": meta.resource_version, "uid": meta.uid,
        }});
        self.patch(&self.key(object)?, &Patch::Merge(patch)).await
    }
}

impl<K: Object> CleanUp<K> {
    /// Returns the object that is being deleted.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// Removes the finalizer from this object, and from no other of its name.
    pub async fn done(self) -> Result<(), ClientError> {
        let names: Vec<String> = self
            .object
            .meta()
            .finalizers
            .iter()
            .flatten()
            .filter(|held| **held != self.name)
            .cloned()
            .collect();
        match self.kind.set_finalizers(&self.object, &names).await {
            Ok(object) => {
                // Without finalizers the server removes the object, unless it has a grace period.
                let meta = object.meta();
                if names.is_empty() && meta.deletion_grace_period_seconds.unwrap_or(0) == 0 {
                    let deletion = meta.uid.clone().map(|uid| RecordedDeletion { uid, removed: true });
                    self.kind.record_write(&self.kind.key(&object)?, None, deletion.as_ref());
                }
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
