//! Discovery client: the groups, versions and resources that the server serves.
//!
//! [`DiscoveryClient::resources`] returns a snapshot of everything. It costs two requests the first time
//! (aggregated discovery of `/api` and `/apis`), one per group version on servers older than 1.26, and
//! nothing afterwards: the result is cached in memory, and with [`DiscoveryClient::disk_cache`] on disk.
//!
//! - [`DiscoveryClient::invalidate`] drops the cache; the next call fetches from the server.
//! - [`DiscoveryClient::refresh`] fetches now. With aggregated discovery it sends the `ETag` of the cached
//!   document, and a server whose resources have not changed responds with 304.
//! - Most programs need neither: the [`RestMapper`](crate::RestMapper) refreshes on a miss.
//!
//! # Partial failures
//! An aggregated API server that is down (the metrics server, typically) must not prevent listing Pods.
//! Groups that could not be discovered are in [`ServerResources::failures`], beside everything that could.
//! Stale resources are in the result and in the failures; the mapper prefers others.
//!
//! # Pitfalls
//! A snapshot from disk may be hours old. Call [`refresh`](DiscoveryClient::refresh) before relying on a
//! resource being absent.

mod aggregated;
mod disk;
mod fetch;
mod legacy;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;
use parking_lot::RwLock;

pub use self::{
    disk::DiskCache,
    model::{
        DiscoveryFailure, FailureReason, GroupInfo, ResourceInfo, ServerResources, SubresourceInfo,
        VersionInfo,
    },
};
use self::{fetch::LastResponses, model::api_version};
use crate::error::{ApiError, ApiStatus};

/// With more group versions missing on disk than this, everything is fetched: two requests on current
/// servers.
const MAX_SINGLE_FETCHES: usize = 3;

/// Client for discovery with a cache. Clones share the cache.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::kube::client::Body;
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     let body = match request.uri().path() {
/// #         "/api" => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
/// #             {"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
/// #                 {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get","list"]}]}]}]}"#,
/// #         _ => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}"#,
/// #     };
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
/// # });
/// # let client = kubewright::kube::Client::new(server, "default");
/// use kubewright::client::DiscoveryClient;
///
/// let discovery = DiscoveryClient::new(client);
/// let served = discovery.resources().await?;
/// for resource in &served.group_version("v1").expect("every cluster has the core group").resources {
///     println!("{resource} {}", resource.kind);
/// }
/// for failure in &served.failures {
///     eprintln!("not complete: {failure}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DiscoveryClient {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    disk: Option<DiskCache>,
    memory: RwLock<MemoryCache>,
    /// Held during a fetch, so that concurrent callers share one.
    fetching: tokio::sync::Mutex<LastResponses>,
}

#[derive(Default)]
struct MemoryCache {
    snapshot: Option<Snapshot>,
    /// Number of invalidations: a response requested before one is not cached after it.
    epoch: u64,
    /// Number of fetches, failed ones included.
    round: u64,
    /// The error of the last fetch, for callers that waited for it.
    failed: Option<DiscoveryError>,
}

/// A cached result and its age.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) resources: Arc<ServerResources>,
    /// The number of the fetch that returned it.
    pub(crate) round: u64,
    /// Whether it came from the server and not from disk.
    pub(crate) live: bool,
}

/// Error from discovery. Cheap to clone: all callers that waited for the fetch get it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("discovery failed: {0}")]
pub struct DiscoveryError(#[source] Arc<ApiError>);

impl ApiStatus for DiscoveryError {
    fn status(&self) -> Option<&kube::core::Status> {
        self.0.status()
    }
}

impl DiscoveryClient {
    /// Creates a client that caches in memory.
    pub fn new(client: Client) -> Self {
        Self::from_parts(client, None)
    }

    /// Returns a client that caches on disk as well, with a memory cache of its own.
    #[must_use]
    pub fn disk_cache(&self, cache: DiskCache) -> Self {
        Self::from_parts(self.shared.client.clone(), Some(cache))
    }

    fn from_parts(client: Client, disk: Option<DiskCache>) -> Self {
        let shared =
            Shared { client, disk, memory: RwLock::default(), fetching: tokio::sync::Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns everything that the server serves: from memory, else from disk, else from the server.
    pub async fn resources(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        Ok(self.snapshot().await?.resources)
    }

    /// Fetches from the server, bypassing the cache.
    pub async fn refresh(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        Ok(self.newer_than(self.round()).await?.resources)
    }

    /// Drops the cache, in memory and on disk: the next call fetches from the server.
    pub fn invalidate(&self) {
        let mut memory = self.shared.memory.write();
        memory.snapshot = None;
        memory.epoch += 1;
        if let Some(disk) = &self.shared.disk {
            disk.invalidate();
        }
    }

    /// Returns the number of fetches so far.
    pub(crate) fn round(&self) -> u64 {
        self.shared.memory.read().round
    }

    /// Returns the cached snapshot, or fetches one. Concurrent callers share one fetch and its error.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, DiscoveryError> {
        let round = self.round();
        let cached = || self.shared.memory.read().snapshot.clone();
        if let Some(snapshot) = cached() {
            return Ok(snapshot);
        }
        let mut fetching = self.shared.fetching.lock().await;
        if let Some(snapshot) = cached() {
            return Ok(snapshot);
        }
        if let Some(outcome) = self.shared.memory.read().after(round) {
            return outcome;
        }
        let epoch = self.shared.memory.read().epoch;
        match self.read_disk().await {
            Some(resources) => self.store(epoch, false, Ok(resources)),
            None => self.fetch(&mut fetching).await,
        }
    }

    /// Returns a snapshot of a later round than this one; concurrent callers share one fetch.
    pub(crate) async fn newer_than(&self, round: u64) -> Result<Snapshot, DiscoveryError> {
        let mut fetching = self.shared.fetching.lock().await;
        if let Some(outcome) = self.shared.memory.read().after(round) {
            return outcome;
        }
        self.fetch(&mut fetching).await
    }

    async fn fetch(&self, last: &mut LastResponses) -> Result<Snapshot, DiscoveryError> {
        let epoch = self.shared.memory.read().epoch;
        let resources = fetch::server_resources(&self.shared.client, last).await;
        let outcome = self.store(epoch, true, resources);
        if let (Ok(snapshot), Some(disk)) = (&outcome, &self.shared.disk)
            && self.shared.memory.read().epoch == epoch
        {
            disk.store(&snapshot.resources);
        }
        outcome
    }

    fn store(
        &self,
        epoch: u64,
        live: bool,
        resources: Result<ServerResources, ApiError>,
    ) -> Result<Snapshot, DiscoveryError> {
        let mut memory = self.shared.memory.write();
        memory.round += 1;
        match resources {
            Ok(resources) => {
                let snapshot = Snapshot { resources: Arc::new(resources), round: memory.round, live };
                memory.failed = None;
                if memory.epoch == epoch {
                    memory.snapshot = Some(snapshot.clone());
                }
                Ok(snapshot)
            }
            Err(error) => {
                let error = DiscoveryError(Arc::new(error));
                memory.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Reads the cache on disk and fetches missing group versions one by one. `None` if so many are missing
    /// that fetching everything is cheaper.
    async fn read_disk(&self) -> Option<ServerResources> {
        let disk = self.shared.disk.as_ref()?;
        let mut resources = ServerResources { groups: disk.groups()?, failures: Vec::new() };
        let mut missing = Vec::new();
        for (group_index, group) in resources.groups.iter_mut().enumerate() {
            for (version_index, version) in group.versions.iter_mut().enumerate() {
                match disk.resources(&group.name, &version.version) {
                    Some(found) => version.resources = found,
                    None => missing.push((group_index, version_index)),
                }
            }
        }
        if missing.len() > MAX_SINGLE_FETCHES {
            return None;
        }
        for (group_index, version_index) in missing {
            let group = &mut resources.groups[group_index];
            let version = &mut group.versions[version_index];
            match fetch::group_version(&self.shared.client, &group.name, &version.version).await {
                Ok(found) => {
                    version.resources = found;
                    disk.store_version(&group.name, version);
                }
                Err(error) => {
                    let what = api_version(&group.name, &version.version);
                    resources.failures.push(fetch::failure(&what, &error));
                }
            }
        }
        Some(resources)
    }
}

impl MemoryCache {
    /// Returns the result after a round, which may be an error.
    fn after(&self, round: u64) -> Option<Result<Snapshot, DiscoveryError>> {
        if let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.round > round) {
            return Some(Ok(snapshot.clone()));
        }
        self.failed.clone().filter(|_| self.round > round).map(Err)
    }
}

impl std::fmt::Debug for DiscoveryClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiscoveryClient").field("disk", &self.shared.disk).finish_non_exhaustive()
    }
}
