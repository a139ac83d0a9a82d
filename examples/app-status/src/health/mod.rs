//! Health of objects, derived from their status.
//!
//! Built-in kinds have rules of their own in `builtin.rs`: a Deployment is ready when its new replicas are
//! available, a Job when it is complete. Others use the common conventions in `custom.rs`: conditions, a
//! phase, replicas. The rules are pure functions of the object.

mod builtin;
mod custom;

use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::Value;

/// State of an object in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum State {
    /// Works as specified.
    Ready,
    /// Completed.
    Done,
    /// Not there yet.
    Progressing,
    /// Reports that it is not ready.
    NotReady,
    /// Suspended.
    Suspended,
    /// Needs intervention.
    Failed,
    /// Being deleted.
    Terminating,
    /// Without a known status.
    Unknown,
}

impl State {
    /// Whether no further change is expected.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Ready | Self::Done | Self::Suspended)
    }

    /// The state as text.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Done => "Done",
            Self::Progressing => "Progressing",
            Self::NotReady => "NotReady",
            Self::Suspended => "Suspended",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        }
    }
}

/// Health of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The state.
    pub state: State,
    /// The numbers of ready parts and of all parts, if it has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// A message; empty if there is nothing to add.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Health {
    /// Creates a health from state and message.
    pub fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, ready: None, message: message.into() }
    }

    fn parts(mut self, ready: i64, of: i64) -> Self {
        self.ready = Some(format!("{ready}/{of}"));
        self
    }

    /// Derives the health of an object.
    pub fn of(api_version: &str, kind: &str, object: &DynamicObject) -> Self {
        let fields = Fields(&object.data);
        let mut health = builtin::health(api_version, kind, fields).unwrap_or_else(|| custom::health(fields));
        if object.metadata.deletion_timestamp.is_some() {
            let waits_for = object.metadata.finalizers.clone().unwrap_or_default().join(", ");
            health.state = State::Terminating;
            health.message =
                if waits_for.is_empty() { String::new() } else { format!("waits for {waits_for}") };
            return health;
        }
        // The status is that of an older generation: its controller has not observed the new one yet.
        let observed = fields.number("/status/observedGeneration");
        if health.state == State::Ready
            && observed.zip(object.metadata.generation).is_some_and(|(seen, now)| seen < now)
        {
            health.state = State::Progressing;
            "the change has not been seen yet".clone_into(&mut health.message);
        }
        health
    }
}

/// Access to the fields of an object by path.
#[derive(Clone, Copy)]
struct Fields<'o>(&'o Value);

impl<'o> Fields<'o> {
    fn at(self, path: &str) -> Option<&'o Value> {
        self.0.pointer(path).filter(|value| !value.is_null())
    }

    fn number(self, path: &str) -> Option<i64> {
        self.at(path)?.as_i64()
    }

    fn text(self, path: &str) -> Option<&'o str> {
        self.at(path)?.as_str()
    }

    fn is(self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool) == Some(true)
    }

    fn list(self, path: &str) -> impl Iterator<Item = Fields<'o>> {
        self.at(path).and_then(Value::as_array).into_iter().flatten().map(Fields)
    }

    /// Returns the condition of this type.
    fn condition(self, wanted: &str) -> Option<Condition<'o>> {
        self.list("/status/conditions").find(|held| held.text("/type") == Some(wanted)).map(Condition)
    }
}

#[derive(Clone, Copy)]
struct Condition<'o>(Fields<'o>);

impl<'o> Condition<'o> {
    fn is(self, status: &str) -> bool {
        self.0.text("/status") == Some(status)
    }

    fn reason(self) -> &'o str {
        self.0.text("/reason").unwrap_or_default()
    }

    /// The message, or the reason if it is empty.
    fn words(self) -> String {
        let message = self.0.text("/message").filter(|message| !message.is_empty());
        message.unwrap_or_else(|| self.reason()).to_owned()
    }
}

#[cfg(test)]
mod tests;
