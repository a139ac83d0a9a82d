//! The discovery client: which groups, versions and resources the server serves.
//!
//! One call, [`DiscoveryClient::resources`], answers all questions; what it returns is a snapshot that can be
//! kept. It costs two requests the first time (aggregated discovery of `/api` and `/apis`), one per group
//! version on servers older than 1.26, and nothing afterwards: the answer is kept in memory, and with
//! [`DiscoveryClient::disk_cache`] on disk.
//!
//! - [`DiscoveryClient::invalidate`] forgets; the next call asks the server.
//! - [`DiscoveryClient::refresh`] asks the server now. With aggregated discovery it sends the tag of what it
//!   knows, and a server whose resources have not changed answers with nothing at all.
//! - Most programs want neither: the [`RestMapper`](crate::RestMapper) refreshes when it misses
//!   something.
//!
//! # Partial failures
//! An aggregated API server that is down (the metrics server, typically) must not keep anybody from listing
//! Pods. What could not be discovered is in [`ServerResources::failures`], beside everything that could.
//! Resources that the server marks as stale are in the answer and in the failures: it is better to know of
//! them, and the mapper prefers others.
//!
//! # Pitfalls
//! A snapshot from disk may be hours old. "Not there" is worth a [`refresh`](DiscoveryClient::refresh) before
//! it is believed.

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
use self::{fetch::Known, model::api_version};
use crate::error::{ApiError, Refusal};

/// With more group versions missing on disk than this, everything is asked for anew: that is two requests on
/// today's servers.
const WORTH_ASKING_ONE_BY_ONE: usize = 3;

/// Asks the server what it serves, and remembers. A clone shares the memory.
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
    memory: RwLock<Memory>,
    /// Held while the server is asked, so that it is asked once however many want to know.
    asking: tokio::sync::Mutex<Known>,
}

#[derive(Default)]
struct Memory {
    snapshot: Option<Snapshot>,
    /// Counts invalidations: an answer that was asked for before one is not kept after it.
    epoch: u64,
    /// Counts snapshots, failed attempts to get one included.
    round: u64,
    /// How the last attempt failed, for those who were waiting for it.
    failed: Option<DiscoveryError>,
}

/// What is known, and how new it is.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) resources: Arc<ServerResources>,
    /// The attempt that brought it. A later one may know more.
    pub(crate) round: u64,
    /// It came from the server and not from disk.
    pub(crate) live: bool,
}

/// Why the server could not be asked what it serves. A clone is the same error: everybody who waited for the
/// answer gets it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("discovery failed: {0}")]
pub struct DiscoveryError(#[source] Arc<ApiError>);

impl Refusal for DiscoveryError {
    fn status(&self) -> Option<&kube::core::Status> {
        self.0.status()
    }
}

impl DiscoveryClient {
    /// A client that remembers in memory.
    pub fn new(client: Client) -> Self {
        Self::with(client, None)
    }

    /// A client that remembers on disk as well, with a memory of its own.
    #[must_use]
    pub fn disk_cache(&self, cache: DiskCache) -> Self {
        Self::with(self.shared.client.clone(), Some(cache))
    }

    fn with(client: Client, disk: Option<DiskCache>) -> Self {
        let shared =
            Shared { client, disk, memory: RwLock::default(), asking: tokio::sync::Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Everything that the server serves: from memory, else from disk, else from the server.
    pub async fn resources(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        Ok(self.snapshot().await?.resources)
    }

    /// Asks the server, whatever is remembered.
    pub async fn refresh(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        Ok(self.newer_than(self.round()).await?.resources)
    }

    /// Forgets everything, in memory and on disk: the next call asks the server.
    pub fn invalidate(&self) {
        let mut memory = self.shared.memory.write();
        memory.snapshot = None;
        memory.epoch += 1;
        if let Some(disk) = &self.shared.disk {
            disk.invalidate();
        }
    }

    /// The number of attempts to learn something so far.
    pub(crate) fn round(&self) -> u64 {
        self.shared.memory.read().round
    }

    /// What is known, or what is found out now. However many ask at the same time, the server is asked once,
    /// and if that fails, all of them hear of it.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, DiscoveryError> {
        let round = self.round();
        let known = || self.shared.memory.read().snapshot.clone();
        if let Some(snapshot) = known() {
            return Ok(snapshot);
        }
        let mut asking = self.shared.asking.lock().await;
        if let Some(snapshot) = known() {
            return Ok(snapshot);
        }
        if let Some(outcome) = self.shared.memory.read().after(round) {
            return outcome;
        }
        let epoch = self.shared.memory.read().epoch;
        match self.read_disk().await {
            Some(resources) => self.remember(epoch, false, Ok(resources)),
            None => self.ask(&mut asking).await,
        }
    }

    /// A snapshot of a later round than this one; likewise asked for once.
    pub(crate) async fn newer_than(&self, round: u64) -> Result<Snapshot, DiscoveryError> {
        let mut asking = self.shared.asking.lock().await;
        if let Some(outcome) = self.shared.memory.read().after(round) {
            return outcome;
        }
        self.ask(&mut asking).await
    }

    async fn ask(&self, known: &mut Known) -> Result<Snapshot, DiscoveryError> {
        let epoch = self.shared.memory.read().epoch;
        let resources = fetch::everything(&self.shared.client, known).await;
        let outcome = self.remember(epoch, true, resources);
        if let (Ok(snapshot), Some(disk)) = (&outcome, &self.shared.disk)
            && self.shared.memory.read().epoch == epoch
        {
            disk.store(&snapshot.resources);
        }
        outcome
    }

    fn remember(
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

    /// What the disk has, with the group versions that it lacks asked for one by one. `None` if it lacks so
    /// many that asking for everything is cheaper.
    async fn read_disk(&self) -> Option<ServerResources> {
        let disk = self.shared.disk.as_ref()?;
        let mut resources = ServerResources { groups: disk.groups()?, failures: Vec::new() };
        let mut missing = Vec::new();
        for (at, group) in resources.groups.iter_mut().enumerate() {
            for (below, version) in group.versions.iter_mut().enumerate() {
                match disk.resources(&group.name, &version.version) {
                    Some(found) => version.resources = found,
                    None => missing.push((at, below)),
                }
            }
        }
        if missing.len() > WORTH_ASKING_ONE_BY_ONE {
            return None;
        }
        for (at, below) in missing {
            let group = &mut resources.groups[at];
            let version = &mut group.versions[below];
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

impl Memory {
    /// What came after a round, be it an error.
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
