//! Writes recorded events to the API server.

use std::{fmt, time::Duration};

use k8s_openapi::api::core::v1::Event;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    correlator::{Correlator, CorrelatorOptions},
    metrics::EventMetrics,
    recorder::{Recorder, Sink},
    writer::Writer,
};
use kubewright_client::Transport;
use kubewright_core::{Clock, Random};

/// Writes the events of all its recorders to the API server, in a task of its own.
///
/// Dropping it writes the remaining events in the background, with one attempt each;
/// [`shutdown`](Self::shutdown) waits for that.
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
#[must_use = "dropping it stops the writing of events"]
pub struct EventBroadcaster {
    sink: Sink,
    stop: CancellationToken,
    writer: Option<JoinHandle<()>>,
}

impl EventBroadcaster {
    /// Creates a builder with client-go's defaults.
    pub fn builder(client: impl Into<Transport>) -> EventBroadcasterBuilder {
        EventBroadcasterBuilder {
            transport: client.into(),
            buffer: 1000,
            correlator_options: CorrelatorOptions::default(),
            clock: Clock::system(),
            random: Random::from_entropy(),
            metrics: EventMetrics::global().clone(),
        }
    }

    /// Creates a recorder for a component, which is the source of its events.
    pub fn recorder(&self, component: &str) -> Recorder {
        Recorder::new(component, self.sink.clone())
    }

    /// Accepts no more events and writes the remaining ones, with one attempt each, within the time limit.
    /// Returns whether all were processed.
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

/// Builder of an [`EventBroadcaster`].
#[must_use = "call start() to get the broadcaster"]
pub struct EventBroadcasterBuilder {
    transport: Transport,
    buffer: usize,
    correlator_options: CorrelatorOptions,
    clock: Clock,
    random: Random,
    metrics: EventMetrics,
}

impl EventBroadcasterBuilder {
    /// Sets the size of the buffer (1000). Events are dropped while it is full.
    pub fn buffer(mut self, events: usize) -> Self {
        self.buffer = events.max(1);
        self
    }

    /// Sets when events are aggregated and rate-limited.
    pub fn correlator_options(mut self, options: CorrelatorOptions) -> Self {
        self.correlator_options = options;
        self
    }

    /// Sets the clock for the timestamps of events.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of the jitter of retries and of event names.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Uses these metrics instead of the global ones.
    pub fn metrics(mut self, metrics: &EventMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Starts the writing task. Must be called inside a tokio runtime.
    pub fn start(self) -> EventBroadcaster {
        let (sender, receiver) = mpsc::channel::<Event>(self.buffer);
        let stop = CancellationToken::new();
        let correlator = Correlator::new(self.correlator_options, self.random.clone());
        let writer = Writer {
            transport: self.transport,
            correlator,
            random: self.random,
            metrics: self.metrics.clone(),
            stop: stop.clone(),
        };
        let writer = Some(tokio::spawn(writer.run(receiver)));
        let sink = Sink::Buffer { sender, clock: self.clock, metrics: self.metrics };
        EventBroadcaster { sink, stop, writer }
    }
}

impl fmt::Debug for EventBroadcasterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBroadcasterBuilder")
            .field("buffer", &self.buffer)
            .field("correlator_options", &self.correlator_options)
            .finish_non_exhaustive()
    }
}
