//! client-go's metrics of leader election, for Prometheus.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use kubewright_core::series::Series;

/// Metrics of leader election, with client-go's names. The label `name` is the name of the Lease.
///
/// | metric | type | |
/// |---|---|---|
/// | `leader_election_master_status` | gauge | 1 while this process leads |
/// | `leader_election_slowpath_total` | counter | renewals that had to read the Lease first, because writing it failed |
///
/// ```
/// use kubewright::manager::election::ElectionMetrics;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(ElectionMetrics::global().clone()));
/// ```
#[derive(Clone)]
pub struct ElectionMetrics(Arc<Inner>);

struct Inner {
    leading: Series<bool, 1>,
    slow: Series<u64, 1>,
}

impl ElectionMetrics {
    /// An empty set.
    pub fn new() -> Self {
        Self(Arc::new(Inner { leading: Series::new(["name"]), slow: Series::new(["name"]) }))
    }

    /// The global metrics, used unless an election is built with others.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<ElectionMetrics> = LazyLock::new(ElectionMetrics::new);
        &GLOBAL
    }

    pub(super) fn leading(&self, name: &str, leads: bool) {
        self.0.leading.update([name], |value| *value = leads);
    }

    pub(super) fn slow_path(&self, name: &str) {
        self.0.slow.count([name]);
    }
}

impl Default for ElectionMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector for ElectionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.leading.encode_gauge(
            &mut encoder,
            "leader_election_master_status",
            "Whether this process leads: 1 it does, 0 it does not.",
        )?;
        self.0.slow.encode_counter(
            &mut encoder,
            "leader_election_slowpath",
            "Renewals that had to read the Lease first.",
        )
    }
}

impl fmt::Debug for ElectionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionMetrics").finish_non_exhaustive()
    }
}
