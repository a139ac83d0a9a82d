//! Something that runs until its guard is dropped.

use futures::future::BoxFuture;
use tokio::{
    sync::watch,
    task::{JoinHandle, unconstrained},
};

/// A running informer or reflector. Dropping this stops it; its cache and handles stay readable.
#[must_use = "dropping this stops what is running"]
pub struct Running {
    task: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Running {
    /// Spawns a task that is given a future to stop at. It has to give way by itself, see `turns`.
    pub(super) fn spawn<F>(task: impl FnOnce(BoxFuture<'static, ()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = watch::Sender::new(false);
        let mut stopped = stop.subscribe();
        let stopped = Box::pin(async move {
            // An error means that the guard is gone, which is the same.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        Self { task: Some(tokio::spawn(unconstrained(task(stopped)))), stop }
    }

    /// A guard of nothing, for what runs already under another guard.
    pub(super) fn nothing() -> Self {
        Self { task: None, stop: watch::Sender::new(true) }
    }

    /// Stops it and waits until it has: no handler is sent anything afterwards.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            // The task can only have ended by itself or by a panic, which tokio has told of.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
