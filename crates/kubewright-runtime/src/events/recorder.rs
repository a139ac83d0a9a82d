//! Records events.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{
    Reference, Regarding,
    metrics::{EventMetrics, Outcome},
};
use kubewright_core::{Clock, Random};

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// Information about normal operation.
    Normal,
    /// Something may be wrong.
    Warning,
}

impl EventType {
    /// The type as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Records the events of one component without blocking. Clones record for the same component.
///
/// ```
/// # use kubewright::k8s_openapi::api::core::v1::{Node, Pod};
/// # use kubewright::kube::api::ObjectMeta;
/// use kubewright::events::FakeRecorder;
///
/// # let (mut pod, mut node) = (Pod::default(), Node::default());
/// # pod.metadata.name = Some("web".into());
/// # node.metadata.name = Some("node-1".into());
/// # let fake = FakeRecorder::new();
/// # let recorder = fake.recorder("scheduler");
/// recorder.normal(&pod, "Pulled", "the image was there already");
/// recorder.event(&pod).related(&node).action("Binding").normal("Scheduled", "assigned web to node-1");
/// # assert_eq!(fake.take()[1].related.as_ref().unwrap().kind.as_deref(), Some("Node"));
/// ```
#[derive(Clone)]
pub struct Recorder {
    component: Arc<str>,
    host: Option<Arc<str>>,
    sink: Sink,
}

/// Destination of recorded events.
#[derive(Clone)]
pub(super) enum Sink {
    Buffer { sender: mpsc::Sender<Event>, clock: Clock, metrics: EventMetrics },
    Memory(Arc<Mutex<Vec<Event>>>),
}

impl Recorder {
    pub(super) fn new(component: &str, sink: Sink) -> Self {
        Self { component: component.into(), host: None, sink }
    }

    /// Sets the host of the component, as node agents do.
    #[must_use]
    pub fn on_host(mut self, host: &str) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Records a normal event.
    pub fn normal(
        &self,
        object: &(impl Regarding + ?Sized),
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.event(object).normal(reason, message);
    }

    /// Records a warning.
    pub fn warning(
        &self,
        object: &(impl Regarding + ?Sized),
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.event(object).warning(reason, message);
    }

    /// Creates a builder for an event with more fields.
    pub fn event(&self, object: &(impl Regarding + ?Sized)) -> EventBuilder<'_> {
        EventBuilder {
            recorder: self,
            regarding: object.reference(),
            related: None,
            action: None,
            annotations: BTreeMap::new(),
        }
    }

    fn send(&self, event: Event) {
        let (sender, metrics) = match &self.sink {
            Sink::Memory(events) => return events.lock().push(event),
            Sink::Buffer { sender, metrics, .. } => (sender, metrics),
        };
        let object = Reference(event.involved_object.clone());
        if event.involved_object.name.as_deref().unwrap_or_default().is_empty() {
            tracing::error!(%object, reason = event.reason, "an event about an object without a name is not recorded");
            return metrics.count(&self.component, Outcome::Refused);
        }
        if let Err(error) = sender.try_send(event) {
            tracing::warn!(%object, component = &*self.component, %error, "an event was dropped");
            metrics.count(&self.component, Outcome::Dropped);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

/// Builder of an event; see [`Recorder::event`].
#[derive(Debug)]
#[must_use = "nothing is recorded before normal(), warning() or record()"]
pub struct EventBuilder<'a> {
    recorder: &'a Recorder,
    regarding: Reference,
    related: Option<Reference>,
    action: Option<String>,
    annotations: BTreeMap<String, String>,
}

impl EventBuilder<'_> {
    /// Sets the related object.
    pub fn related(mut self, object: &(impl Regarding + ?Sized)) -> Self {
        self.related = Some(object.reference());
        self
    }

    /// Sets the action as a machine-readable word: `Binding`, `Scaling`.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Adds an annotation to the event.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Records a normal event.
    pub fn normal(self, reason: impl Into<String>, message: impl Into<String>) {
        self.record(EventType::Normal, reason, message);
    }

    /// Records a warning.
    pub fn warning(self, reason: impl Into<String>, message: impl Into<String>) {
        self.record(EventType::Warning, reason, message);
    }

    /// Records the event.
    pub fn record(self, event_type: EventType, reason: impl Into<String>, message: impl Into<String>) {
        let recorder = self.recorder;
        let time = match &recorder.sink {
            Sink::Buffer { clock, .. } => Some(Time(clock.now())),
            Sink::Memory(_) => None,
        };
        let host = recorder.host.as_deref().map(str::to_owned);
        // Events about cluster-scoped objects are in the namespace "default", as in client-go.
        let namespace = self.regarding.0.namespace.clone().filter(|namespace| !namespace.is_empty());
        recorder.send(Event {
            metadata: ObjectMeta {
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                annotations: (!self.annotations.is_empty()).then_some(self.annotations),
                ..ObjectMeta::default()
            },
            involved_object: self.regarding.0,
            related: self.related.map(|related| related.0),
            action: self.action,
            type_: Some(event_type.to_string()),
            reason: Some(reason.into()),
            message: Some(message.into()),
            count: Some(1),
            first_timestamp: time.clone(),
            last_timestamp: time,
            source: Some(EventSource {
                component: Some(recorder.component.as_ref().to_owned()),
                host: host.clone(),
            }),
            reporting_component: Some(recorder.component.as_ref().to_owned()),
            reporting_instance: host,
            ..Event::default()
        });
    }
}

/// `web.17f0…`: the name of the object and a timestamp, as client-go names events. A UUID if that is too long
/// or no DNS name.
pub(super) fn event_name(object: &str, nanos: i128, random: &Random) -> String {
    let name = format!("{object}.{nanos:x}");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if name.len() <= 253 && !object.is_empty() && object.chars().all(allowed) { name } else { random.uuid() }
}
