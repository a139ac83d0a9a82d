//! Events that controllers plan to record.

use kubewright::events::EventType;

/// Event that a plan asks to record. Plans return them as values; the controllers record them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The type of the event.
    pub event_type: EventType,
    /// The reason, in one machine-readable word.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
}

impl Note {
    /// Creates a normal event.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Normal, reason: reason.into(), message: message.into() }
    }

    /// Creates a warning.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Warning, reason: reason.into(), message: message.into() }
    }
}
