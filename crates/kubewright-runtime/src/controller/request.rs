//! What is queued: a key, and who asked for it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use kubewright_cache::Event;
use kubewright_core::ObjectKey;
use kubewright_queue::{AddOptions, LOW_PRIORITY, PriorityQueue};

/// Why a key was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It was there when the controller began.
    Listed,
    /// An object was created.
    Added,
    /// An object changed.
    Updated,
    /// An object is gone.
    Deleted,
    /// It is time to look again, although nothing changed.
    Resync,
    /// A source of the program's own said so.
    Asked,
}

impl Cause {
    pub(super) fn of<K>(event: &Event<K>) -> Self {
        match event {
            Event::Added { is_in_initial_list: true, .. } => Self::Listed,
            Event::Added { .. } => Self::Added,
            Event::Updated { .. } if event.is_sync() => Self::Resync,
            Event::Updated { .. } => Self::Updated,
            Event::Deleted { .. } => Self::Deleted,
        }
    }

    /// What is not news can wait.
    fn priority(self) -> i32 {
        match self {
            Self::Listed | Self::Resync => LOW_PRIORITY,
            _ => 0,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed",
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Resync => "resync",
            Self::Asked => "asked",
        })
    }
}

/// A key in the queue of a controller. Two requests for the same key are the same request.
#[derive(Clone)]
pub struct Request {
    key: ObjectKey,
    /// Not part of the identity: who asked first is who is named.
    source: Arc<str>,
    cause: Cause,
}

impl Request {
    /// What to reconcile.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The name of the source that asked first: a kind, or what the source is called.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn shared_source(&self) -> &Arc<str> {
        &self.source
    }

    /// Why it asked.
    pub fn cause(&self) -> Cause {
        self.cause
    }
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Request {}

impl Hash for Request {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.key, self.source, self.cause)
    }
}

/// Where handlers and sources put the keys that are to be reconciled.
#[derive(Debug, Clone)]
pub struct Requests {
    queue: PriorityQueue<Request>,
    source: Arc<str>,
    cause: Cause,
}

impl Requests {
    pub(super) fn new(queue: PriorityQueue<Request>, source: &str) -> Self {
        Self { queue, source: source.into(), cause: Cause::Asked }
    }

    pub(super) fn because(&mut self, cause: Cause) {
        self.cause = cause;
    }

    fn request(&self, key: ObjectKey) -> Request {
        Request { key, source: Arc::clone(&self.source), cause: self.cause }
    }

    /// Asks for a reconcile of this key; low in priority if the event behind it is no news.
    pub fn add(&self, key: ObjectKey) {
        self.add_with(key, AddOptions::new().priority(self.cause.priority()));
    }

    /// Asks for a reconcile of this key after some time.
    pub fn add_after(&self, key: ObjectKey, delay: Duration) {
        self.add_with(key, AddOptions::new().priority(self.cause.priority()).after(delay));
    }

    /// Asks for a reconcile of this key as these options say.
    pub fn add_with(&self, key: ObjectKey, options: AddOptions) {
        self.queue.add_with(self.request(key), options);
    }
}
