//! Prometheus metrics of events.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use kubewright_core::series::Series;

/// Metrics of events: `kubewright_events_total`, by `component` and `result`.
///
/// | result | |
/// |---|---|
/// | `written` | created, or its count raised |
/// | `filtered` | rate-limited; shows in the count of the next event that passes |
/// | `dropped` | the buffer was full, or shut down |
/// | `refused` | the server refused it, or its object has no name |
/// | `abandoned` | the server could not be reached for two minutes, or until shutdown |
///
/// ```
/// use kubewright::events::EventMetrics;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(EventMetrics::global().clone()));
/// ```
#[derive(Clone)]
pub struct EventMetrics(Arc<Series<u64, 2>>);

/// Outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    Filtered,
    Dropped,
    Refused,
    Abandoned,
}

impl EventMetrics {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self(Arc::new(Series::new(["component", "result"])))
    }

    /// The global metrics, used unless a broadcaster is built with others.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<EventMetrics> = LazyLock::new(EventMetrics::new);
        &GLOBAL
    }

    pub(super) fn count(&self, component: &str, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Written => "written",
            Outcome::Filtered => "filtered",
            Outcome::Dropped => "dropped",
            Outcome::Refused => "refused",
            Outcome::Abandoned => "abandoned",
        };
        self.0.count([component, outcome]);
    }
}

impl Default for EventMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector for EventMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode_counter(
            &mut encoder,
            "kubewright_events",
            "Events that components recorded, by result.",
        )
    }
}

impl fmt::Debug for EventMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventMetrics").finish_non_exhaustive()
    }
}
