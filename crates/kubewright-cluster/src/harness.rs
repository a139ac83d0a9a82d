//! What tests do with a cluster: apply, look, wait, let time pass.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use kubewright_cluster::Cluster;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::builder().virtual_time("2026-01-01T00:00:00Z".parse()?).start().await?;
//! cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await?;
//! cluster.settled().await?;
//! assert!(cluster.get::<ConfigMap>("shop/kube-root-ca.crt").await.is_ok());
//!
//! cluster.delete::<Namespace>("shop").await?;
//! cluster.settled().await?;
//! assert!(cluster.find::<ConfigMap>("shop/kube-root-ca.crt").await?.is_none());
//! # Ok(()) }
//! ```
//!
//! # Pitfalls
//! - Waiting is cheap only where time is paused (`#[tokio::test(start_paused = true)]`) and the cluster follows it
//!   ([`ClusterBuilder::virtual_time`](crate::ClusterBuilder::virtual_time)). Otherwise a second is a second.
//! - [`advance`](Cluster::advance) lets time pass step by step, timer by timer. `tokio::time::advance` jumps, and
//!   whatever should have happened in between happens afterwards.

use std::time::Duration;

use kube::{Resource, api::PatchParams, core::DynamicObject};
use kubewright::{
    KeyError, Object, ObjectKey,
    cache::Caches,
    client::{ApiError, CachedClient, ClientError, Clients, MapperError},
    manager::{ManagerBuilder, ManagerHandle},
    scheme::{DecodeError, Scheme},
};
use tokio::task::JoinHandle;

use crate::Cluster;

/// Who applies what a test applies.
const FIELD_MANAGER: &str = "kubewright-test";
/// Kinds that change without end and mean nothing: heartbeats and what people read.
const RESTLESS: [&str; 3] = ["coordination.k8s.io/leases", "events", "events.k8s.io/events"];
/// A cluster in which nothing has changed for so long has settled.
const QUIET: Duration = Duration::from_secs(30);
/// How long a cluster may take to settle, and a condition to come true.
const PATIENCE: Duration = Duration::from_hours(1);

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

/// An operator that runs in a cluster. Dropping it kills it, as a node that loses power does;
/// [`stop`](Self::stop) lets it finish, as SIGTERM does.
#[derive(Debug)]
#[must_use = "an operator that is dropped is killed"]
pub struct Operator {
    handle: ManagerHandle,
    task: JoinHandle<Result<(), kubewright::Error>>,
}

impl Operator {
    /// The operator's manager.
    pub fn manager(&self) -> &ManagerHandle {
        &self.handle
    }

    /// Whether it has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Asks it to stop, waits until it has, and says how it ended.
    pub async fn stop(mut self) -> Result<(), HarnessError> {
        self.handle.stop();
        match (&mut self.task).await {
            Ok(ended) => ended.map_err(|error| HarnessError::Operator(error.into())),
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Runs an operator in the cluster, with the cluster's client and time and without signals.
    pub async fn run(&self, operator: ManagerBuilder) -> Result<Operator, HarnessError> {
        let manager = operator.client(self.client()).clock(self.clock().clone()).signals(false);
        let manager = manager.build().await.map_err(|error| HarnessError::Operator(error.into()))?;
        Ok(Operator { handle: manager.handle(), task: tokio::spawn(manager.run()) })
    }

    /// Applies all objects of a manifest, as `kubectl apply --server-side` does. Those that name no namespace and need
    /// one go to `default`.
    pub async fn apply(&self, manifest: &str) -> Result<Vec<DynamicObject>, HarnessError> {
        let clients = Clients::new(self.client());
        let scheme = Scheme::kubernetes();
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let mut applied = Vec::new();
        for object in scheme.decoder().unstructured().decode(manifest) {
            let object = object?.to_unstructured()?;
            let namespace = object.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
            let resource = clients.dynamic().object(&object).await?.namespace(&namespace);
            applied.push(resource.apply(&params, &object).await?);
        }
        Ok(applied)
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

    /// Lets time pass: every timer that comes due on the way does what it should, in order.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until nothing has changed for a while. Events and heartbeats do not count.
    pub async fn settled(&self) -> Result<(), HarnessError> {
        let started = tokio::time::Instant::now();
        let mut before = self.newest();
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.newest();
            if now == before {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                let (_, last) = now;
                return Err(HarnessError::Restless { waited: started.elapsed(), last });
            }
            before = now;
        }
    }

    /// Waits until a question has an answer. `what` is for the error.
    pub async fn eventually<T>(
        &self,
        what: &str,
        mut ask: impl AsyncFnMut(&Self) -> Result<Option<T>, HarnessError>,
    ) -> Result<T, HarnessError> {
        let started = tokio::time::Instant::now();
        loop {
            if let Some(answer) = ask(self).await? {
                return Ok(answer);
            }
            if started.elapsed() > PATIENCE {
                return Err(HarnessError::Never { what: what.to_owned(), waited: started.elapsed() });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How many objects there are, and the newest of them.
    fn newest(&self) -> (usize, String) {
        let snapshot = self.server().registry().storage.snapshot();
        let (mut count, mut newest) = (0, (0, String::new()));
        for resource in snapshot.resources().filter(|name| !RESTLESS.contains(&&***name)) {
            for (key, object) in snapshot.collection(resource).range(None, None) {
                count += 1;
                if object.revision > newest.0 {
                    newest = (object.revision, format!("{resource} {key} at version {}", object.revision));
                }
            }
        }
        (count, newest.1)
    }
}
