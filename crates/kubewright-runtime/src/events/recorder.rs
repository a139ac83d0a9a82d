//! Where events are handed in.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{
    Reference, Regarding,
    metrics::{EventMetrics, Fate},
};
use kubewright_core::{Clock, Random};

/// Takes events of one component and returns at once. Clones are the same component.
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
/// recorder.about(&pod).related(&node).action("Binding").normal("Scheduled", "assigned web to node-1");
/// # assert_eq!(fake.take()[1].related.as_ref().unwrap().kind.as_deref(), Some("Node"));
/// ```
#[derive(Clone)]
pub struct Recorder {
    component: Arc<str>,
    host: Option<Arc<str>>,
    outlet: Outlet,
}

/// Where events go.
#[derive(Clone)]
pub(super) enum Outlet {
    Buffer { sender: mpsc::Sender<Event>, clock: Clock, metrics: EventMetrics },
    Memory(Arc<Mutex<Vec<Event>>>),
}

impl Recorder {
    pub(super) fn new(component: &str, outlet: Outlet) -> Self {
        Self { component: component.into(), host: None, outlet }
    }

    /// The same component on a host, as a node's agent names itself.
    #[must_use]
    pub fn on_host(mut self, host: &str) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Something went as it should.
    pub fn normal(
        &self,
        object: &(impl Regarding + ?Sized),
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.about(object).normal(reason, message);
    }

    /// Something went wrong.
    pub fn warning(
        &self,
        object: &(impl Regarding + ?Sized),
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.about(object).warning(reason, message);
    }

    /// Begins an event with more to say.
    pub fn about(&self, object: &(impl Regarding + ?Sized)) -> About<'_> {
        About {
            recorder: self,
            regarding: object.reference(),
            related: None,
            action: None,
            annotations: BTreeMap::new(),
        }
    }

    fn hand_in(&self, event: Event) {
        let (sender, metrics) = match &self.outlet {
            Outlet::Memory(events) => return events.lock().push(event),
            Outlet::Buffer { sender, metrics, .. } => (sender, metrics),
        };
        let object = Reference(event.involved_object.clone());
        if event.involved_object.name.as_deref().unwrap_or_default().is_empty() {
            tracing::error!(%object, reason = event.reason, "an event about an object without a name is not recorded");
            return metrics.count(&self.component, Fate::Refused);
        }
        if let Err(error) = sender.try_send(event) {
            tracing::warn!(%object, component = &*self.component, %error, "an event was dropped");
            metrics.count(&self.component, Fate::Dropped);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

/// An event that is about to be recorded; see [`Recorder::about`].
#[derive(Debug)]
#[must_use = "nothing is recorded before normal() or warning()"]
pub struct About<'a> {
    recorder: &'a Recorder,
    regarding: Reference,
    related: Option<Reference>,
    action: Option<String>,
    annotations: BTreeMap<String, String>,
}

impl About<'_> {
    /// Another object that has to do with it.
    pub fn related(mut self, object: &(impl Regarding + ?Sized)) -> Self {
        self.related = Some(object.reference());
        self
    }

    /// What was done, as a word for machines: `Binding`, `Scaling`.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// An annotation of the event.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Something went as it should.
    pub fn normal(self, reason: impl Into<String>, message: impl Into<String>) {
        self.record("Normal", reason.into(), message.into());
    }

    /// Something went wrong.
    pub fn warning(self, reason: impl Into<String>, message: impl Into<String>) {
        self.record("Warning", reason.into(), message.into());
    }

    fn record(self, kind: &str, reason: String, message: String) {
        let recorder = self.recorder;
        let time = match &recorder.outlet {
            Outlet::Buffer { clock, .. } => Some(Time(clock.now())),
            Outlet::Memory(_) => None,
        };
        let host = recorder.host.as_deref().map(str::to_owned);
        // Events about what lives in no namespace are kept in "default", as everybody expects.
        let namespace = self.regarding.0.namespace.clone().filter(|namespace| !namespace.is_empty());
        recorder.hand_in(Event {
            metadata: ObjectMeta {
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                annotations: (!self.annotations.is_empty()).then_some(self.annotations),
                ..ObjectMeta::default()
            },
            involved_object: self.regarding.0,
            related: self.related.map(|related| related.0),
            action: self.action,
            type_: Some(kind.to_owned()),
            reason: Some(reason),
            message: Some(message),
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

/// `web.17f0…`: the object and a moment, as client-go names events. Names that would be too long, or belong to objects
/// whose names are no DNS names, become a UUID.
pub(super) fn event_name(object: &str, nanos: i128, random: &Random) -> String {
    let name = format!("{object}.{nanos:x}");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if name.len() <= 253 && !object.is_empty() && object.chars().all(allowed) { name } else { random.uuid() }
}
