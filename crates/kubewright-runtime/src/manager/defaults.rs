//! Defaults of a manager: election by a Lease, events in the API, probes and metrics over HTTP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::ObjectReference;

use super::{
    ClusterHandle, HeldLease, LeaderElector, RunContext, Runnable, RunnableFuture, Stage,
    election::{LeaderElection, Leadership},
    serve::{Checks, Endpoint, Metrics, Server},
};
use crate::{
    Error,
    controller::EventSink,
    events::{EventBroadcaster, EventType, Recorder, Reference},
};

/// Time-out for writing the last events when everything else has stopped.
const LAST_EVENTS: Duration = Duration::from_secs(5);

impl LeaderElector for LeaderElection {
    fn acquire(self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn HeldLease>, Error>> {
        Box::pin(async move { Ok(Box::new(LeaderElection::acquire(&self).await) as Box<dyn HeldLease>) })
    }
}

impl HeldLease for Leadership {
    fn lost(&mut self) -> BoxFuture<'_, ()> {
        let handle = self.handle();
        Box::pin(async move { handle.ended().await })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin((*self).release())
    }

    fn abandon(self: Box<Self>) {
        (*self).abandon();
    }
}

impl EventSink for Recorder {
    fn record(&self, regarding: &ObjectReference, event_type: EventType, reason: &str, message: &str) {
        self.event(&Reference::from(regarding.clone())).record(event_type, reason, message);
    }
}

/// Stops the event broadcaster after everything that records events.
pub(super) struct Events(pub(super) EventBroadcaster);

impl Runnable for Events {
    fn name(&self) -> String {
        "events".to_owned()
    }

    fn stage(&self) -> Stage {
        Stage::Serving
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            self.0.shutdown(LAST_EVENTS).await;
            Ok(())
        })
    }
}

/// Default address of probes and metrics; controller-runtime's address for metrics.
const ADDRESS: &str = ":8080";
/// Environment variable that overrides the default address.
const VARIABLE: &str = "KUBEWRIGHT_SERVE";

/// The default endpoint: the default address if the manager owns the process, otherwise none.
pub(super) fn default_endpoint(owns_process: bool) -> Endpoint {
    let address = || std::env::var(VARIABLE).unwrap_or_else(|_| ADDRESS.to_owned());
    Endpoint::new(if owns_process { address() } else { "0".to_owned() })
}

/// HTTP servers for probes and metrics, on one address or on one each.
pub(super) struct Serving {
    probes: Endpoint,
    metrics: Option<Endpoint>,
    healthz: Checks,
    readyz: Checks,
    servers: Vec<Server>,
}

impl Serving {
    pub(super) fn new(probes: Endpoint, metrics: Option<Endpoint>, healthz: Checks, readyz: Checks) -> Self {
        Self { probes, metrics, healthz, readyz, servers: Vec::new() }
    }

    /// Adds the readiness check of these clusters' caches; it can pass while the returned runnable runs.
    pub(super) fn ready_when_synced(&self, clusters: Vec<ClusterHandle>) -> CachesReadiness {
        let started = Arc::new(AtomicBool::new(false));
        let observed = Arc::clone(&started);
        self.readyz.add("caches", move || {
            let missing: Vec<_> = clusters.iter().flat_map(|cluster| cluster.caches().unsynced()).collect();
            let started = observed.load(Ordering::Acquire);
            async move {
                match (started, missing.is_empty()) {
                    (true, true) => Ok(()),
                    (true, false) => Err(format!("not filled yet: {}", missing.join(", ")).into()),
                    (false, _) => Err("not started yet, or stopping".into()),
                }
            }
        });
        CachesReadiness(started)
    }
}

/// Runnable that marks the stage of the caches as running.
pub(super) struct CachesReadiness(Arc<AtomicBool>);

impl Runnable for CachesReadiness {
    fn name(&self) -> String {
        "readiness".to_owned()
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            self.0.store(true, Ordering::Release);
            cx.stop().cancelled().await;
            self.0.store(false, Ordering::Release);
            Ok(())
        })
    }
}

impl Runnable for Serving {
    fn name(&self) -> String {
        "probes and metrics".to_owned()
    }

    fn stage(&self) -> Stage {
        Stage::Serving
    }

    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> RunnableFuture<'a> {
        Box::pin(async move {
            let client = cx.client().client();
            let metrics = Metrics::global().clone();
            let probes = self.probes.server(client).healthz(self.healthz.clone()).readyz(self.readyz.clone());
            let servers = match &self.metrics {
                None => vec![probes.metrics(metrics)],
                Some(endpoint) => vec![probes, endpoint.server(client).metrics(metrics)],
            };
            for server in servers {
                self.servers.push(server.listen().await?);
            }
            let addresses: Vec<_> = self.servers.iter().filter_map(Server::address).collect();
            if !addresses.is_empty() {
                tracing::info!(?addresses, "serving probes and metrics");
            }
            cx.manager().inner.addresses.send_replace(addresses);
            Ok(())
        })
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            join_all(self.servers.into_iter().map(|server| server.run(cx.stop().clone()))).await;
            Ok(())
        })
    }
}
