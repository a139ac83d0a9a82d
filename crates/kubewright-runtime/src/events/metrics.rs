//! What became of events, for Prometheus.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use kubewright_core::series::Series;

/// Counts events: `kubewright_events_total`, by `component` and `result`.
///
/// | result | |
/// |---|---|
/// | `written` | created, or its count raised |
/// | `filtered` | too many about the same object; shows in the count of the next that passes |
/// | `dropped` | the buffer was full, or shut down |
/// | `refused` | the server does not want it, or it is about nothing that has a name |
/// | `abandoned` | the server could not be reached for two minutes, or until the end |
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

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Written,
    Filtered,
    Dropped,
    Refused,
    Abandoned,
}

impl EventMetrics {
    /// An empty set.
    pub fn new() -> Self {
        Self(Arc::new(Series::new(["component", "result"])))
    }

    /// The set of the process, in which events are counted unless they are written by a broadcaster with another.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<EventMetrics> = LazyLock::new(EventMetrics::new);
        &GLOBAL
    }

    pub(super) fn count(&self, component: &str, fate: Fate) {
        let fate = match fate {
            Fate::Written => "written",
            Fate::Filtered => "filtered",
            Fate::Dropped => "dropped",
            Fate::Refused => "refused",
            Fate::Abandoned => "abandoned",
        };
        self.0.count([component, fate]);
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
            "Events that components recorded, by what became of them.",
        )
    }
}

impl fmt::Debug for EventMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventMetrics").finish_non_exhaustive()
    }
}
