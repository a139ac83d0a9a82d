//! A store that survives its process: a log of writes, snapshots of everything, and one thread that owns both.
//!
//! A write is decided in memory, under the lock that every write takes, and handed to the committer. The committer
//! takes whatever has been handed over since it last looked, appends it as one frame and syncs the file once: all writers
//! in flight share that sync. Only then is the write published: readers and watchers see nothing that a crash could take
//! back, and whoever wrote waits for [`Durable::confirmed`].
//!
//! ```text
//!  put ─▶ head (writers read this) ─▶ queue ─▶ committer: append, sync ─▶ published (readers, watchers) ─▶ answers
//! ```
//!
//! - [`codec`]: one write as bytes. [`frame`]: checksummed groups of them in a file. [`log`]: the file that grows.
//! - [`snapshot`]: the file that lets older logs go. [`recover`]: from a directory back to a store.
//!
//! Pitfall: what the disk refuses stays queued and is tried again with the next write that comes; until it succeeds, writes
//! are refused before they are looked at. A write that was answered with an error may therefore still happen, as any
//! write whose answer is lost.

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
pub use self::error::{DataDirError, NotStored};
use self::{committer::Committer, directory::Directory, log::Log};
use super::{Event, Retention, Shared, Siblings, Snapshot};

/// A log shorter than this is not worth a snapshot.
const SNAPSHOT_AT_LEAST: u64 = 16 << 20;

/// A write that is decided and not yet on disk.
struct Pending {
    resource: Arc<str>,
    event: Event,
    /// Everything that is stored once this write is.
    snapshot: Snapshot,
}

/// Somebody who waits for everything up to a revision.
struct Waiter {
    revision: u64,
    done: oneshot::Sender<Result<(), NotStored>>,
}

#[derive(Default)]
struct Queue {
    pending: Vec<Pending>,
    waiters: Vec<Waiter>,
    /// Why nothing can be stored at present.
    failure: Option<NotStored>,
    /// Somebody wants to know whether the disk takes writes again.
    retry: bool,
    stopping: bool,
}

/// What writers and the committer share.
struct Desk {
    queue: Mutex<Queue>,
    /// There is something to do for the committer.
    changed: Condvar,
    /// Waiters have been answered.
    answered: Condvar,
    /// Tells a snapshot in the making to give up.
    stopping: AtomicBool,
}

/// The durable half of a store.
pub(super) struct Durable {
    /// What writers have decided; ahead of what is published by what is not yet on disk.
    pub(super) head: ArcSwap<Snapshot>,
    desk: Arc<Desk>,
    committer: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").field("revision", &self.head.load().revision).finish_non_exhaustive()
    }
}

impl Durable {
    /// Opens a directory, or makes it, and starts its committer.
    pub(super) fn open(
        path: &Path,
        retention: Retention,
        siblings: &Siblings,
    ) -> Result<(Arc<Shared>, Self), DataDirError> {
        let directory = Directory::open(path)?;
        let (mut snapshot, log) = recover::recover(&directory)?;
        snapshot.gather(siblings);
        Self::start(directory, snapshot, log, retention, SNAPSHOT_AT_LEAST)
    }

    fn start(
        directory: Directory,
        snapshot: Snapshot,
        log: Log,
        retention: Retention,
        least: u64,
    ) -> Result<(Arc<Shared>, Self), DataDirError> {
        let shared = Arc::new(Shared::starting_with(snapshot.clone(), retention));
        let desk = Arc::new(Desk {
            queue: Mutex::default(),
            changed: Condvar::new(),
            answered: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let path = directory.path().to_owned();
        let committer = Committer::new(Arc::clone(&shared), Arc::clone(&desk), directory, log, least);
        let thread = std::thread::Builder::new()
            .name("kubewright-log".into())
            .spawn(move || committer.run())
            .map_err(|source| DataDirError::Io { path, operation: "start the writer of", source })?;
        Ok((shared, Self { head: ArcSwap::from_pointee(snapshot), desk, committer: Some(thread) }))
    }

    /// Hands a decided write to the committer. The caller holds the store's write lock, so the order is the decided one.
    pub(super) fn hand_over(&self, resource: &str, event: Event, snapshot: Snapshot) {
        self.head.store(Arc::new(snapshot.clone()));
        let mut queue = self.desk.queue.lock();
        queue.pending.push(Pending { resource: resource.into(), event, snapshot });
        if queue.pending.len() == 1 {
            self.desk.changed.notify_one();
        }
    }

    /// Whether writes can be taken at present. Asking is what makes a full disk be tried again.
    pub(super) fn accepts(&self) -> Result<(), NotStored> {
        let mut queue = self.desk.queue.lock();
        let Some(failure) = queue.failure.clone() else { return Ok(()) };
        queue.retry = true;
        self.desk.changed.notify_one();
        Err(failure)
    }

    /// Registers for everything that has been decided so far.
    fn register(&self, published: &ArcSwap<Snapshot>) -> Option<oneshot::Receiver<Result<(), NotStored>>> {
        let mut queue = self.desk.queue.lock();
        // Read under the queue's lock: the committer publishes before it takes it to wake those who wait.
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

    /// Waits until everything that has been decided so far is on disk.
    pub(super) async fn confirmed(&self, published: &ArcSwap<Snapshot>) -> Result<(), NotStored> {
        match self.register(published) {
            None => Ok(()),
            Some(receiver) => receiver.await.unwrap_or(Err(NotStored::Stopping)),
        }
    }

    /// The same for whoever starts a server and has no runtime yet.
    pub(super) fn confirmed_blocking(&self, published: &ArcSwap<Snapshot>) -> Result<(), NotStored> {
        let Some(mut receiver) = self.register(published) else { return Ok(()) };
        let mut queue = self.desk.queue.lock();
        loop {
            match receiver.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Closed) => return Err(NotStored::Stopping),
                // The committer answers under the same lock, and says that it has.
                Err(oneshot::error::TryRecvError::Empty) => self.desk.answered.wait(&mut queue),
            }
        }
    }
}

impl Drop for Durable {
    /// Writes what is queued, then stops.
    fn drop(&mut self) {
        self.desk.stopping.store(true, std::sync::atomic::Ordering::Release);
        self.desk.queue.lock().stopping = true;
        self.desk.changed.notify_all();
        if let Some(thread) = self.committer.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
