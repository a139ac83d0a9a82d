//! The changes of a kind, event by event.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use kube::{Resource, client::Body, core::Status};
use memchr::memchr;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    fault::Fault,
    object::Lazy,
    request::{Failure, ListWatchError, Target, refused},
    wire::{
        codec::Codec,
        scan::{Progress, Scanner, Spans},
        split::LineSplitter,
    },
};
use kubewright_core::ObjectKey;

/// So many events are handed on together, if so many are at hand: enough for the waking of others to be little beside them, and
/// no more than others can wait for.
const TOGETHER: usize = 64;

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

/// A piece of the body, or its end.
type Piece = Option<Result<Frame<Bytes>, kube::Error>>;

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
        while self.ready.is_empty() && !self.ended {
            let piece = self.body.frame().await;
            self.take(piece, &|_| None);
        }
        self.ready.pop_front()
    }

    /// The next events: at least one, and those that are at hand with it. None when the watch has ended.
    pub(crate) async fn next_batch(
        &mut self,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync),
    ) -> Option<VecDeque<Result<WatchEvent<K>, ListWatchError>>> {
        while self.ready.len() < TOGETHER && !self.ended {
            let Some(piece) = poll_fn(|cx| self.poll_at_hand(cx)).await else { break };
            self.take(piece, known);
        }
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }

    /// The next piece; None when there are events and the next piece would have to be waited for.
    fn poll_at_hand(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending if !self.ready.is_empty() => Poll::Ready(None),
            piece => piece.map(Some),
        }
    }

    /// Gives back events that were taken and not looked at.
    pub(crate) fn put_back(&mut self, events: VecDeque<Result<WatchEvent<K>, ListWatchError>>) {
        debug_assert!(self.ready.is_empty(), "a batch is everything that was ready");
        self.ready = events;
    }

    fn take(&mut self, piece: Piece, known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync)) {
        match piece {
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
    let (event_type, text, spans) = plain(line)
        .or_else(|| searched(line))
        .ok_or_else(|| malformed("it is not one JSON object with a type and an object"))?;
    let make: fn(Lazy<K>) -> WatchEvent<K> = match event_type {
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
    match codec.admit(text, &spans, scratch, known) {
        Ok(object) => Ok(make(object)),
        Err(unusable) => {
            codec.faults().report(&Fault::Unusable { key: unusable.key, reason: unusable.reason });
            Ok(WatchEvent::PassedOver { resource_version: unusable.resource_version })
        }
    }
}

/// The type of an event, its object and what of that matters, when the line is written as API servers write it: the type,
/// the object, nothing else and no spaces. The object then ends where the line does, and is looked through only as far as its
/// metadata; whether the rest is JSON shows when it is read.
fn plain(line: &[u8]) -> Option<(&[u8], &[u8], Spans)> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (event_type, rest) = rest.split_at(memchr(b'"', rest)?);
    let text = rest.strip_prefix(b"\",\"object\":")?.trim_ascii_end().strip_suffix(b"}")?;
    text.ends_with(b"}").then_some(())?;
    let mut scanner = Scanner::until_metadata();
    let progress = scanner.advance(text);
    let found = progress == Progress::Enough || progress == Progress::Complete(text.len());
    found.then(|| (event_type, text, scanner.into_spans()))
}

/// The same for a line that is written in any other way.
fn searched(line: &[u8]) -> Option<(&[u8], &[u8], Spans)> {
    let mut envelope = Scanner::new();
    matches!(envelope.advance(line), Progress::Complete(_)).then_some(())?;
    let envelope = envelope.into_spans();
    let text = &line[envelope.object?];
    let mut scanner = Scanner::new();
    matches!(scanner.advance(text), Progress::Complete(_)).then_some(())?;
    Some((&line[envelope.event_type?], text, scanner.into_spans()))
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
    async fn what_is_at_hand_is_handed_on_together_and_nothing_more_is_waited_for() {
        let server = tower::service_fn(|_: http::Request<Body>| async {
            let events = (0..TOGETHER + 2).map(|number| {
                let object =
                    format!(r#"{{"metadata":{{"name":"map-{number}","resourceVersion":"{number}"}}}}"#);
                Frame::data(Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")))
            });
            let frames = stream::iter(events).map(Ok::<_, Infallible>).chain(stream::pending());
            Ok::<_, Infallible>(http::Response::new(StreamBody::new(frames)))
        });
        let client = Client::new(server, "default");
        let mut watch = ListWatch::<ConfigMap>::new(client).watch("1").await.unwrap();
        for expected in [TOGETHER, 2] {
            assert_eq!(watch.next_batch(&|_| None).await.unwrap().len(), expected);
        }
        assert!(watch.next_batch(&|_| None).now_or_never().is_none());
    }

    #[test]
    fn an_event_is_the_same_however_its_line_is_written() {
        let object =
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"type":"x","object":{}}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{object}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\r"),
            format!(r#"{{ "type": "ADDED", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
        ] {
            let found = plain(line.as_bytes()).or_else(|| searched(line.as_bytes()));
            let (event_type, text, spans) = found.unwrap_or_else(|| panic!("{line}"));
            assert_eq!((event_type, text), (&b"ADDED"[..], object.as_bytes()), "{line}");
            assert_eq!(&text[spans.metadata.unwrap()], br#"{"name":"a"}"#);
        }
    }

    #[test]
    fn a_line_that_is_no_event_is_neither() {
        for line in [
            "",
            "{}",
            r#"{"type":"ADDED"}"#,
            r#"{"type":"ADDED","object":1}"#,
            r#"{"type":"ADDED","object":{"#,
        ] {
            assert!(plain(line.as_bytes()).is_none() && searched(line.as_bytes()).is_none(), "{line}");
        }
    }
}
