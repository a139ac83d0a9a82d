//! Signals that stop the process.

use std::io;

use futures::future::BoxFuture;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Stream of SIGTERM and SIGINT.
pub(super) struct Signals {
    #[cfg(unix)]
    streams: Option<(Signal, Signal)>,
    #[cfg(not(unix))]
    enabled: bool,
}

impl Signals {
    /// A stream without signals, for a manager that only [`ManagerHandle::stop`](super::ManagerHandle::stop)
    /// stops.
    pub(super) fn none() -> Self {
        #[cfg(unix)]
        return Self { streams: None };
        #[cfg(not(unix))]
        return Self { enabled: false };
    }

    /// Registers the handlers.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self {
            streams: Some((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)),
        });
        #[cfg(not(unix))]
        return Ok(Self { enabled: true });
    }

    /// Waits for the next signal and returns its name.
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
            if self.enabled && tokio::signal::ctrl_c().await.is_ok() {
                "Ctrl-C"
            } else {
                std::future::pending().await
            }
        })
    }
}
