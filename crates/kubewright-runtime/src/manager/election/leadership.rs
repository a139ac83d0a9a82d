//! Guard and handle of a held lease.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::candidate::{Candidate, Held, Renewal};

/// Handle to an acquired leadership, for the leader's work. Clones refer to the same leadership.
///
/// Leadership ends once; the next [`acquire`](super::LeaderElection::acquire) starts another.
#[derive(Clone)]
pub struct LeadershipHandle(Arc<Shared>);

struct Shared {
    identity: String,
    transitions: i32,
    /// When leadership expires unless it is renewed; `None` once it has ended.
    expires_at: Mutex<Option<Instant>>,
    token: CancellationToken,
}

impl LeadershipHandle {
    /// Whether this process leads now. Reads the clock, so it is right even in a process that was suspended
    /// and has not run its timers yet. Check it before every write that only the leader may do.
    pub fn is_leader(&self) -> bool {
        self.0.expires_at.lock().is_some_and(|until| Instant::now() < until)
    }

    /// When leadership expires unless it is renewed; `None` once it has ended.
    pub fn expires_at(&self) -> Option<Instant> {
        *self.0.expires_at.lock()
    }

    /// Waits until leadership ends.
    pub async fn ended(&self) {
        self.0.token.cancelled().await;
    }

    /// A token that is cancelled when leadership ends. Cancelling the token does not end leadership.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// The value of `leaseTransitions` when the lease was acquired. It grows with every leader, so it can
    /// serve as a fencing token.
    pub fn transitions(&self) -> i32 {
        self.0.transitions
    }

    /// The identity of this leader.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    fn extend(&self, to: Instant) {
        if let Some(until) = &mut *self.0.expires_at.lock() {
            *until = to;
        }
    }

    /// Ends leadership; returns whether this call ended it.
    fn end(&self) -> bool {
        let ended = self.0.expires_at.lock().take().is_some();
        self.0.token.cancel();
        ended
    }
}

impl fmt::Debug for LeadershipHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeadershipHandle")
            .field("identity", &self.0.identity)
            .field("transitions", &self.0.transitions)
            .field("is_leader", &self.is_leader())
            .finish()
    }
}

/// Guard of a lease, which is renewed until the guard is dropped.
///
/// Stop the work, then drop the guard or call [`release`](Self::release): both end leadership and, unless
/// [`release_on_cancel`](super::LeaderElectionBuilder::release_on_cancel) is false, empty the Lease, so that
/// the next leader starts within seconds. `drop` does so in the background.
///
/// A lease that could not be renewed is not released: the rest of its duration is the time in which the work
/// can stop.
#[must_use = "dropping it releases the lease"]
pub struct Leadership {
    handle: LeadershipHandle,
    stop: CancellationToken,
    renewing: Option<JoinHandle<()>>,
}

impl Leadership {
    /// Creates the guard and the renewal, which the caller must run.
    pub(super) fn begin(candidate: Candidate, held: Held) -> (Self, Renewing) {
        let settings = candidate.settings();
        let handle = LeadershipHandle(Arc::new(Shared {
            identity: settings.identity.clone(),
            transitions: held.transitions,
            expires_at: Mutex::new(Some(held.sent + settings.renew_deadline)),
            token: CancellationToken::new(),
        }));
        settings.metrics.leading(&settings.name, true);
        tracing::info!(lease = %settings, identity = settings.identity, transitions = held.transitions, "became leader");
        settings.record_event("became leader");
        let stop = CancellationToken::new();
        let renewing = Renewing { candidate, held: Some(held), handle: handle.clone(), stop: stop.clone() };
        (Self { handle, stop, renewing: None }, renewing)
    }

    pub(super) fn spawn(mut self, renewing: Renewing) -> Self {
        self.renewing = Some(tokio::spawn(renewing.run()));
        self
    }

    /// Returns a handle for the leader's work.
    pub fn handle(&self) -> LeadershipHandle {
        self.handle.clone()
    }

    /// Ends leadership and waits until the Lease has been released, or the renew deadline has passed.
    pub async fn release(mut self) {
        self.handle.end();
        self.stop.cancel();
        if let Some(renewing) = self.renewing.take() {
            // It fails only by a panic, which tokio has reported.
            let _ = renewing.await;
        }
    }

    /// Ends leadership and leaves the Lease as it is, so that others wait for it to expire. For work that
    /// could not be stopped gracefully: requests of it may still be in flight.
    pub fn abandon(mut self) {
        self.handle.end();
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
        // A renewal that is still running must not take the drop of this guard for a release.
        self.stop = CancellationToken::new();
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.handle.end();
        self.stop.cancel();
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&self.handle).finish()
    }
}

/// Renews a lease until it is lost or released.
pub(super) struct Renewing {
    candidate: Candidate,
    held: Option<Held>,
    handle: LeadershipHandle,
    stop: CancellationToken,
}

impl Renewing {
    pub(super) async fn run(mut self) {
        let Some(mut held) = self.held.take() else { return };
        let released = self.renew_until_ended(&mut held).await;
        self.ended();
        let settings = Arc::clone(self.candidate.settings());
        if !(released && settings.release_on_cancel) {
            return;
        }
        match timeout(settings.renew_deadline, self.candidate.release(held)).await {
            Ok(Ok(())) => tracing::info!(lease = %settings, "released the lease"),
            Ok(Err(fault)) => {
                tracing::warn!(lease = %settings, %fault, "could not release the lease; it runs out");
            }
            Err(_) => tracing::warn!(lease = %settings, "no time to release the lease; it runs out"),
        }
    }

    /// Renews until the lease is lost (false) or to be released (true).
    async fn renew_until_ended(&mut self, held: &mut Held) -> bool {
        let Self { candidate, handle, stop, .. } = self;
        let settings = Arc::clone(candidate.settings());
        let mut next = Instant::now() + settings.retry_period;
        loop {
            let deadline = held.sent + settings.renew_deadline;
            let renewal = async {
                sleep_until(next).await;
                candidate.renew(held).await
            };
            // The deadline is checked before the response: leadership that has expired does not come back.
            let renewal = tokio::select! {
                biased;
                () = stop.cancelled() => return true,
                () = sleep_until(deadline) => {
                    tracing::error!(lease = %settings, "the lease could not be renewed in time; no longer leading");
                    return false;
                }
                renewal = renewal => renewal,
            };
            match renewal {
                Ok(Renewal::Renewed) => handle.extend(held.sent + settings.renew_deadline),
                Ok(Renewal::Taken) => {
                    let by = candidate.leader().unwrap_or_default();
                    tracing::error!(lease = %settings, by, "the lease was taken; no longer leading");
                    return false;
                }
                Err(fault) => tracing::warn!(lease = %settings, %fault, "could not renew the lease"),
            }
            next = Instant::now() + settings.retry_period;
        }
    }

    fn ended(&self) {
        let settings = self.candidate.settings();
        self.handle.end();
        settings.metrics.leading(&settings.name, false);
        settings.record_event("stopped leading");
    }
}

impl Drop for Renewing {
    /// Ends leadership when the task is aborted: no renewal follows.
    fn drop(&mut self) {
        if self.handle.end() {
            let settings = self.candidate.settings();
            settings.metrics.leading(&settings.name, false);
        }
    }
}
