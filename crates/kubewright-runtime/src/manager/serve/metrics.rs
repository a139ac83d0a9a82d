//! Metrics of the process.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{controller::ControllerMetrics, events::EventMetrics, manager::election::ElectionMetrics};
use kubewright_client::transport::RestMetrics;
use kubewright_queue::QueueMetrics;

/// Registry of metrics that a server exposes. Clones share the registry.
///
/// ```
/// use kubewright::manager::serve::Metrics;
/// use prometheus_client::metrics::counter::Counter;
///
/// let (metrics, carts) = (Metrics::new(), Counter::<u64>::default());
/// metrics.register(|registry| registry.register("shop_carts", "Carts that were filled.", carts.clone()));
/// carts.inc();
/// assert!(metrics.text()?.contains("shop_carts_total 1"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Clone)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Metrics {
    /// Creates a registry with kubewright's global metrics: controllers, work queues, requests, events and
    /// elections.
    pub fn new() -> Self {
        let metrics = Self::empty();
        metrics.register(|registry| {
            registry.register_collector(Box::new(ControllerMetrics::global().clone()));
            registry.register_collector(Box::new(QueueMetrics::global().clone()));
            registry.register_collector(Box::new(RestMetrics::global().clone()));
            registry.register_collector(Box::new(EventMetrics::global().clone()));
            registry.register_collector(Box::new(ElectionMetrics::global().clone()));
        });
        metrics
    }

    /// The global registry, which a manager serves. Register your own metrics here.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<Metrics> = LazyLock::new(Metrics::new);
        &GLOBAL
    }

    /// Creates an empty registry.
    pub fn empty() -> Self {
        Self(Arc::new(Mutex::new(Registry::default())))
    }

    /// Registers metrics.
    pub fn register(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.0.lock());
    }

    /// Encodes all metrics as `OpenMetrics` text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0.lock())?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
