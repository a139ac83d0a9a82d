//! Where a controller's events go.

use k8s_openapi::api::core::v1::ObjectReference;

use crate::events::EventType;

/// Takes events about objects; what shows up in `kubectl describe`.
///
/// It must not block: a reconciler calls it in passing. The manager's recorder implements it; tests may collect them.
pub trait EventSink: Send + Sync + 'static {
    /// Records one event: its type, a reason in one word, and a human-readable message.
    fn record(&self, regarding: &ObjectReference, event_type: EventType, reason: &str, message: &str);
}
