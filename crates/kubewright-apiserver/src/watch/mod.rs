//! Streams of changes: `{"type":…,"object":…}` lines.
//!
//! An event's bytes are made of three shared parts, the type and kind, the stored object, and the end of the line;
//! nothing is encoded per watcher unless it asked for another form (a Table, another version, protobuf).

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    registry::{descriptor::Descriptor, verbs::watch::WatchAnswer},
    status::Status,
    storage::{Event, Object},
};

/// How an object is shown in events that are not plain JSON of the stored version.
pub type Render = Box<dyn Fn(&Descriptor, &Object) -> Value + Send + Sync>;

/// Bookmarks come this often.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// The last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// One line each.
    Json,
    /// A message each, after its length.
    Protobuf,
}

impl Frames {
    fn event(self, kind: &str, object: &Value) -> Bytes {
        let message = if self == Self::Protobuf { crate::protobuf::frame(kind, object) } else { None };
        match message {
            Some(message) => message.into(),
            None => format!("{}\n", json!({"type": kind, "object": object})).into(),
        }
    }
}

struct Watch {
    answer: WatchAnswer,
    frames: Frames,
    render: Option<Render>,
    /// Chunks to be sent before anything else is looked at.
    ready: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    over: bool,
}

/// The body of a watch.
pub fn stream(mut answer: WatchAnswer, frames: Frames, render: Option<Render>) -> BoxStream<'static, Bytes> {
    let now = Instant::now();
    let ends = now + answer.timeout;
    let initial = std::mem::take(&mut answer.initial);
    let mut watch = Watch {
        frames,
        render,
        ready: VecDeque::new(),
        ends,
        next_bookmark: (now + BOOKMARK_EVERY).min(ends.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(ends)),
        over: false,
        answer,
    };
    for object in initial {
        watch.show("ADDED", &object);
    }
    if watch.answer.marks_initial_end {
        watch.bookmark(true);
    }
    futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        Some((chunk, watch))
    })
    .boxed()
}

impl Watch {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(chunk);
            }
            if self.over {
                return None;
            }
            let events = match &mut self.answer.cursor {
                Err(status) => {
                    let line = self.frames.event("ERROR", &status.to_value());
                    self.over = true;
                    self.ready.push_back(line);
                    continue;
                }
                Ok(cursor) => {
                    let wake =
                        if self.answer.bookmarks { self.next_bookmark.min(self.ends) } else { self.ends };
                    let custom = self.answer.ty.custom.as_ref();
                    let changed = async {
                        match custom {
                            Some(custom) => custom.closed().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        events = cursor.next() => Some(events),
                        // The definition is another one now; what comes is for watches that begin with it.
                        () = changed => Some(Ok(None)),
                        () = tokio::time::sleep_until(wake) => None,
                    }
                }
            };
            match events {
                Some(Ok(Some(events))) => events.iter().for_each(|event| self.see(event)),
                Some(Ok(None)) => self.over = true,
                Some(Err(expired)) => {
                    let status = Status::expired(expired.to_string());
                    self.ready.push_back(self.frames.event("ERROR", &status.to_value()));
                    self.over = true;
                }
                None if Instant::now() >= self.ends => self.over = true,
                None => {
                    self.bookmark(false);
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                }
            }
        }
    }

    /// What one change is to this watcher: selectors turn changes into comings and goings.
    fn see(&mut self, event: &Event) {
        let ours =
            self.answer.namespace.is_empty() || event.key.namespace() == Some(self.answer.namespace.as_str());
        if !ours {
            return;
        }
        let selection = &self.answer.selection;
        let before = event.before.as_ref().filter(|o| selection.matches(&event.key, o));
        let after = event.after.as_ref().filter(|o| selection.matches(&event.key, o));
        match (before, after) {
            (None, None) => {}
            (None, Some(_)) => self.show("ADDED", &event.shown),
            (Some(_), Some(_)) => self.show("MODIFIED", &event.shown),
            (Some(_), None) if event.after.is_none() => self.show("DELETED", &event.shown),
            (Some(before), None) => {
                // It still exists but is no longer this watcher's business: its last matching state goes.
                let gone = before.with_revision(event.revision);
                self.show("DELETED", &gone);
            }
        }
    }

    fn show(&mut self, kind: &str, object: &Object) {
        let ty = &self.answer.ty;
        let shown = match &self.render {
            Some(render) => Some(render(ty, object)),
            None if !ty.shows_as_stored(object) || self.frames == Frames::Protobuf => {
                Some(Value::Object(ty.decode(object)))
            }
            None => None,
        };
        if let Some(shown) = shown {
            self.ready.push_back(self.frames.event(kind, &shown));
            return;
        }
        self.ready.push_back(format!("{{\"type\":\"{kind}\",\"object\":{}", ty.prefix()).into());
        self.ready.push_back(object.bytes().slice(1..));
        self.ready.push_back(Bytes::from_static(b"}\n"));
    }

    fn bookmark(&mut self, initial_end: bool) {
        let ty = &self.answer.ty;
        let revision = match &mut self.answer.cursor {
            Ok(cursor) => {
                let present = self.answer.storage.history_revision();
                if !initial_end && cursor.is_idle() {
                    cursor.skip_to(present);
                }
                cursor.seen()
            }
            Err(_) => return,
        };
        let mut object = self.answer.empty.clone();
        object.insert("kind".into(), ty.kind.as_ref().into());
        object.insert("apiVersion".into(), ty.api_version().into());
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        object.insert("metadata".into(), metadata);
        self.ready.push_back(self.frames.event("BOOKMARK", &Value::Object(object)));
    }
}
