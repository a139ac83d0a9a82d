//! Being the leader, for as long as it lasts.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::candidate::{Candidate, Held, Renewal};

/// A term of office, for those who work in it. Clones are the same term.
///
/// It ends once and does not come back: the next election begins another.
#[derive(Clone)]
pub struct Term(Arc<Shared>);

struct Shared {
    identity: String,
    transitions: i32,
    /// Until when we lead unless we renew; nothing once the term has ended.
    until: Mutex<Option<Instant>>,
    token: CancellationToken,
}

impl Term {
    /// Whether we lead at this moment. Reads the time: right even in a process that was stopped for a while and has not
    /// run its timers yet. Ask before every write that only the leader may do.
    pub fn holds(&self) -> bool {
        self.0.until.lock().is_some_and(|until| Instant::now() < until)
    }

    /// Until when we lead unless a renewal succeeds; nothing once the term has ended.
    pub fn until(&self) -> Option<Instant> {
        *self.0.until.lock()
    }

    /// Waits for the end of the term.
    pub async fn ended(&self) {
        self.0.token.cancelled().await;
    }

    /// A token that is cancelled when the term ends. Cancelling it oneself ends nothing else.
    pub fn token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// How often the lease had changed hands when we got it. It grows with every leader: whoever is written to can
    /// refuse a leader of yesterday by it.
    pub fn transitions(&self) -> i32 {
        self.0.transitions
    }

    /// The name under which we lead.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    fn extend(&self, to: Instant) {
        if let Some(until) = &mut *self.0.until.lock() {
            *until = to;
        }
    }

    /// Whether it ended by this call.
    fn end(&self) -> bool {
        let ended = self.0.until.lock().take().is_some();
        self.0.token.cancel();
        ended
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("identity", &self.0.identity)
            .field("transitions", &self.0.transitions)
            .field("holds", &self.holds())
            .finish()
    }
}

/// The guard of a lease: renews it for as long as it lives.
///
/// Stop the work, then drop it or call [`release`](Self::release): both end the term and, unless
/// [`release_on_cancel`](super::Builder::release_on_cancel) was turned off, empty the Lease, so that the next leader
/// starts within seconds. `drop` does so in the background.
///
/// A term that ended because it could not be renewed is never released: the work may take a moment to stop, and the
/// rest of the lease is that moment.
#[must_use = "dropping it gives the lease back at once"]
pub struct Leadership {
    term: Term,
    stop: CancellationToken,
    renewing: Option<JoinHandle<()>>,
}

impl Leadership {
    /// A leadership and the work of keeping it, which must be driven for it to last.
    pub(super) fn begin(candidate: Candidate, held: Held) -> (Self, Renewing) {
        let settings = candidate.settings();
        let term = Term(Arc::new(Shared {
            identity: settings.identity.clone(),
            transitions: held.transitions,
            until: Mutex::new(Some(held.sent + settings.renew_deadline)),
            token: CancellationToken::new(),
        }));
        settings.metrics.leading(&settings.name, true);
        tracing::info!(lease = %settings, identity = settings.identity, transitions = held.transitions, "became leader");
        settings.announce("became leader");
        let stop = CancellationToken::new();
        let renewing = Renewing { candidate, held: Some(held), term: term.clone(), stop: stop.clone() };
        (Self { term, stop, renewing: None }, renewing)
    }

    pub(super) fn spawn(mut self, renewing: Renewing) -> Self {
        self.renewing = Some(tokio::spawn(renewing.run()));
        self
    }

    /// The term, for those who work in it.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// Ends the term and waits until the Lease has been given back, or a renew deadline has passed without success.
    pub async fn release(mut self) {
        self.term.end();
        self.stop.cancel();
        if let Some(renewing) = self.renewing.take() {
            // It fails only by a panic, which has been reported by then.
            let _ = renewing.await;
        }
    }

    /// Ends the term and leaves the Lease as it is: nobody else leads before it has run out. For work that could not be
    /// stopped in an orderly way, of which something may still be on its way.
    pub fn abandon(mut self) {
        self.term.end();
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
        // Whoever still renews at this moment must not take the end of this guard for a wish to release.
        self.stop = CancellationToken::new();
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.term.end();
        self.stop.cancel();
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&self.term).finish()
    }
}

/// Keeps a lease until it is lost or given back.
pub(super) struct Renewing {
    candidate: Candidate,
    held: Option<Held>,
    term: Term,
    stop: CancellationToken,
}

impl Renewing {
    pub(super) async fn run(mut self) {
        let Some(mut held) = self.held.take() else { return };
        let given_back = self.keep(&mut held).await;
        self.ended();
        let settings = Arc::clone(self.candidate.settings());
        if !(given_back && settings.release_on_cancel) {
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

    /// Renews until the lease is lost (false) or no longer wanted (true).
    async fn keep(&mut self, held: &mut Held) -> bool {
        let Self { candidate, term, stop, .. } = self;
        let settings = Arc::clone(candidate.settings());
        let mut next = Instant::now() + settings.retry_period;
        loop {
            let deadline = held.sent + settings.renew_deadline;
            let renewal = async {
                sleep_until(next).await;
                candidate.renew(held).await
            };
            // The deadline comes before the answer: a term that has been over for a moment does not come back.
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
                Ok(Renewal::Renewed) => term.extend(held.sent + settings.renew_deadline),
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
        self.term.end();
        settings.metrics.leading(&settings.name, false);
        settings.announce("stopped leading");
    }
}

impl Drop for Renewing {
    /// Also when the task is gone before its time: a term that nobody renews is over.
    fn drop(&mut self) {
        if self.term.end() {
            let settings = self.candidate.settings();
            settings.metrics.leading(&settings.name, false);
        }
    }
}
