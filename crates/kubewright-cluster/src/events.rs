//! What a controller says about an object: the reason and text of an event, before anybody has recorded it.

/// An event in words. Plans return notes; the controllers record them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether something is wrong.
    pub warning: bool,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Note {
    /// An event that reports a step.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { warning: false, reason: reason.into(), message: message.into() }
    }

    /// An event that reports a problem.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { warning: true, reason: reason.into(), message: message.into() }
    }
}
