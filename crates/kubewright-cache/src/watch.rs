//! Watch stream of a kind.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use kube::{client::Body, core::Status};
use memchr::memchr;
use serde::Deserialize;

use super::{
    fault::Fault,
    object::{Lazy, Untyped},
    request::{ListWatchError, ListWatchErrorKind, Target, status_error},
    wire::{
        codec::Codec,
        scan::{Progress, Scanner, Spans},
        split::LineSplitter,
    },
};
use kubewright_core::ObjectKey;

/// Number of ready events that are returned together: enough to amortise the wake-ups, and few enough not to
/// delay other tasks.
const MAX_BATCH: usize = 64;

/// One event of a watch.
#[non_exhaustive]
pub enum WatchEvent<K> {
    /// An object was added, or now matches the selectors.
    Added(Lazy<K>),
    /// An object was modified.
    Modified(Lazy<K>),
    /// An object was deleted, or no longer matches the selectors. This is its last state.
    Deleted(Lazy<K>),
    /// A bookmark: the watch has reached this version.
    Bookmark {
        /// The version.
        resource_version: String,
        /// Whether all initial events have been sent.
        initial_events_end: bool,
    },
    /// An object was skipped because it cannot be cached.
    Skipped {
        /// The version of the object, if it has one.
        resource_version: Option<String>,
    },
}

impl<K> WatchEvent<K> {
    /// Returns the same event for readers of another type.
    fn cast<L>(self) -> WatchEvent<L> {
        match self {
            Self::Added(object) => WatchEvent::Added(object.cast()),
            Self::Modified(object) => WatchEvent::Modified(object.cast()),
            Self::Deleted(object) => WatchEvent::Deleted(object.cast()),
            Self::Bookmark { resource_version, initial_events_end } => {
                WatchEvent::Bookmark { resource_version, initial_events_end }
            }
            Self::Skipped { resource_version } => WatchEvent::Skipped { resource_version },
        }
    }

    /// The object of the event, if any.
    pub fn object(&self) -> Option<&Lazy<K>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Skipped { .. } => None,
        }
    }

    /// Returns the type of the event, as the server writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added(_) => "ADDED",
            Self::Modified(_) => "MODIFIED",
            Self::Deleted(_) => "DELETED",
            Self::Bookmark { .. } => "BOOKMARK",
            Self::Skipped { .. } => "SKIPPED",
        }
    }

    /// Returns the version that the watch has reached with this event.
    pub fn resource_version(&self) -> Option<&str> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                Some(object.resource_version()).filter(|version| !version.is_empty())
            }
            Self::Bookmark { resource_version, .. } => Some(resource_version),
            Self::Skipped { resource_version } => resource_version.as_deref(),
        }
    }
}

// Manual, because the derive would require the same of `K`.
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

/// A watch in progress. It ends when the server ends it, or when it is dropped.
pub struct WatchStream<K> {
    events: EventStream,
    kind: PhantomData<fn() -> K>,
}

impl<K> WatchStream<K> {
    pub(crate) fn new(events: EventStream) -> Self {
        Self { events, kind: PhantomData }
    }

    /// The next event; None when the server has ended the watch in good order.
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, ListWatchError>> {
        Some(self.events.next().await?.map(WatchEvent::cast))
    }
}

/// The events of a watch, whatever kind it is of.
pub(crate) struct EventStream {
    target: Target,
    codec: Arc<Codec>,
    body: Body,
    lines: LineSplitter,
    scratch: Vec<u8>,
    ready: VecDeque<Result<WatchEvent<Untyped>, ListWatchError>>,
    ended: bool,
}

/// A body frame, or the end of the body.
type BodyFrame = Option<Result<Frame<Bytes>, kube::Error>>;

impl EventStream {
    pub(crate) fn new(target: Target, codec: Arc<Codec>, body: Body) -> Self {
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

    async fn next(&mut self) -> Option<Result<WatchEvent<Untyped>, ListWatchError>> {
        while self.ready.is_empty() && !self.ended {
            let frame = self.body.frame().await;
            self.take(frame, &|_| None);
        }
        self.ready.pop_front()
    }

    /// Returns the ready events, waiting for at least one. `None` when the watch has ended.
    pub(crate) async fn next_batch(
        &mut self,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>> + Send + Sync),
    ) -> Option<VecDeque<Result<WatchEvent<Untyped>, ListWatchError>>> {
        while self.ready.len() < MAX_BATCH && !self.ended {
            let Some(frame) = poll_fn(|cx| self.poll_ready_frame(cx)).await else { break };
            self.take(frame, known);
        }
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }

    /// Polls the next frame; `None` when there are events and no frame is ready.
    fn poll_ready_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyFrame>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending if !self.ready.is_empty() => Poll::Ready(None),
            frame => frame.map(Some),
        }
    }

    /// Puts events of a batch back that were not processed.
    pub(crate) fn put_back(&mut self, events: VecDeque<Result<WatchEvent<Untyped>, ListWatchError>>) {
        debug_assert!(self.ready.is_empty(), "a batch is everything that was ready");
        self.ready = events;
    }

    fn take(
        &mut self,
        frame: BodyFrame,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>> + Send + Sync),
    ) {
        match frame {
            None => {
                self.ended = true;
                if let Err(error) = self.lines.finish() {
                    self.ready.push_back(Err(self.target.split_failed("watch", &error)));
                }
            }
            Some(Err(error)) => {
                self.ended = true;
                self.ready.push_back(Err(self
                    .target
                    .failed("watch", ListWatchErrorKind::Transport(Arc::new(error)))));
            }
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let Self { target, codec, lines, scratch, ready, .. } = self;
                    lines.feed(data, |line| ready.push_back(event(target, codec, line, scratch, known)));
                }
            }
        }
    }
}

fn event(
    target: &Target,
    codec: &Codec,
    line: &[u8],
    scratch: &mut Vec<u8>,
    known: &(dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>> + Send + Sync),
) -> Result<WatchEvent<Untyped>, ListWatchError> {
    let malformed = |what: &str| {
        target.failed("watch", ListWatchErrorKind::Body(format!("an event is malformed: {what}")))
    };
    let (event_type, text, spans) = parse_compact(line)
        .or_else(|| parse_any(line))
        .ok_or_else(|| malformed("it is not one JSON object with a type and an object"))?;
    let make: fn(Lazy<Untyped>) -> WatchEvent<Untyped> = match event_type {
        b"ADDED" => WatchEvent::Added,
        b"MODIFIED" => WatchEvent::Modified,
        b"DELETED" => WatchEvent::Deleted,
        b"BOOKMARK" => return bookmark(text).map_err(|error| malformed(&error.to_string())),
        b"ERROR" => {
            let status: Status =
                serde_json::from_slice(text).map_err(|error| malformed(&error.to_string()))?;
            return Err(target.failed("watch", status_error(status, None, 500)));
        }
        _ => return Err(malformed("its type is unknown")),
    };
    match codec.admit(text, &spans, scratch, known) {
        Ok(object) => Ok(make(object)),
        Err(unusable) => {
            codec.faults().report(&Fault::Unusable { key: unusable.key, reason: unusable.reason });
            Ok(WatchEvent::Skipped { resource_version: unusable.resource_version })
        }
    }
}

/// Parses an event in the exact form of API servers: the type, the object, no other fields and no spaces. The
/// object then extends to the end of the line, and is scanned only up to its metadata; the rest is validated
/// when decoded.
fn parse_compact(line: &[u8]) -> Option<(&[u8], &[u8], Spans)> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (event_type, rest) = rest.split_at(memchr(b'"', rest)?);
    let text = rest.strip_prefix(b"\",\"object\":")?.trim_ascii_end().strip_suffix(b"}")?;
    text.ends_with(b"}").then_some(())?;
    let mut scanner = Scanner::until_metadata();
    let progress = scanner.advance(text);
    let found = progress == Progress::Enough || progress == Progress::Complete(text.len());
    found.then(|| (event_type, text, scanner.into_spans()))
}

/// Parses an event in any other form.
fn parse_any(line: &[u8]) -> Option<(&[u8], &[u8], Spans)> {
    let mut envelope = Scanner::new();
    matches!(envelope.advance(line), Progress::Complete(_)).then_some(())?;
    let envelope = envelope.into_spans();
    let text = &line[envelope.object?];
    let mut scanner = Scanner::new();
    matches!(scanner.advance(text), Progress::Complete(_)).then_some(())?;
    Some((&line[envelope.event_type?], text, scanner.into_spans()))
}

fn bookmark(text: &[u8]) -> Result<WatchEvent<Untyped>, serde_json::Error> {
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, stream};
    use http_body_util::StreamBody;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;

    use super::*;
    use crate::ListWatch;

    #[tokio::test]
    async fn ready_events_are_returned_together_without_waiting_for_more() {
        let server = tower::service_fn(|_: http::Request<Body>| async {
            let events = (0..MAX_BATCH + 2).map(|number| {
                let object =
                    format!(r#"{{"metadata":{{"name":"map-{number}","resourceVersion":"{number}"}}}}"#);
                Frame::data(Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")))
            });
            let frames = stream::iter(events).map(Ok::<_, Infallible>).chain(stream::pending());
            Ok::<_, Infallible>(http::Response::new(StreamBody::new(frames)))
        });
        let client = Client::new(server, "default");
        let mut watch = ListWatch::<ConfigMap>::new(client).watch("1").await.unwrap();
        for expected in [MAX_BATCH, 2] {
            assert_eq!(watch.events.next_batch(&|_| None).await.unwrap().len(), expected);
        }
        assert!(watch.events.next_batch(&|_| None).now_or_never().is_none());
    }

    #[test]
    fn an_event_is_parsed_in_any_form() {
        let object =
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"type":"x","object":{}}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{object}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\r"),
            format!(r#"{{ "type": "ADDED", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
        ] {
            let found = parse_compact(line.as_bytes()).or_else(|| parse_any(line.as_bytes()));
            let (event_type, text, spans) = found.unwrap_or_else(|| panic!("{line}"));
            assert_eq!((event_type, text), (&b"ADDED"[..], object.as_bytes()), "{line}");
            assert_eq!(&text[spans.metadata.unwrap()], br#"{"name":"a"}"#);
        }
    }

    #[test]
    fn a_line_that_is_no_event_is_rejected() {
        for line in [
            "",
            "{}",
            r#"{"type":"ADDED"}"#,
            r#"{"type":"ADDED","object":1}"#,
            r#"{"type":"ADDED","object":{"#,
        ] {
            assert!(
                parse_compact(line.as_bytes()).is_none() && parse_any(line.as_bytes()).is_none(),
                "{line}"
            );
        }
    }
}
