//! What the built-in controllers are built from.

use std::sync::Arc;

use kube::Client;
use kubewright::{
    Clock,
    cache::Caches,
    client::Clients,
    controller::EventSink,
    events::{EventBroadcaster, Recorder},
};

use crate::{events::Note, lifecycle::monitors::Monitors};

/// What the controllers of one cluster share. A clone is a handle to the same.
#[derive(Clone)]
pub struct Parts {
    caches: Caches,
    clients: Clients,
    monitors: Monitors,
    events: Arc<EventBroadcaster>,
    clock: Clock,
    certificate: Arc<str>,
}

impl Parts {
    /// Parts for the cluster that a client talks to. `certificate` is the authority of its API server, as PEM; empty
    /// for a server that nobody reaches by TLS.
    pub fn new(client: &Client, clock: &Clock, certificate: &str) -> Self {
        let clients = Clients::new(client.clone());
        Self {
            caches: Caches::new(client.clone()),
            monitors: Monitors::new(&clients),
            events: Arc::new(EventBroadcaster::builder(client.clone()).clock(clock.clone()).start()),
            clients,
            clock: clock.clone(),
            certificate: certificate.into(),
        }
    }

    /// The caches that all controllers read from; the manager that runs them has to be given the same.
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

    /// What time it is.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The authority of the API server.
    pub fn certificate(&self) -> &Arc<str> {
        &self.certificate
    }

    /// Who records the events of a controller; `component` is what `kubectl describe` shows as their source.
    pub fn recorder(&self, component: &str) -> Recorder {
        self.events.recorder(component)
    }

    /// The same for controllers that record through their context.
    pub fn sink(&self, component: &str) -> Arc<dyn EventSink> {
        Arc::new(self.recorder(component))
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Records a note about an object.
pub(crate) fn tell(recorder: &Recorder, about: &(impl kubewright::events::Regarding + ?Sized), note: &Note) {
    recorder.event(about).record(note.event_type, note.reason.as_str(), note.message.as_str());
}
