//! The last reconciles of a program, for people who want to know what just happened.
//!
//! A [`Journal`] is a ring: it holds the newest reconciles and forgets the oldest. Give one to a manager
//! ([`ManagerBuilder::journal`](crate::manager::ManagerBuilder::journal)) and every controller of it writes there. Metrics
//! count and spans describe what runs; a journal answers "what did it do before this went wrong?" without a subscriber,
//! and in the time of the [`Clock`](kubewright_core::Clock) that the manager has, so that a test in virtual time reads well.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;

use super::Cause;
use kubewright_core::ObjectKey;

/// One reconcile that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// When it began.
    pub at: Timestamp,
    /// Which controller it was.
    pub controller: Arc<str>,
    /// What it reconciled.
    pub key: ObjectKey,
    /// The kind, or the source, that asked first.
    pub source: Arc<str>,
    /// Why it asked.
    pub cause: Cause,
    /// How often the key had failed before.
    pub retries: u32,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub took: Duration,
}

/// How a reconcile ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// There was nothing left to do.
    Done,
    /// It wants to look again soon.
    Requeue,
    /// It wants to look again after this long.
    RequeueAfter(Duration),
    /// It failed and is tried again.
    Failed(String),
    /// It failed in a way that trying again does not mend.
    GaveUp(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Requeue => f.write_str("again soon"),
            Self::RequeueAfter(delay) => write!(f, "again in {delay:?}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::GaveUp(error) => write!(f, "gave up: {error}"),
        }
    }
}

/// The last reconciles. A clone is a handle to the same.
///
/// ```
/// use kubewright::{controller::Journal, manager::Manager};
///
/// let journal = Journal::of(100);
/// let operator = Manager::builder("shop").journal(&journal);
/// assert!(journal.last(10).is_empty()); // nothing has run yet
/// ```
#[derive(Clone)]
pub struct Journal {
    capacity: usize,
    entries: Arc<Mutex<VecDeque<Reconciled>>>,
}

impl Journal {
    /// A journal of so many reconciles.
    pub fn of(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: Arc::default() }
    }

    /// The newest reconciles, at most so many, oldest first.
    pub fn last(&self, count: usize) -> Vec<Reconciled> {
        let entries = self.entries.lock();
        entries.iter().skip(entries.len().saturating_sub(count)).cloned().collect()
    }

    pub(super) fn write(&self, reconciled: Reconciled) {
        let mut entries = self.entries.lock();
        if entries.len() == self.capacity {
            entries.pop_front();
        }
        entries.push_back(reconciled);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.entries.lock().len();
        f.debug_struct("Journal").field("capacity", &self.capacity).field("held", &held).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reconciled(name: &str) -> Reconciled {
        Reconciled {
            at: Timestamp::UNIX_EPOCH,
            controller: "foo".into(),
            key: ObjectKey::namespaced("default", name),
            source: "Foo".into(),
            cause: Cause::Added,
            retries: 0,
            ended: Ended::Done,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_full_journal_forgets_the_oldest_and_tells_the_newest_last() {
        let journal = Journal::of(3);
        for name in ["a", "b", "c", "d"] {
            journal.write(reconciled(name));
        }
        let names = |count| -> Vec<String> {
            journal.last(count).iter().map(|entry| entry.key.name().to_owned()).collect()
        };
        assert_eq!(names(10), ["b", "c", "d"]);
        assert_eq!(names(2), ["c", "d"]);
    }

    #[test]
    fn an_ending_says_what_comes_next() {
        assert_eq!(Ended::RequeueAfter(Duration::from_secs(30)).to_string(), "again in 30s");
        assert_eq!(Ended::GaveUp("no such port".into()).to_string(), "gave up: no such port");
    }
}
