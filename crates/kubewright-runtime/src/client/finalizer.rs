//! Something to be done before an object goes.
//!
//! A finalizer is a name on an object that keeps it from going until the name is taken off. What can go wrong by hand:
//! doing the work before the name is stored (a crash in between leaks it), taking the name off before the clean-up is
//! done, or off the successor that was created under the same name. [`KindClient::finalizer`] leaves no room for these:
//!
//! ```no_run
//! # use kubewright::{prelude::*, client::cached::Finalizer, k8s_openapi::api::core::v1::ConfigMap};
//! # async fn make_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
//! # async fn remove_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
//! async fn reconcile(cx: Context<ConfigMap>) -> Result<Action> {
//!     match cx.finalizer("example.com/bucket").await? {
//!         Finalizer::Held(map) => make_bucket(&map).await?,      // the name is stored: now it is safe to begin
//!         Finalizer::CleanUp(cleanup) => {
//!             remove_bucket(cleanup.object()).await?;            // on failure the name stays, and we come back
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
use kubewright_cache::Gone;
use kubewright_client::Refusal;
use kubewright_core::{Object, ObjectKey};

/// Where an object stands with a finalizer.
#[derive(Debug)]
pub enum Finalizer<K: Object> {
    /// The object lives and has the finalizer: it will not go without a clean-up.
    Held(Arc<K>),
    /// The object is to go: clean up, then say so.
    CleanUp(CleanUp<K>),
    /// The object is gone, or on its way without anything for us to do.
    Gone,
}

/// An object that waits for our clean-up. Dropping this leaves it waiting.
#[derive(Debug)]
pub struct CleanUp<K: Object> {
    kind: KindClient<K>,
    object: Arc<K>,
    name: String,
}

impl<K: Object> KindClient<K> {
    /// Puts the finalizer on an object that lives, or says that it is time to clean up.
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

    /// Refused as a conflict when the object has changed: the list of names is replaced as a whole, and a successor of
    /// the same name has another version too.
    async fn set_finalizers(&self, object: &K, names: &[String]) -> Result<K, ClientError> {
        let meta = object.meta();
        let patch = json!({"metadata": {
            "finalizers": names, "resourceVersion": meta.resource_version, "uid": meta.uid,
        }});
        self.patch(&self.key(object)?, &Patch::Merge(patch)).await
    }
}

impl<K: Object> CleanUp<K> {
    /// The object that is to go.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// The clean-up is done: this object, and no other of its name, may go.
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
                // With the last name the object itself goes, unless it was given time.
                let meta = object.meta();
                if names.is_empty() && meta.deletion_grace_period_seconds.unwrap_or(0) == 0 {
                    let gone = meta.uid.clone().map(|uid| Gone { uid, for_good: true });
                    self.kind.note(&self.kind.key(&object)?, None, gone.as_ref());
                }
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
