//! The changes of a kind, event by event.

use std::{collections::VecDeque, fmt, sync::Arc};

use http_body_util::BodyExt as _;
use kube::{Resource, client::Body, core::Status};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    fault::Fault,
    object::Lazy,
    request::{Failure, ListWatchError, Target, refused},
    wire::{
        codec::Codec,
        scan::{Progress, Scanner},
        split::LineSplitter,
    },
};
use crate::ObjectKey;

/// One event of a watch.
#[non_exhaustive]
pub enum WatchEvent<K> {
    /// An object appeared, or came to match the selectors.
    Added(Lazy<K>),
    /// An object changed.
    Modified(Lazy<K>),
    /// An object is gone, or no longer matches the selectors. This is its last state.
    Deleted(Lazy<K>),
    /// Nothing happened up to this version.
    Bookmark {
        /// The version that the watch has come to.
        resource_version: String,
        /// The objects that were there when the watch began have all been sent.
        initial_events_end: bool,
    },
    /// An object was passed over because no cache can hold it; the watch has come to this version.
    PassedOver {
        /// The version of the object, if it has one.
        resource_version: Option<String>,
    },
}

impl<K> WatchEvent<K> {
    /// The object that the event is about, if it is about one.
    pub fn object(&self) -> Option<&Lazy<K>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::PassedOver { .. } => None,
        }
    }

    /// The type of the event, as the server writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added(_) => "ADDED",
            Self::Modified(_) => "MODIFIED",
            Self::Deleted(_) => "DELETED",
            Self::Bookmark { .. } => "BOOKMARK",
            Self::PassedOver { .. } => "PASSED OVER",
        }
    }

    /// The version that the watch has come to with this event.
    pub fn resource_version(&self) -> Option<&str> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                Some(object.resource_version()).filter(|version| !version.is_empty())
            }
            Self::Bookmark { resource_version, .. } => Some(resource_version),
            Self::PassedOver { resource_version } => resource_version.as_deref(),
        }
    }
}

// By hand, because deriving would ask the same of `K`.
impl<K> fmt::Debug for WatchEvent<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bookmark { resource_version, .. } => write!(f, "BOOKMARK {resource_version}"),
            other => match other.object() {
                Some(object) => write!(f, "{} {object:?}", other.name()),
                None => f.write_str(other.name()),
            },
        }
    }
}

/// A watch that is under way. It ends when the server ends it; dropping it ends it too.
pub struct WatchStream<K> {
    target: Target,
    codec: Arc<Codec<K>>,
    body: Body,
    lines: LineSplitter,
    scratch: Vec<u8>,
    ready: VecDeque<Result<WatchEvent<K>, ListWatchError>>,
    ended: bool,
}

impl<K: Resource + DeserializeOwned> WatchStream<K> {
    pub(crate) fn new(target: Target, codec: Arc<Codec<K>>, body: Body) -> Self {
        Self {
            target,
            codec,
            body,
            lines: LineSplitter::default(),
            scratch: Vec::new(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// The next event; None when the server has ended the watch in good order.
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, ListWatchError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !self.fill(&|_| None).await {
                return None;
            }
        }
    }

    /// The next events, at least one; None when the watch has ended.
    pub(crate) async fn next_batch(
        &mut self,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync),
    ) -> Option<VecDeque<Result<WatchEvent<K>, ListWatchError>>> {
        while self.ready.is_empty() {
            if !self.fill(known).await {
                return None;
            }
        }
        Some(std::mem::take(&mut self.ready))
    }

    /// Gives back events that were taken and not looked at.
    pub(crate) fn put_back(&mut self, events: VecDeque<Result<WatchEvent<K>, ListWatchError>>) {
        debug_assert!(self.ready.is_empty(), "a batch is everything that was ready");
        self.ready = events;
    }

    /// Reads one frame. False when nothing more will come.
    async fn fill(&mut self, known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync)) -> bool {
        if self.ended {
            return false;
        }
        match self.body.frame().await {
            None => {
                self.ended = true;
                if let Err(error) = self.lines.finish() {
                    self.ready.push_back(Err(self.target.split_failed("watch", &error)));
                }
            }
            Some(Err(error)) => {
                self.ended = true;
                self.ready.push_back(Err(self.target.failed("watch", Failure::Transport(Arc::new(error)))));
            }
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let Self { target, codec, lines, scratch, ready, .. } = self;
                    lines.feed(data, |line| ready.push_back(event(target, codec, line, scratch, known)));
                }
            }
        }
        true
    }
}

fn event<K: Resource + DeserializeOwned>(
    target: &Target,
    codec: &Codec<K>,
    line: &[u8],
    scratch: &mut Vec<u8>,
    known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync),
) -> Result<WatchEvent<K>, ListWatchError> {
    let malformed =
        |what: &str| target.failed("watch", Failure::Body(format!("an event is malformed: {what}")));
    let mut envelope = Scanner::new();
    if !matches!(envelope.advance(line), Progress::Complete(_)) {
        return Err(malformed("it is not one JSON object"));
    }
    let envelope = envelope.into_spans();
    let (Some(event_type), Some(object)) = (envelope.event_type, envelope.object) else {
        return Err(malformed("it has no type or no object"));
    };
    let text = &line[object];
    let make: fn(Lazy<K>) -> WatchEvent<K> = match &line[event_type] {
        b"ADDED" => WatchEvent::Added,
        b"MODIFIED" => WatchEvent::Modified,
        b"DELETED" => WatchEvent::Deleted,
        b"BOOKMARK" => return bookmark(text).map_err(|error| malformed(&error.to_string())),
        b"ERROR" => {
            let status: Status =
                serde_json::from_slice(text).map_err(|error| malformed(&error.to_string()))?;
            return Err(target.failed("watch", refused(status, None, 500)));
        }
        _ => return Err(malformed("its type is unknown")),
    };
    let mut scanner = Scanner::new();
    if !matches!(scanner.advance(text), Progress::Complete(_)) {
        return Err(malformed("its object is not balanced"));
    }
    match codec.admit(text, &scanner.into_spans(), scratch, known) {
        Ok(object) => Ok(make(object)),
        Err(unusable) => {
            codec.faults().report(&Fault::Unusable { key: unusable.key, reason: unusable.reason });
            Ok(WatchEvent::PassedOver { resource_version: unusable.resource_version })
        }
    }
}

fn bookmark<K>(text: &[u8]) -> Result<WatchEvent<K>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: String,
        #[serde(default)]
        annotations: Option<std::collections::BTreeMap<String, String>>,
    }
    let Object { metadata } = serde_json::from_slice(text)?;
    let initial_events_end = metadata
        .annotations
        .is_some_and(|all| all.get("k8s.io/initial-events-end").is_some_and(|value| value == "true"));
    Ok(WatchEvent::Bookmark { resource_version: metadata.resource_version, initial_events_end })
}
