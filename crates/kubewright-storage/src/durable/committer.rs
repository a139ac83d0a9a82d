//! Committer: the thread that appends to the log and takes snapshots.

use std::{
    mem,
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
};

use super::{CommitQueue, Pending, directory::Directory, error::WriteError, frame::Kind, log::Log, snapshot};
use crate::{Shared, Snapshot};

/// State of the committer thread.
pub(super) struct Committer {
    shared: Arc<Shared>,
    commits: Arc<CommitQueue>,
    directory: Arc<Directory>,
    log: Log,
    /// Minimum log length for a snapshot.
    min_length: u64,
    /// Log length at which a snapshot is taken: about the size of the snapshot itself.
    rotate_at: u64,
    /// The running snapshot, which returns its length.
    snapshot: Option<JoinHandle<Option<u64>>>,
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        commits: Arc<CommitQueue>,
        directory: Directory,
        log: Log,
        min_length: u64,
    ) -> Self {
        let base = directory.base_revisions(Kind::Snapshot).unwrap_or_default().last().copied();
        let length =
            base.and_then(|b| std::fs::metadata(directory.file(Kind::Snapshot, b)).ok()).map(|m| m.len());
        Self {
            shared,
            commits,
            directory: Arc::new(directory),
            log,
            min_length,
            rotate_at: min_length.max(length.unwrap_or(0)),
            snapshot: None,
        }
    }

    /// Runs until stopped with no writes left that could be stored.
    pub(super) fn run(mut self) {
        while let Some(mut batch) = self.next() {
            while !batch.is_empty() {
                match self.log.append(&batch) {
                    Ok(stored) => {
                        let rest = batch.split_off(stored);
                        self.publish(mem::replace(&mut batch, rest));
                        self.rotate();
                    }
                    Err(failure) => {
                        tracing::error!(%failure, "a write could not be stored");
                        self.fail(mem::take(&mut batch), failure);
                    }
                }
            }
        }
        if let Some(snapshot) = self.snapshot.take() {
            let _ = snapshot.join();
        }
    }

    /// Waits for writes.
    fn next(&self) -> Option<Vec<Pending>> {
        let mut queue = self.commits.queue.lock();
        loop {
            let usable = match queue.failure {
                None => true,
                // After a refused write, retry only if a caller asks; after a failed sync, never.
                Some(WriteError::Refused(_)) => mem::take(&mut queue.retry),
                Some(_) => false,
            };
            if usable && !queue.pending.is_empty() {
                return Some(mem::take(&mut queue.pending));
            }
            if queue.stopping {
                queue.waiters.clear();
                self.commits.notified.notify_all();
                return None;
            }
            self.commits.changed.wait(&mut queue);
        }
    }

    /// Publishes writes that are on disk, then notifies the waiters.
    fn publish(&self, stored: Vec<Pending>) {
        let Some(revision) = stored.last().map(|p| p.event.revision) else { return };
        self.shared.publish_all(stored.into_iter().map(|p| (p.resource, p.event, p.snapshot)));
        let mut queue = self.commits.queue.lock();
        queue.failure = None;
        for waiter in mem::take(&mut queue.waiters) {
            if waiter.revision > revision {
                queue.waiters.push(waiter);
            } else {
                let _ = waiter.done.send(Ok(()));
            }
        }
        self.commits.notified.notify_all();
    }

    /// Fails all waiters, and keeps the writes queued in order for the next attempt.
    fn fail(&self, batch: Vec<Pending>, failure: WriteError) {
        let mut queue = self.commits.queue.lock();
        let later = mem::replace(&mut queue.pending, batch);
        queue.pending.extend(later);
        for waiter in queue.waiters.drain(..) {
            let _ = waiter.done.send(Err(failure.clone()));
        }
        queue.failure = Some(failure);
        self.commits.notified.notify_all();
    }

    /// Starts a new log, and a snapshot that makes the old one obsolete.
    fn rotate(&mut self) {
        if let Some(done) = self.snapshot.take_if(|s| s.is_finished())
            && let Ok(Some(length)) = done.join()
        {
            self.rotate_at = self.min_length.max(length);
        }
        if self.log.len() < self.rotate_at || self.snapshot.is_some() {
            return;
        }
        let state = self.shared.committed();
        match Log::create(&self.directory, state.revision) {
            Ok(log) => self.log = log,
            Err(error) => {
                tracing::warn!(%error, "could not create a new log; continuing with the old one");
                self.rotate_at = self.rotate_at.saturating_mul(2);
                return;
            }
        }
        let (directory, commits) = (Arc::clone(&self.directory), Arc::clone(&self.commits));
        let thread = std::thread::Builder::new()
            .name("kubewright-snapshot".into())
            .spawn(move || take_snapshot(&directory, &state, &commits.stopping));
        match thread {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => tracing::warn!(%error, "could not start a snapshot; keeping the logs"),
        }
    }
}

fn take_snapshot(directory: &Directory, state: &Snapshot, stop: &AtomicBool) -> Option<u64> {
    let written = snapshot::write(directory, state, stop).and_then(|length| {
        if length.is_some() {
            directory.remove_before(state.revision)?;
        }
        Ok(length)
    });
    written.unwrap_or_else(|error| {
        tracing::warn!(%error, "snapshot failed; keeping the logs until the next one");
        None
    })
}
