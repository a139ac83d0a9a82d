//! Guard of a running task.

use futures::future::BoxFuture;
use tokio::{
    sync::watch,
    task::{JoinHandle, unconstrained},
};

/// Guard of a running informer or reflector. Dropping it stops the task; the cache stays readable.
#[must_use = "dropping this stops what is running"]
pub struct Running {
    task: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Running {
    /// Spawns a task with a future that resolves on stop. The task must yield by itself, see `turns`.
    pub(super) fn spawn<F>(task: impl FnOnce(BoxFuture<'static, ()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = watch::Sender::new(false);
        let mut stopped = stop.subscribe();
        let stopped = Box::pin(async move {
            // An error means that the guard was dropped.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        Self { task: Some(tokio::spawn(unconstrained(task(stopped)))), stop }
    }

    /// Creates a guard without a task, for an informer that was started before.
    pub(super) fn already_started() -> Self {
        Self { task: None, stop: watch::Sender::new(true) }
    }

    /// Stops the task and waits for its end: handlers get no event afterwards.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            // A panic was reported by tokio.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
