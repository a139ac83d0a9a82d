//! History of the changes of one resource, for watches and for reads at an older revision.
//!
//! Watchers pull: each keeps the revision it has seen and asks for later changes. Nothing is buffered per
//! watcher, so a slow one costs nothing and blocks no other; once the history was compacted past its
//! revision, it gets [`Expired`].

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kubewright_core::ObjectKey;
use parking_lot::RwLock;
use tokio::sync::Notify;

use super::object::Object;

/// Change of one object.
#[derive(Debug, Clone)]
pub struct Event {
    /// The revision of the change.
    pub revision: u64,
    /// The key of the object.
    pub key: ObjectKey,
    /// The object before the change; `None` if it was created.
    pub before: Option<Arc<Object>>,
    /// The object after the change; `None` if it was removed.
    pub after: Option<Arc<Object>>,
    /// The object of the watch event: the object after the change, or the last one with the revision of its
    /// removal.
    pub shown: Arc<Object>,
}

/// Error for a revision whose history was compacted; the client must list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Expired {
    /// The requested revision.
    pub requested: u64,
    /// The oldest available revision.
    pub oldest: u64,
}

/// Limits of the history per resource.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Retention {
    /// Maximum number of changes.
    pub events: usize,
    /// Maximum size of superseded objects in bytes.
    pub bytes: usize,
}

impl Retention {
    /// Sets the maximum number of changes per resource.
    #[must_use]
    pub fn with_events(self, events: usize) -> Self {
        Self { events, ..self }
    }

    /// Sets the maximum size of superseded objects per resource, in bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { events: 10_000, bytes: 64 << 20 }
    }
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// Bytes that only the history keeps alive.
    bytes: usize,
    /// Everything up to this revision was dropped.
    compact_revision: u64,
}

/// History of the changes of one resource.
#[derive(Debug, Default)]
pub struct History {
    ring: RwLock<Ring>,
    changed: Notify,
    closed: AtomicBool,
}

impl History {
    pub(super) fn new(compact_revision: u64) -> Self {
        Self { ring: RwLock::new(Ring { compact_revision, ..Ring::default() }), ..Self::default() }
    }

    pub(super) fn push(&self, event: Event, keep: Retention) {
        {
            let mut ring = self.ring.write();
            ring.bytes += superseded(&event);
            ring.events.push_back(Arc::new(event));
            while ring.events.len() > keep.events.max(1) || (ring.bytes > keep.bytes && ring.events.len() > 1)
            {
                drop_oldest(&mut ring);
            }
        }
        self.changed.notify_waiters();
    }

    /// Drops every change up to and including `revision`.
    pub(super) fn compact(&self, revision: u64) {
        {
            let mut ring = self.ring.write();
            while ring.events.front().is_some_and(|e| e.revision <= revision) {
                drop_oldest(&mut ring);
            }
            ring.compact_revision = ring.compact_revision.max(revision);
        }
        self.changed.notify_waiters();
    }

    /// Ends every watch of this resource: its type was removed or the server stops.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns the oldest revision after which all changes are available.
    pub fn compact_revision(&self) -> u64 {
        self.ring.read().compact_revision
    }

    /// Returns at most `limit` changes after a revision, oldest first.
    pub fn after(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Expired> {
        let ring = self.ring.read();
        if revision < ring.compact_revision {
            return Err(Expired { requested: revision, oldest: ring.compact_revision });
        }
        let from = ring.events.partition_point(|e| e.revision <= revision);
        Ok(ring.events.range(from..).take(limit).cloned().collect())
    }
}

fn superseded(event: &Event) -> usize {
    event.before.as_ref().map_or(0, |o| o.size()) + if event.after.is_none() { event.shown.size() } else { 0 }
}

fn drop_oldest(ring: &mut Ring) {
    if let Some(event) = ring.events.pop_front() {
        ring.bytes = ring.bytes.saturating_sub(superseded(&event));
        ring.compact_revision = event.revision;
    }
}

/// Position in the history of one resource.
#[derive(Debug)]
pub struct Cursor {
    history: Arc<History>,
    seen: u64,
}

/// Maximum number of events per read, so that a watcher far behind does not delay the others.
const BATCH: usize = 256;

impl Cursor {
    /// Creates a cursor that will return every change after `revision`.
    pub fn after(history: Arc<History>, revision: u64) -> Result<Self, Expired> {
        let oldest = history.compact_revision();
        if revision < oldest {
            return Err(Expired { requested: revision, oldest });
        }
        Ok(Self { history, seen: revision })
    }

    /// Returns the revision up to which all changes were returned.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Skips changes that do not concern this watcher.
    pub fn skip_to(&mut self, revision: u64) {
        self.seen = self.seen.max(revision);
    }

    /// Returns whether there are no new changes.
    pub fn is_idle(&self) -> bool {
        self.history.after(self.seen, 1).is_ok_and(|events| events.is_empty())
    }

    /// Returns the next changes without waiting; empty if there are none.
    pub fn ready(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        let events = self.history.after(self.seen, BATCH)?;
        if let Some(last) = events.last() {
            self.seen = last.revision;
        }
        Ok(events)
    }

    /// Waits for the next changes; `None` when the resource was removed or the server stops.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Event>>>, Expired> {
        loop {
            let history = Arc::clone(&self.history);
            let changed = history.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that no change between check and wait is missed.
            changed.as_mut().enable();
            let events = self.ready()?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
            if self.history.closed.load(Ordering::Acquire) {
                return Ok(None);
            }
            changed.await;
        }
    }
}
