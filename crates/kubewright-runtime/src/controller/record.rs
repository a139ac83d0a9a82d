//! Where a controller's events go.

use k8s_openapi::api::core::v1::ObjectReference;

/// Takes events about objects; what shows up in `kubectl describe`.
///
/// It must not block: a reconciler calls it in passing. The manager's recorder implements it; tests may collect them.
pub trait EventSink: Send + Sync + 'static {
    /// Takes one event: `warning` or normal, a reason in one word, and a message for people.
    fn record(&self, regarding: &ObjectReference, warning: bool, reason: &str, message: &str);
}
