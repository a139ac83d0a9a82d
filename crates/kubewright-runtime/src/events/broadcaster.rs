//! From recorders to the API server.

use std::{fmt, time::Duration};

use k8s_openapi::api::core::v1::Event;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    correlator::{Correlation, Correlator},
    metrics::EventMetrics,
    recorder::{Outlet, Recorder},
    writer::Writer,
};
use kubewright_client::Transport;
use kubewright_core::{Clock, Random};

/// Writes the events of all its recorders, in a task of its own.
///
/// Dropping it writes what is left, one try each, in the background; [`shutdown`](Self::shutdown) waits for that.
///
/// ```no_run
/// # async fn example(client: kubewright::kube::Client) {
/// use std::time::Duration;
/// use kubewright::events::EventBroadcaster;
///
/// let events = EventBroadcaster::builder(client).start();
/// let recorder = events.recorder("sample-controller");
/// // … work …
/// events.shutdown(Duration::from_secs(5)).await;
/// # }
/// ```
#[must_use = "dropping it ends the writing of events"]
pub struct EventBroadcaster {
    outlet: Outlet,
    stop: CancellationToken,
    writer: Option<JoinHandle<()>>,
}

impl EventBroadcaster {
    /// Begins a broadcaster with client-go's defaults.
    pub fn builder(client: impl Into<Transport>) -> Builder {
        Builder {
            transport: client.into(),
            buffer: 1000,
            correlation: Correlation::default(),
            clock: Clock::system(),
            random: Random::from_entropy(),
            metrics: EventMetrics::global().clone(),
        }
    }

    /// A recorder for a component, which is shown as the source of its events.
    pub fn recorder(&self, component: &str) -> Recorder {
        Recorder::new(component, self.outlet.clone())
    }

    /// Takes no more events, writes those that are left, one try each, and gives up when the time is over. Tells whether
    /// all were dealt with.
    pub async fn shutdown(mut self, limit: Duration) -> bool {
        self.stop.cancel();
        let Some(mut writer) = self.writer.take() else { return true };
        if tokio::time::timeout(limit, &mut writer).await.is_ok() {
            return true;
        }
        tracing::warn!(?limit, "not all events could be written in time");
        writer.abort();
        false
    }
}

impl Drop for EventBroadcaster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for EventBroadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBroadcaster").finish_non_exhaustive()
    }
}

/// Sets up an [`EventBroadcaster`].
#[must_use = "call start() to begin"]
pub struct Builder {
    transport: Transport,
    buffer: usize,
    correlation: Correlation,
    clock: Clock,
    random: Random,
    metrics: EventMetrics,
}

impl Builder {
    /// How many events may wait to be written (1000). Further ones are dropped.
    pub fn buffer(mut self, events: usize) -> Self {
        self.buffer = events.max(1);
        self
    }

    /// When events are combined, and when there are too many.
    pub fn correlation(mut self, correlation: Correlation) -> Self {
        self.correlation = correlation;
        self
    }

    /// Takes the times of events from this clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Draws the wait before the first retry from this source.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Counts into this set instead of the one of the process.
    pub fn metrics(mut self, metrics: &EventMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Starts the task that writes. Must be called inside a tokio runtime.
    pub fn start(self) -> EventBroadcaster {
        let (sender, receiver) = mpsc::channel::<Event>(self.buffer);
        let stop = CancellationToken::new();
        let correlator = Correlator::new(self.correlation, self.random.clone());
        let writer = Writer {
            transport: self.transport,
            correlator,
            random: self.random,
            metrics: self.metrics.clone(),
            stop: stop.clone(),
        };
        let writer = Some(tokio::spawn(writer.run(receiver)));
        let outlet = Outlet::Buffer { sender, clock: self.clock, metrics: self.metrics };
        EventBroadcaster { outlet, stop, writer }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("buffer", &self.buffer)
            .field("correlation", &self.correlation)
            .finish_non_exhaustive()
    }
}
