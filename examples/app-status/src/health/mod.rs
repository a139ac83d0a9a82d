//! How an object is, by what its status says.
//!
//! Kinds that come with Kubernetes are judged by rules of their own, in `builtin.rs`: a Deployment is ready when its new
//! replicas are available, a Job when it is complete. All others are judged in `custom.rs` by what most of them have in
//! common: conditions, a phase, replicas. The rules are functions of the object and nothing else.

mod builtin;
mod custom;

use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::Value;

/// How an object is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum State {
    /// It does what it should.
    Ready,
    /// It has done what it should, and ended.
    Done,
    /// It is on its way.
    Progressing,
    /// It says that it is not ready.
    NotReady,
    /// It was asked to wait.
    Suspended,
    /// It will not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It says nothing that can be understood.
    Unknown,
}

impl State {
    /// Whether there is nothing to wait for.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Ready | Self::Done | Self::Suspended)
    }

    /// The word.
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

/// How an object is, and what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// In one word.
    pub state: State,
    /// How many of how many parts are ready, where it has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// In a sentence; empty if there is nothing to add.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Health {
    /// A state and a sentence.
    pub fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, ready: None, message: message.into() }
    }

    fn parts(mut self, ready: i64, of: i64) -> Self {
        self.ready = Some(format!("{ready}/{of}"));
        self
    }

    /// How this object is.
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
        // What the status says is of an older spec; who keeps count of that is at work on the new one.
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

/// The inside of an object, read by paths.
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

    /// The condition of this type.
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

    /// Its message, or its reason if it has none.
    fn words(self) -> String {
        let message = self.0.text("/message").filter(|message| !message.is_empty());
        message.unwrap_or_else(|| self.reason()).to_owned()
    }
}

#[cfg(test)]
mod tests;
