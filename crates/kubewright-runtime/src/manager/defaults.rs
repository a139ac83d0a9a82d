//! What a manager brings along: an election by a Lease, events in the API, probes and metrics over HTTP.

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
    Candidacy, Cluster, Prepare, RunContext, Runnable, Stage, Tenure,
    election::{LeaderElection, Leadership},
    serve::{Checks, Endpoint, Metrics, Server},
};
use crate::{
    Error,
    controller::EventSink,
    events::{EventBroadcaster, Recorder, Reference},
};

/// How long the last events may take to reach the server when all else has stopped.
const LAST_EVENTS: Duration = Duration::from_secs(5);

impl Candidacy for LeaderElection {
    fn lead(self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn Tenure>, Error>> {
        Box::pin(async move { Ok(Box::new(self.acquire().await) as Box<dyn Tenure>) })
    }
}

impl Tenure for Leadership {
    fn lost(&mut self) -> BoxFuture<'_, ()> {
        let term = self.term();
        Box::pin(async move { term.ended().await })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin((*self).release())
    }

    fn abandon(self: Box<Self>) {
        (*self).abandon();
    }
}

impl EventSink for Recorder {
    fn record(&self, regarding: &ObjectReference, warning: bool, reason: &str, message: &str) {
        let regarding = Reference::from(regarding.clone());
        if warning {
            self.warning(&regarding, reason, message);
        } else {
            self.normal(&regarding, reason, message);
        }
    }
}

/// Keeps the events flowing until everything that makes them has stopped.
pub(super) struct Events(pub(super) EventBroadcaster);

impl Runnable for Events {
    fn name(&self) -> String {
        "events".to_owned()
    }

    fn stage(&self) -> Stage {
        Stage::Serving
    }

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            self.0.shutdown(LAST_EVENTS).await;
            Ok(())
        })
    }
}

/// Where a manager serves unless told otherwise: controller-runtime's address for metrics.
const ADDRESS: &str = ":8080";
/// What else may say where, for those who run a program that they did not write.
const VARIABLE: &str = "KUBEWRIGHT_SERVE";

/// Where a manager serves that was not told: on the usual address if the process is its own, otherwise nowhere.
pub(super) fn default_endpoint(owns_process: bool) -> Endpoint {
    let address = || std::env::var(VARIABLE).unwrap_or_else(|_| ADDRESS.to_owned());
    Endpoint::at(if owns_process { address() } else { "0".to_owned() })
}

/// What is served: probes and metrics on one address, or each on its own.
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

    /// Makes readiness depend on the caches of these clusters: it begins when what this returns is started.
    pub(super) fn ready_when_filled(&self, clusters: Vec<Cluster>) -> Filled {
        let started = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&started);
        self.readyz.add("caches", move || {
            let missing: Vec<_> = clusters.iter().flat_map(|cluster| cluster.caches().unsynced()).collect();
            let started = seen.load(Ordering::Acquire);
            async move {
                match (started, missing.is_empty()) {
                    (true, true) => Ok(()),
                    (true, false) => Err(format!("not filled yet: {}", missing.join(", ")).into()),
                    (false, _) => Err("not started yet, or stopping".into()),
                }
            }
        });
        Filled(started)
    }
}

/// Runs while the caches do, and says so.
pub(super) struct Filled(Arc<AtomicBool>);

impl Runnable for Filled {
    fn name(&self) -> String {
        "readiness".to_owned()
    }

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
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

    fn prepare<'a>(&'a mut self, cx: &'a RunContext) -> Prepare<'a> {
        Box::pin(async move {
            let client = cx.client().client();
            let measured = Metrics::global().clone();
            let probes = self.probes.server(client).healthz(self.healthz.clone()).readyz(self.readyz.clone());
            let servers = match &self.metrics {
                None => vec![probes.metrics(measured)],
                Some(elsewhere) => vec![probes, elsewhere.server(client).metrics(measured)],
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

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
        Box::pin(async move {
            join_all(self.servers.into_iter().map(|server| server.run(cx.stop().clone()))).await;
            Ok(())
        })
    }
}
