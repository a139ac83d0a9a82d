//! Who may act.

use futures::future::BoxFuture;

use crate::Error;

/// Decides when this replica leads. The manager asks once, when everything but the elected runs.
pub trait Candidacy: Send + 'static {
    /// Waits until this replica leads.
    fn lead(self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn Tenure>, Error>>;
}

/// The time during which this replica leads.
pub trait Tenure: Send + 'static {
    /// Waits until it no longer does. Nothing of the elected may be under way when another replica begins, so this must be
    /// over while there is still time to stop.
    fn lost(&mut self) -> BoxFuture<'_, ()>;

    /// Gives leadership up, so that another replica need not wait. Called when all is stopped.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Stops holding it without giving it up: others wait until it runs out by itself. Called when something of the
    /// elected had to be dropped, because what it had begun may still be on its way.
    fn abandon(self: Box<Self>);
}
