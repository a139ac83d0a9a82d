//! What a reconciler says at the end.

use std::time::Duration;

/// What happens to the key after a reconcile that went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an action is what a reconciler returns"]
pub struct Action(pub(super) Next);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Done,
    Requeue,
    After(Duration),
}

impl Action {
    /// All is as it should be: the key waits for the next event.
    pub const fn done() -> Self {
        Self(Next::Done)
    }

    /// Not finished: the key comes back with back-off, as after a failure but without an error.
    pub const fn requeue() -> Self {
        Self(Next::Requeue)
    }

    /// Come back after so long, or at the next event if that is earlier. No delay is [`done`](Self::done).
    pub const fn requeue_after(delay: Duration) -> Self {
        if delay.is_zero() { Self::done() } else { Self(Next::After(delay)) }
    }
}
