//! What a manager brings along: an election by a Lease, events in the API, probes and metrics over HTTP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{
    Candidacy, Prepare, RunContext, Runnable, Stage, Tenure,
    election::{LeaderElection, Leadership},
    serve::{Checks, Metrics, Server},
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

/// `/healthz`, `/readyz` and `/metrics` on one address.
pub(super) struct Serving {
    address: String,
    checks: Checks,
    server: Option<Server>,
}

impl Serving {
    /// The server, and what tells it that the caches are filled.
    pub(super) fn new(address: String, checks: Checks) -> (Self, Filled) {
        let filled = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&filled);
        checks.add("caches", move || {
            let filled = seen.load(Ordering::Acquire);
            async move { if filled { Ok(()) } else { Err("the caches are not filled yet".into()) } }
        });
        (Self { address, checks, server: None }, Filled(filled))
    }
}

/// Starts when the caches are filled, and says so.
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
        format!("probes and metrics on {}", self.address)
    }

    fn stage(&self) -> Stage {
        Stage::Serving
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> Prepare<'a> {
        Box::pin(async move {
            let server = Server::builder(self.address.clone())
                .healthz(Checks::new())
                .readyz(self.checks.clone())
                .metrics(Metrics::new())
                .listen()
                .await?;
            tracing::info!(address = ?server.address(), "serving probes and metrics");
            self.server = Some(server);
            Ok(())
        })
    }

    fn run(self: Box<Self>, cx: RunContext) -> Prepare<'static> {
        Box::pin(async move {
            if let Some(server) = self.server {
                server.run(cx.stop().clone()).await;
            }
            Ok(())
        })
    }
}
