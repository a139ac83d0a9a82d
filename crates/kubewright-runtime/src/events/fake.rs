//! Recorder for tests.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use parking_lot::Mutex;

use super::recorder::{Recorder, Sink};

/// Collects events instead of writing them: each one, in order, neither aggregated nor rate-limited.
///
/// ```
/// use kubewright::{ObjectKey, events::{FakeRecorder, Reference}};
///
/// let fake = FakeRecorder::new();
/// let recorder = fake.recorder("sample-controller");
/// let foo = Reference::new("samplecontroller.k8s.io/v1alpha1", "Foo", &ObjectKey::namespaced("default", "example-foo"));
/// recorder.normal(&foo, "Synced", "Foo synced successfully");
///
/// assert_eq!(fake.lines(), ["Normal Synced Foo synced successfully"]);
/// assert_eq!(fake.take()[0].involved_object.name.as_deref(), Some("example-foo"));
/// assert!(fake.take().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct FakeRecorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl FakeRecorder {
    /// Creates a collection without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a recorder that adds to this collection.
    pub fn recorder(&self, component: &str) -> Recorder {
        Recorder::new(component, Sink::Memory(Arc::clone(&self.events)))
    }

    /// Removes and returns the recorded events.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock())
    }

    /// Returns the recorded events as Go's `FakeRecorder` prints them: type, reason, message.
    pub fn lines(&self) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let line = |event: &Event| {
            format!("{} {} {}", text(&event.type_), text(&event.reason), text(&event.message))
        };
        self.events.lock().iter().map(line).collect()
    }
}
