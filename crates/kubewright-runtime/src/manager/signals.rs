//! The signals that ask a process to stop.

use std::io;

use futures::future::BoxFuture;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, as often as they come.
pub(super) struct Signals {
    #[cfg(unix)]
    streams: Option<(Signal, Signal)>,
    #[cfg(not(unix))]
    wanted: bool,
}

impl Signals {
    /// Nobody but [`ManagerHandle::stop`](super::ManagerHandle::stop) stops the manager.
    pub(super) fn none() -> Self {
        #[cfg(unix)]
        return Self { streams: None };
        #[cfg(not(unix))]
        return Self { wanted: false };
    }

    /// Listens from now on.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self {
            streams: Some((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)),
        });
        #[cfg(not(unix))]
        return Ok(Self { wanted: true });
    }

    /// Waits for the next one, and names it.
    pub(super) fn next(&mut self) -> BoxFuture<'_, &'static str> {
        Box::pin(async move {
            #[cfg(unix)]
            match &mut self.streams {
                Some((terminate, interrupt)) => {
                    tokio::select! {
                        biased;
                        _ = terminate.recv() => "SIGTERM",
                        _ = interrupt.recv() => "SIGINT",
                    }
                }
                None => std::future::pending().await,
            }
            #[cfg(not(unix))]
            if self.wanted && tokio::signal::ctrl_c().await.is_ok() {
                "Ctrl-C"
            } else {
                std::future::pending().await
            }
        })
    }
}
