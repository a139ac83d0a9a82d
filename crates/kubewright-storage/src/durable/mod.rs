//! Durable storage: a log of writes, snapshots, and one committer thread that owns both.
//!
//! A write is accepted in memory under the storage's write lock and enqueued. The committer takes all queued
//! writes, appends them as one frame and syncs the file once: all writers in flight share that sync. Only
//! then are the writes published: readers and watchers see nothing that a crash could undo, and callers that
//! acknowledge a write wait for [`Durable::flush`].
//!
//! ```text
//!  put ─▶ head (writers read this) ─▶ queue ─▶ committer: append, sync ─▶ published (readers, watchers) ─▶ answers
//! ```
//!
//! - [`codec`]: encoding of records. [`frame`]: checksummed frames in a file. [`log`]: the log file.
//! - [`snapshot`]: snapshot files, which make older logs obsolete. [`recover`]: reading a directory.
//!
//! Pitfall: writes that the disk refuses stay queued and are retried with the next write; until that
//! succeeds, new writes are rejected up front. A write that was notified with an error may therefore still
//! happen, as with any write whose response is lost.

mod codec;
mod committer;
mod directory;
mod error;
mod frame;
mod log;
mod recover;
mod snapshot;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
};

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

pub use self::directory::replace;
pub use self::error::{DataDirError, WriteError};
use self::{committer::Committer, directory::Directory, log::Log};
use super::{Bases, Event, Retention, Shared, Snapshot};

/// Minimum log length for a snapshot.
const SNAPSHOT_AT_LEAST: u64 = 16 << 20;

/// Accepted write that is not yet on disk.
struct Pending {
    resource: Arc<str>,
    event: Event,
    /// The state after this write.
    snapshot: Snapshot,
}

/// Caller waiting until everything up to a revision is on disk.
struct Waiter {
    revision: u64,
    done: oneshot::Sender<Result<(), WriteError>>,
}

#[derive(Default)]
struct Queue {
    pending: Vec<Pending>,
    waiters: Vec<Waiter>,
    /// Why nothing can be stored at present.
    failure: Option<WriteError>,
    /// A caller wants to know whether the disk accepts writes again.
    retry: bool,
    stopping: bool,
}

/// Queue between writers and the committer.
struct CommitQueue {
    queue: Mutex<Queue>,
    /// Signals work to the committer.
    changed: Condvar,
    /// Signals that waiters were notified.
    notified: Condvar,
    /// Cancels a running snapshot.
    stopping: AtomicBool,
}

/// Durable part of a storage.
pub(super) struct Durable {
    /// The state after all accepted writes; ahead of the published one by the writes that are not yet on
    /// disk.
    pub(super) head: ArcSwap<Snapshot>,
    commits: Arc<CommitQueue>,
    committer: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").field("revision", &self.head.load().revision).finish_non_exhaustive()
    }
}

impl Durable {
    /// Opens or creates a directory and starts its committer.
    pub(super) fn open(
        path: &Path,
        retention: Retention,
        bases: &Bases,
    ) -> Result<(Arc<Shared>, Self), DataDirError> {
        let directory = Directory::open(path)?;
        let (mut snapshot, log) = recover::recover(&directory)?;
        snapshot.delta_encode(bases);
        Self::start(directory, snapshot, log, retention, SNAPSHOT_AT_LEAST)
    }

    fn start(
        directory: Directory,
        snapshot: Snapshot,
        log: Log,
        retention: Retention,
        min_length: u64,
    ) -> Result<(Arc<Shared>, Self), DataDirError> {
        let shared = Arc::new(Shared::new(snapshot.clone(), retention));
        let commits = Arc::new(CommitQueue {
            queue: Mutex::default(),
            changed: Condvar::new(),
            notified: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let path = directory.path().to_owned();
        let committer = Committer::new(Arc::clone(&shared), Arc::clone(&commits), directory, log, min_length);
        let thread = std::thread::Builder::new()
            .name("kubewright-log".into())
            .spawn(move || committer.run())
            .map_err(|source| DataDirError::Io { path, operation: "start the writer of", source })?;
        Ok((shared, Self { head: ArcSwap::from_pointee(snapshot), commits, committer: Some(thread) }))
    }

    /// Enqueues an accepted write. The caller holds the storage's write lock, so the queue has the order of
    /// revisions.
    pub(super) fn enqueue(&self, resource: &str, event: Event, snapshot: Snapshot) {
        self.head.store(Arc::new(snapshot.clone()));
        let mut queue = self.commits.queue.lock();
        queue.pending.push(Pending { resource: resource.into(), event, snapshot });
        if queue.pending.len() == 1 {
            self.commits.changed.notify_one();
        }
    }

    /// Returns an error if writes cannot be stored at present. Calling it makes the committer retry.
    pub(super) fn check_writable(&self) -> Result<(), WriteError> {
        let mut queue = self.commits.queue.lock();
        let Some(failure) = queue.failure.clone() else { return Ok(()) };
        queue.retry = true;
        self.commits.changed.notify_one();
        Err(failure)
    }

    /// Registers a waiter for all writes accepted so far.
    fn register(&self, published: &ArcSwap<Snapshot>) -> Option<oneshot::Receiver<Result<(), WriteError>>> {
        let mut queue = self.commits.queue.lock();
        // Load under the queue's lock: the committer publishes before it locks the queue to notify waiters.
        let revision = self.head.load().revision;
        if published.load().revision >= revision {
            return None;
        }
        let (done, receiver) = oneshot::channel();
        match &queue.failure {
            Some(failure) => drop(done.send(Err(failure.clone()))),
            None => queue.waiters.push(Waiter { revision, done }),
        }
        Some(receiver)
    }

    /// Waits until all writes accepted so far are on disk.
    pub(super) async fn flush(&self, published: &ArcSwap<Snapshot>) -> Result<(), WriteError> {
        match self.register(published) {
            None => Ok(()),
            Some(receiver) => receiver.await.unwrap_or(Err(WriteError::Stopping)),
        }
    }

    /// Blocking variant of [`Self::flush`], for starting a server without a runtime.
    pub(super) fn flush_blocking(&self, published: &ArcSwap<Snapshot>) -> Result<(), WriteError> {
        let Some(mut receiver) = self.register(published) else { return Ok(()) };
        let mut queue = self.commits.queue.lock();
        loop {
            match receiver.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Closed) => return Err(WriteError::Stopping),
                // The committer notifies under the same lock and signals it.
                Err(oneshot::error::TryRecvError::Empty) => self.commits.notified.wait(&mut queue),
            }
        }
    }
}

impl Drop for Durable {
    /// Stores the queued writes, then stops the committer.
    fn drop(&mut self) {
        self.commits.stopping.store(true, std::sync::atomic::Ordering::Release);
        self.commits.queue.lock().stopping = true;
        self.commits.changed.notify_all();
        if let Some(thread) = self.committer.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
