//! Who may act.

use futures::future::BoxFuture;

use crate::Error;

/// Decides when this replica leads. The manager asks once, when everything but the elected runs.
pub trait Leadership: Send + 'static {
    /// Waits until this replica leads.
    fn lead(self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn Term>, Error>>;
}

/// The time during which this replica leads.
pub trait Term: Send + 'static {
    /// Waits until it no longer does. Nothing of the elected may be under way when another replica begins, so this must be
    /// over while there is still time to stop.
    fn lost(&mut self) -> BoxFuture<'_, ()>;

    /// Gives leadership up, so that another replica need not wait. Called when all is stopped.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}
