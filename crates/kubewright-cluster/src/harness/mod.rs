//! What tests do with a cluster: apply, look, wait, let time pass.
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
//! The attribute [`test`](macro@crate::test) gives a test its cluster and prints what happened when it fails.
//!
//! # Pitfalls
//! - Waiting is cheap only where time is paused and the cluster follows it, as it is under the attribute (by hand:
//!   [`ClusterBuilder::virtual_time`](crate::ClusterBuilder::virtual_time) in a `#[tokio::test(start_paused = true)]`).
//!   Otherwise a second is a second.
//! - [`advance`](Cluster::advance) lets time pass step by step, timer by timer. `tokio::time::advance` jumps, and
//!   whatever should have happened in between happens afterwards.

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

use futures::future::LocalBoxFuture;
use kube::{Resource, ResourceExt as _, api::PatchParams, core::DynamicObject};
use kubewright::{
    KeyError, Object, ObjectKey,
    cache::Caches,
    client::{ApiError, CachedClient, ClientError, MapperError, ResourceClient},
    scheme::DecodeError,
};
use serde_json::Value;

#[cfg(feature = "test")]
pub(crate) use self::report::Witness;
pub(crate) use self::{changes::Changes, report::Journals, watched::Watched};
pub use self::{manifest::Manifest, operator::Operator};
use crate::Cluster;

/// Who applies what a test applies.
const FIELD_MANAGER: &str = "kubewright-test";
/// How long a condition may take to come true: in virtual time, and where time costs time.
const PATIENCE: Duration = Duration::from_hours(1);
const REAL_PATIENCE: Duration = Duration::from_mins(1);
/// How often it is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What went wrong between a test and its cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// A manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] DecodeError),
    /// A manifest cannot be written as an object.
    #[error("an object of the manifest cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The server does not serve a kind.
    #[error(transparent)]
    Kind(#[from] MapperError),
    /// The server refused.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The server refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An object does not say what it is.
    #[error("the object {name:?} has no apiVersion and kind: set `types`, or apply a typed object")]
    Untyped {
        /// Its name.
        name: String,
    },
    /// There is no such object.
    #[error("there is no {kind} {key}")]
    Missing {
        /// Its kind.
        kind: String,
        /// Its key.
        key: String,
    },
    /// Not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The cluster goes on changing.
    #[error(
        "the cluster has not settled after {waited:?}; what changed last: {last}. \
         A controller may be fighting with another, or with itself"
    )]
    Restless {
        /// How long it was waited for.
        waited: Duration,
        /// The resource, key and version of the last change.
        last: String,
    },
    /// An operator did not start, or did not stop as it should.
    #[error("the operator did not run: {0}")]
    Operator(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something did not come true.
    #[error("{what} has not come true after {waited:?}")]
    Never {
        /// What was waited for.
        what: String,
        /// For how long.
        waited: Duration,
    },
}

impl Cluster {
    /// Applies objects, as `kubectl apply --server-side` does: YAML, a typed object, or several; see [`Manifest`]. Those
    /// that name no namespace and need one go to `default`.
    pub async fn apply<Form>(
        &self,
        manifest: impl Manifest<Form>,
    ) -> Result<Vec<DynamicObject>, HarnessError> {
        self.apply_all(manifest.objects()?).await
    }

    fn apply_all(
        &self,
        objects: Vec<DynamicObject>,
    ) -> LocalBoxFuture<'_, Result<Vec<DynamicObject>, HarnessError>> {
        Box::pin(async move {
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let mut applied = Vec::new();
            for object in objects {
                let namespace = object.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
                let resource = self.resource_of(&object).await?.namespace(&namespace);
                let written = resource.apply(&params, &object).await?;
                if resource.api_resource().kind == "CustomResourceDefinition" {
                    self.established(&resource, &written.name_any()).await?;
                }
                applied.push(written);
            }
            Ok(applied)
        })
    }

    /// Where an object goes. A real server announces a new kind a moment after it is established.
    async fn resource_of(&self, object: &DynamicObject) -> Result<ResourceClient, HarnessError> {
        let started = tokio::time::Instant::now();
        loop {
            match self.clients().dynamic().object(object).await {
                Err(error)
                    if error.is_no_match() && self.is_attached() && started.elapsed() < REAL_PATIENCE / 6 =>
                {
                    tokio::time::sleep(POLL).await;
                }
                found => return Ok(found?),
            }
        }
    }

    /// Waits until the kind that a definition defines is served.
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

    /// An object; `namespace/name`, or `name` where there are no namespaces.
    pub async fn get<K>(&self, key: &str) -> Result<K, HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let found = self.find::<K>(key).await?;
        found.ok_or_else(|| HarnessError::Missing { kind: K::kind(&()).into_owned(), key: key.to_owned() })
    }

    /// An object, if it exists.
    pub async fn find<K>(&self, key: &str) -> Result<Option<K>, HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let found = self.live().get::<K>(&key.parse::<ObjectKey>()?).await?;
        Ok(found.map(|object| (*object).clone()))
    }

    /// Deletes an object. One that is gone already is deleted.
    pub async fn delete<K>(&self, key: &str) -> Result<(), HarnessError>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let Some(object) = self.find::<K>(key).await? else { return Ok(()) };
        Ok(self.live().delete(&object).await?)
    }

    /// Reads and writes without a cache: a test looks at what the server has.
    fn live(&self) -> CachedClient {
        CachedClient::new(&Caches::new(self.client())).field_owner(FIELD_MANAGER).live()
    }

    /// Waits until nothing has changed for a while. Events and heartbeats do not count.
    ///
    /// In the process that is thirty seconds of cluster time. It covers the first twelve retries of a key that fails; what
    /// is due later, such as the next run of a `CronJob` or the end of a lease, is the future, and
    /// [`advance`](Self::advance) goes there. On a real control plane it is a second and a half of everybody's time, longer
    /// while something is being deleted.
    pub async fn settled(&self) -> Result<(), HarnessError> {
        self.changes().settled().await
    }

    /// Waits until a question has an answer. `what` is for the error.
    pub async fn eventually<T>(
        &self,
        what: &str,
        mut ask: impl AsyncFnMut(&Self) -> Result<Option<T>, HarnessError>,
    ) -> Result<T, HarnessError> {
        let started = tokio::time::Instant::now();
        let patience = if self.is_attached() { REAL_PATIENCE } else { PATIENCE };
        loop {
            if let Some(answer) = ask(self).await? {
                return Ok(answer);
            }
            if started.elapsed() > patience {
                return Err(HarnessError::Never { what: what.to_owned(), waited: started.elapsed() });
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
