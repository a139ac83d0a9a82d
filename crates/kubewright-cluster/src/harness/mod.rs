//! Test harness: applies and reads objects, waits, and advances time.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use kubewright_cluster::Cluster;
//!
//! // In a test: #[kubewright_cluster::test]
//! async fn a_namespace_is_emptied(cluster: Cluster) -> Result<(), kubewright_cluster::HarnessError> {
//!     cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await?;
//!     cluster.settled().await?;
//!     assert!(cluster.get::<ConfigMap>("shop/kube-root-ca.crt").await.is_ok());
//!
//!     cluster.delete::<Namespace>("shop").await?;
//!     cluster.settled().await?;
//!     assert!(cluster.find::<ConfigMap>("shop/kube-root-ca.crt").await?.is_none());
//!     Ok(())
//! }
//! # kubewright_cluster::testing::Setup::new("doc").run(a_namespace_is_emptied).unwrap();
//! ```
//!
//! The attribute [`test`](macro@crate::test) gives a test its cluster and prints a report when it fails.
//!
//! # Pitfalls
//! - Waiting is cheap only in paused time that the cluster follows, as under the attribute (by hand:
//!   [`ClusterBuilder::virtual_time`](crate::ClusterBuilder::virtual_time) in a `#[tokio::test(start_paused =
//!   true)]`). Otherwise it takes real time.
//! - [`advance`](Cluster::advance) fires timers one by one. `tokio::time::advance` jumps, and timers in
//!   between fire afterwards.

mod changes;
mod cut_off;
pub mod manifest;
mod operator;
mod report;
mod seen;
mod table;
mod time;
mod watched;

use std::time::Duration;

use kube::{Resource, ResourceExt as _, api::PatchParams, core::DynamicObject};
use kubewright::{
    KeyError, Object, ObjectKey,
    cache::Caches,
    client::{ApiError, CachedClient, ClientError, MapperError, ResourceClient},
    scheme::DecodeError,
};
use serde_json::Value;

#[cfg(feature = "test")]
pub(crate) use self::report::Reporter;
pub(crate) use self::{changes::Changes, report::Journals, watched::ChangeWatcher};
pub use self::{manifest::Manifest, operator::Operator};
use crate::Cluster;

/// Field manager of applied objects.
const FIELD_MANAGER: &str = "kubewright-test";
/// Time-out of conditions: in virtual time, and in real time.
const TIMEOUT: Duration = Duration::from_hours(1);
const REAL_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval of polling a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Error of a test's operation on its cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// A manifest cannot be decoded.
    #[error(transparent)]
    Manifest(#[from] DecodeError),
    /// An object cannot be encoded.
    #[error("an object of the manifest cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The server does not serve the kind.
    #[error(transparent)]
    Kind(#[from] MapperError),
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The server refused the request.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An object has no `apiVersion` and `kind`.
    #[error("the object {name:?} has no apiVersion and kind: set `types`, or apply a typed object")]
    Untyped {
        /// Its name.
        name: String,
    },
    /// The object does not exist.
    #[error("there is no {kind} {key}")]
    Missing {
        /// Its kind.
        kind: String,
        /// Its key.
        key: String,
    },
    /// The text is no object key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The cluster keeps changing.
    #[error(
        "the cluster has not settled after {waited:?}; the last change: {last}. \
         A controller may conflict with another one, or with itself"
    )]
    NotSettled {
        /// How long the test waited.
        waited: Duration,
        /// The resource, key and version of the last change.
        last: String,
    },
    /// An operator did not start, or failed.
    #[error("the operator did not run: {0}")]
    Operator(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A condition was not met in time.
    #[error("{what} has not come true after {waited:?}")]
    ConditionTimeout {
        /// The condition.
        what: String,
        /// How long the test waited.
        waited: Duration,
    },
}

impl Cluster {
    /// Applies objects, as `kubectl apply --server-side` does: YAML, a typed object, or several; see
    /// [`Manifest`]. Namespaced objects without a namespace go to `default`.
    pub async fn apply<Form>(
        &self,
        manifest: impl Manifest<Form>,
    ) -> Result<Vec<DynamicObject>, HarnessError> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let mut applied = Vec::new();
        for object in manifest.objects()? {
            let namespace = object.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
            let resource = self.resource_of(&object).await?.namespace(&namespace);
            let written = resource.apply(&params, &object).await?;
            if resource.api_resource().kind == "CustomResourceDefinition" {
                self.established(&resource, &written.name_any()).await?;
            }
            applied.push(written);
        }
        Ok(applied)
    }

    /// Returns the client for an object. A real server announces a new kind a moment after it is established.
    async fn resource_of(&self, object: &DynamicObject) -> Result<ResourceClient, HarnessError> {
        let started = tokio::time::Instant::now();
        loop {
            match self.clients().dynamic().object(object).await {
                Err(error)
                    if error.is_no_match() && self.is_attached() && started.elapsed() < REAL_TIMEOUT / 6 =>
                {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                found => return Ok(found?),
            }
        }
    }

    /// Waits until a definition is established.
    async fn established(&self, definitions: &ResourceClient, name: &str) -> Result<(), HarnessError> {
        let what = format!("that CustomResourceDefinition {name} is established");
        self.eventually(&what, async |_| {
            let definition = definitions.get(name).await?;
            let conditions = definition.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let holds =
                |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
            Ok(conditions.iter().any(holds).then_some(()))
        })
        .await
    }

    /// Returns an object by its key: `namespace/name`, or `name` if it is cluster-scoped.
    pub async fn get<K>(&self, key: &str) -> Result<K, HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let found = self.find::<K>(key).await?;
        found.ok_or_else(|| HarnessError::Missing { kind: K::kind(&()).into_owned(), key: key.to_owned() })
    }

    /// Returns an object if it exists.
    pub async fn find<K>(&self, key: &str) -> Result<Option<K>, HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let found = self.live().get::<K>(&key.parse::<ObjectKey>()?).await?;
        Ok(found.map(|object| (*object).clone()))
    }

    /// Deletes an object if it exists.
    pub async fn delete<K>(&self, key: &str) -> Result<(), HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let Some(object) = self.find::<K>(key).await? else { return Ok(()) };
        Ok(self.live().delete(&object).await?)
    }

    /// Client without a cache: tests read what the server has.
    fn live(&self) -> CachedClient {
        CachedClient::new(&Caches::new(self.client())).field_owner(FIELD_MANAGER).live()
    }

    /// Waits until nothing has changed for a while. Events and heartbeats are ignored.
    ///
    /// In process that is thirty seconds of cluster time, which covers the first twelve retries of a failing
    /// key; use [`advance`](Self::advance) for what is due later, such as the next run of a `CronJob` or the
    /// expiry of a lease. On a real control plane it is 1.5 seconds of real time, longer while objects are
    /// being deleted.
    pub async fn settled(&self) -> Result<(), HarnessError> {
        self.changes().settled().await
    }

    /// Polls until `poll` returns a value. `what` names the condition in the error.
    pub async fn eventually<T>(
        &self,
        what: &str,
        mut poll: impl AsyncFnMut(&Self) -> Result<Option<T>, HarnessError>,
    ) -> Result<T, HarnessError> {
        let started = tokio::time::Instant::now();
        let timeout = if self.is_attached() { REAL_TIMEOUT } else { TIMEOUT };
        loop {
            if let Some(answer) = poll(self).await? {
                return Ok(answer);
            }
            if started.elapsed() > timeout {
                return Err(HarnessError::ConditionTimeout {
                    what: what.to_owned(),
                    waited: started.elapsed(),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
