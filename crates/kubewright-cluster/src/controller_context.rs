//! What the built-in controllers of one cluster share, as kube-controller-manager's `ControllerContext`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kubewright::{
    Clock,
    cache::{CacheOptions, Caches, Form},
    client::Clients,
    controller::EventSink,
    events::{EventBroadcaster, Recorder},
};

use crate::{events::Note, lifecycle::monitors::Monitors};

/// The caches, clients, clock and event recorders of the controllers of one cluster. Clones share them.
///
/// Each module of controllers has a `register` function that takes a [`ManagerBuilder`](kubewright::manager::ManagerBuilder)
/// and this context, and adds its controllers to the manager:
///
/// ```no_run
/// # async fn example(client: kube::Client) -> kubewright::Result<()> {
/// use kubewright::{Clock, manager::Manager};
/// use kubewright_cluster::{ControllerContext, nodes::{self, NodeTemplate}, workloads};
///
/// let cx = ControllerContext::new(&client, &Clock::system());
/// let manager = Manager::builder("kube-controller-manager").caches(cx.caches());
/// let manager = workloads::register(manager, &cx);
/// nodes::register(manager, &cx, 3, NodeTemplate::default()).run().await
/// # }
/// ```
#[derive(Clone)]
pub struct ControllerContext {
    caches: Caches,
    clients: Clients,
    monitors: Monitors,
    events: Arc<EventBroadcaster>,
    sinks: Option<Arc<SinkFn>>,
    clock: Clock,
    certificate: Arc<str>,
}

type SinkFn = dyn Fn(&str) -> Arc<dyn EventSink> + Send + Sync;

impl ControllerContext {
    /// Context for the cluster that a client talks to.
    pub fn new(client: &Client, clock: &Clock) -> Self {
        let clients = Clients::new(client.clone());
        let caches = Caches::new(client.clone());
        // Every change of these is looked at by a dozen handlers and indexes, and every Pod by each reconcile of its owner:
        // decoding them once is worth the memory. Nothing has asked for the caches yet, so they can still be configured.
        let _ = caches.configure(CacheOptions::<Pod>::new().form(Form::Decoded));
        let _ = caches.configure(CacheOptions::<Node>::new().form(Form::Decoded));
        Self {
            caches,
            monitors: Monitors::new(&clients),
            events: Arc::new(EventBroadcaster::builder(client.clone()).clock(clock.clone()).start()),
            sinks: None,
            clients,
            clock: clock.clone(),
            certificate: "".into(),
        }
    }

    /// Publishes this certificate authority of the API server, as PEM; none by default.
    #[must_use]
    pub fn with_certificate(mut self, certificate: &str) -> Self {
        self.certificate = certificate.into();
        self
    }

    /// Sends the events of workload and node controllers to these sinks, by component, instead of the API server.
    #[must_use]
    pub fn with_event_sinks(
        mut self,
        sinks: impl Fn(&str) -> Arc<dyn EventSink> + Send + Sync + 'static,
    ) -> Self {
        self.sinks = Some(Arc::new(sinks));
        self
    }

    /// The caches that all controllers read from. The manager that runs them must have the same.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The clients, for what is not cached.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Metadata of every kind that the server serves.
    pub fn monitors(&self) -> &Monitors {
        &self.monitors
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The certificate authority of the API server.
    pub fn certificate(&self) -> &Arc<str> {
        &self.certificate
    }

    /// The event recorder of a controller; `component` is what `kubectl describe` shows as the source.
    pub fn recorder(&self, component: &str) -> Recorder {
        self.events.recorder(component)
    }

    /// The same as a sink, for controllers that record about [references](k8s_openapi::api::core::v1::ObjectReference).
    pub fn event_sink(&self, component: &str) -> Arc<dyn EventSink> {
        match &self.sinks {
            Some(sinks) => sinks(component),
            None => Arc::new(self.recorder(component)),
        }
    }
}

impl std::fmt::Debug for ControllerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerContext").finish_non_exhaustive()
    }
}

/// Records a planned event about an object.
pub(crate) fn record(
    recorder: &Recorder,
    regarding: &(impl kubewright::events::Regarding + ?Sized),
    note: &Note,
) {
    recorder.event(regarding).record(note.event_type, note.reason.as_str(), note.message.as_str());
}
