//! The changes of one resource, kept for watchers and for reads at an older revision.
//!
//! Watchers pull: each keeps the revision it has seen and asks for what came after. Nobody buffers on a watcher's
//! behalf, so a slow one costs nothing and blocks no one; when the ring has moved past it, it is told so and ends.

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

/// One change of one object.
#[derive(Debug, Clone)]
pub struct Event {
    /// The revision of the change.
    pub revision: u64,
    /// Which object.
    pub key: ObjectKey,
    /// The object before; `None` when it was created.
    pub before: Option<Arc<Object>>,
    /// The object after; `None` when it was removed.
    pub after: Option<Arc<Object>>,
    /// What watchers are shown: the object after the change, or the last one under the revision of its removal.
    pub shown: Arc<Object>,
}

/// The history up to a revision is gone; list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// The revision that was asked for.
    pub asked: u64,
    /// The oldest revision that can still be asked for.
    pub oldest: u64,
}

/// How much history a resource keeps.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Changes kept per resource.
    pub events: usize,
    /// Bytes of superseded objects kept per resource.
    pub bytes: usize,
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
    /// Everything up to here is forgotten.
    floor: u64,
}

/// The history of one resource.
#[derive(Debug, Default)]
pub struct Feed {
    ring: RwLock<Ring>,
    changed: Notify,
    closed: AtomicBool,
}

impl Feed {
    pub(super) fn starting_at(floor: u64) -> Self {
        Self { ring: RwLock::new(Ring { floor, ..Ring::default() }), ..Self::default() }
    }

    pub(super) fn push(&self, event: Event, keep: Retention) {
        {
            let mut ring = self.ring.write();
            ring.bytes += superseded(&event);
            ring.events.push_back(Arc::new(event));
            while ring.events.len() > keep.events.max(1) || (ring.bytes > keep.bytes && ring.events.len() > 1)
            {
                forget_one(&mut ring);
            }
        }
        self.changed.notify_waiters();
    }

    /// Forgets every change up to and including `revision`.
    pub(super) fn compact(&self, revision: u64) {
        {
            let mut ring = self.ring.write();
            while ring.events.front().is_some_and(|e| e.revision <= revision) {
                forget_one(&mut ring);
            }
            ring.floor = ring.floor.max(revision);
        }
        self.changed.notify_waiters();
    }

    /// Ends every watch of this resource: its type is gone or the server stops.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// The oldest revision from which all later changes are known.
    pub fn floor(&self) -> u64 {
        self.ring.read().floor
    }

    /// At most `limit` changes after a revision, oldest first.
    pub fn after(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Expired> {
        let ring = self.ring.read();
        if revision < ring.floor {
            return Err(Expired { asked: revision, oldest: ring.floor });
        }
        let from = ring.events.partition_point(|e| e.revision <= revision);
        Ok(ring.events.range(from..).take(limit).cloned().collect())
    }
}

fn superseded(event: &Event) -> usize {
    event.before.as_ref().map_or(0, |o| o.size()) + if event.after.is_none() { event.shown.size() } else { 0 }
}

fn forget_one(ring: &mut Ring) {
    if let Some(event) = ring.events.pop_front() {
        ring.bytes = ring.bytes.saturating_sub(superseded(&event));
        ring.floor = event.revision;
    }
}

/// A place in the history of one resource.
#[derive(Debug)]
pub struct Cursor {
    feed: Arc<Feed>,
    seen: u64,
}

/// Events handed out at a time, so that one watcher far behind does not hold the others up.
const BATCH: usize = 256;

impl Cursor {
    /// A cursor that will see every change after `revision`.
    pub fn after(feed: Arc<Feed>, revision: u64) -> Result<Self, Expired> {
        let oldest = feed.floor();
        if revision < oldest {
            return Err(Expired { asked: revision, oldest });
        }
        Ok(Self { feed, seen: revision })
    }

    /// The revision up to which everything has been seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Moves over changes that are known not to concern this watcher.
    pub fn skip_to(&mut self, revision: u64) {
        self.seen = self.seen.max(revision);
    }

    /// Whether there is nothing new.
    pub fn is_idle(&self) -> bool {
        self.feed.after(self.seen, 1).is_ok_and(|events| events.is_empty())
    }

    /// The next changes, without waiting; empty when there are none.
    pub fn ready(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        let events = self.feed.after(self.seen, BATCH)?;
        if let Some(last) = events.last() {
            self.seen = last.revision;
        }
        Ok(events)
    }

    /// The next changes, waiting for them; `None` when the resource is gone or the server stops.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Event>>>, Expired> {
        loop {
            let feed = Arc::clone(&self.feed);
            let changed = feed.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that a change between the look and the wait is not missed.
            changed.as_mut().enable();
            let events = self.ready()?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
            if self.feed.closed.load(Ordering::Acquire) {
                return Ok(None);
            }
            changed.await;
        }
    }
}
