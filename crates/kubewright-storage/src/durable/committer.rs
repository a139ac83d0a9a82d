//! The thread that owns the files.

use std::{
    mem,
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
};

use super::{Desk, Pending, directory::Directory, error::NotStored, frame::Kind, log::Log, snapshot};
use crate::{Shared, Snapshot};

/// The owner of the log.
pub(super) struct Committer {
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    directory: Arc<Directory>,
    log: Log,
    /// A log shorter than this is not worth a snapshot.
    least: u64,
    /// The log is replaced by a snapshot at this length: when it has cost as much as the snapshot will.
    rotate_at: u64,
    /// The snapshot in the making; answers how long it became.
    snapshot: Option<JoinHandle<Option<u64>>>,
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        desk: Arc<Desk>,
        directory: Directory,
        log: Log,
        least: u64,
    ) -> Self {
        let base = directory.bases(Kind::Snapshot).unwrap_or_default().last().copied();
        let length =
            base.and_then(|b| std::fs::metadata(directory.file(Kind::Snapshot, b)).ok()).map(|m| m.len());
        Self {
            shared,
            desk,
            directory: Arc::new(directory),
            log,
            least,
            rotate_at: least.max(length.unwrap_or(0)),
            snapshot: None,
        }
    }

    /// Works until told to stop and nothing is left that could be stored.
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
                        self.refuse(mem::take(&mut batch), failure);
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
        let mut queue = self.desk.queue.lock();
        loop {
            let usable = match queue.failure {
                None => true,
                // One that asks whether the disk is well again, and only one that may be.
                Some(NotStored::Refused(_)) => mem::take(&mut queue.retry),
                Some(_) => false,
            };
            if usable && !queue.pending.is_empty() {
                return Some(mem::take(&mut queue.pending));
            }
            if queue.stopping {
                queue.waiters.clear();
                self.desk.answered.notify_all();
                return None;
            }
            self.desk.changed.wait(&mut queue);
        }
    }

    /// Shows to everybody what is on disk now, then answers those who waited for it.
    fn publish(&self, stored: Vec<Pending>) {
        let Some(revision) = stored.last().map(|p| p.event.revision) else { return };
        self.shared.publish_all(stored.into_iter().map(|p| (p.resource, p.event, p.snapshot)));
        let mut queue = self.desk.queue.lock();
        queue.failure = None;
        for waiter in mem::take(&mut queue.waiters) {
            if waiter.revision > revision {
                queue.waiters.push(waiter);
            } else {
                let _ = waiter.done.send(Ok(()));
            }
        }
        self.desk.answered.notify_all();
    }

    /// Tells everybody who waits, and keeps the writes in their place for the next attempt.
    fn refuse(&self, batch: Vec<Pending>, failure: NotStored) {
        let mut queue = self.desk.queue.lock();
        let later = mem::replace(&mut queue.pending, batch);
        queue.pending.extend(later);
        for waiter in queue.waiters.drain(..) {
            let _ = waiter.done.send(Err(failure.clone()));
        }
        queue.failure = Some(failure);
        self.desk.answered.notify_all();
    }

    /// Begins a new log and a snapshot that makes the old one superfluous.
    fn rotate(&mut self) {
        if let Some(done) = self.snapshot.take_if(|s| s.is_finished())
            && let Ok(Some(length)) = done.join()
        {
            self.rotate_at = self.least.max(length);
        }
        if self.log.len() < self.rotate_at || self.snapshot.is_some() {
            return;
        }
        let state = self.shared.committed();
        match Log::create(&self.directory, state.revision) {
            Ok(log) => self.log = log,
            Err(error) => {
                tracing::warn!(%error, "no new log could be begun; the old one goes on");
                self.rotate_at = self.rotate_at.saturating_mul(2);
                return;
            }
        }
        let (directory, desk) = (Arc::clone(&self.directory), Arc::clone(&self.desk));
        let thread = std::thread::Builder::new()
            .name("kubewright-snapshot".into())
            .spawn(move || take_snapshot(&directory, &state, &desk.stopping));
        match thread {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => tracing::warn!(%error, "no snapshot could be begun; the logs stay"),
        }
    }
}

fn take_snapshot(directory: &Directory, state: &Snapshot, stop: &AtomicBool) -> Option<u64> {
    let written = snapshot::write(directory, state, stop).and_then(|length| {
        if length.is_some() {
            directory.forget_before(state.revision)?;
        }
        Ok(length)
    });
    written.unwrap_or_else(|error| {
        tracing::warn!(%error, "no snapshot was taken; the logs stay and the next one takes their place");
        None
    })
}
