//! Leader election as the manager uses it.

use futures::future::BoxFuture;

use crate::Error;

/// Decides when this replica leads. The manager acquires leadership once, when all other stages are running.
pub trait LeaderElector: Send + 'static {
    /// Waits until this replica leads.
    fn acquire(self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn HeldLease>, Error>>;
}

/// Leadership that this replica holds.
pub trait HeldLease: Send + 'static {
    /// Waits until leadership is lost. Must return early enough for the leader-elected runnables to stop
    /// before another replica can lead.
    fn lost(&mut self) -> BoxFuture<'_, ()>;

    /// Releases leadership, so that another replica need not wait for it to expire. Called when all runnables
    /// have stopped.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Keeps others waiting until leadership expires. Called when a leader-elected runnable was aborted,
    /// because requests of it may still be in flight.
    fn abandon(self: Box<Self>);
}
