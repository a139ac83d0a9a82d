//! client-go's metrics of work queues, for Prometheus.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock, Weak},
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::meter::{BOUNDS, Histogram, Reading, Totals};

/// The metrics of a set of queues, under the names that client-go and controller-runtime give them.
///
/// | metric | type | |
/// |---|---|---|
/// | `workqueue_depth` | gauge | keys that wait for a worker |
/// | `workqueue_adds_total` | counter | keys that came in, without duplicates |
/// | `workqueue_queue_duration_seconds` | histogram | from becoming ready to being taken |
/// | `workqueue_work_duration_seconds` | histogram | from being taken to being done |
/// | `workqueue_unfinished_work_seconds` | gauge | age of what workers have, in sum: grows when they hang |
/// | `workqueue_longest_running_processor_seconds` | gauge | age of the oldest of these |
/// | `workqueue_retries_total` | counter | keys added with a delay |
///
/// Each has the labels `name` and `controller`, both the name of the queue. Queues of the same name are one series,
/// which outlives them. The gauges are right at the moment of the scrape; nothing runs in between.
///
/// ```
/// use kubewright::queue::{QueueMetrics, WorkQueue};
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let metrics = QueueMetrics::new();
/// let queue = WorkQueue::<u32>::builder().name("pods").metrics(&metrics).build();
/// queue.add(1);
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(metrics));
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// assert!(text.contains(r#"workqueue_adds_total{name="pods",controller="pods"} 1"#));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct QueueMetrics {
    series: Arc<Mutex<BTreeMap<Arc<str>, Series>>>,
}

#[derive(Default)]
struct Series {
    /// What queues counted that are gone.
    retired: Totals,
    live: Vec<Live>,
}

struct Live {
    probe: Weak<dyn Probe>,
    /// The totals of the last scrape: they stand in for a queue that is being dropped and has not been retired yet, so
    /// that no counter ever steps back.
    last: Totals,
}

/// A queue, seen by those who measure it.
pub(super) trait Probe: Send + Sync {
    fn read(&self) -> Reading;
}

impl QueueMetrics {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of the process, in which named queues are measured unless they are built with another.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<QueueMetrics> = LazyLock::new(QueueMetrics::new);
        &GLOBAL
    }

    pub(super) fn attach(&self, name: &Arc<str>, probe: Weak<dyn Probe>) {
        let live = Live { probe, last: Totals::default() };
        self.series.lock().entry(Arc::clone(name)).or_default().live.push(live);
    }

    /// A queue is gone.
    pub(super) fn retire(&self, name: &str, totals: &Totals) {
        let mut all = self.series.lock();
        if let Some(series) = all.get_mut(name) {
            // The queue is past upgrading, and its last scrape had at most what it has now; of several that go at the
            // same time any one will do, since each takes out one and adds its own totals.
            if let Some(gone) = series.live.iter().position(|live| live.probe.strong_count() == 0) {
                series.live.swap_remove(gone);
            }
            series.retired.merge(totals);
        }
    }

    fn read(&self) -> Vec<(Arc<str>, Reading)> {
        let mut dropped = Vec::new();
        let mut all = self.series.lock();
        let readings = all
            .iter_mut()
            .map(|(name, series)| {
                let mut sum = Reading { totals: series.retired, ..Reading::default() };
                for live in &mut series.live {
                    let Some(queue) = live.probe.upgrade() else {
                        sum.totals.merge(&live.last);
                        continue;
                    };
                    let one = queue.read();
                    live.last = one.totals;
                    sum.totals.merge(&one.totals);
                    sum.depth += one.depth;
                    sum.unfinished_nanos += one.unfinished_nanos;
                    sum.longest_nanos = sum.longest_nanos.max(one.longest_nanos);
                    // We may hold the last reference by now, and dropping a queue takes the lock that we have.
                    dropped.push(queue);
                }
                (Arc::clone(name), sum)
            })
            .collect();
        drop(all);
        readings
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = self.read();
        let mut family = |name: &str, help: &str, kind: MetricType, value: Value| {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for (queue, reading) in &readings {
                let labels = [("name", &**queue), ("controller", &**queue)];
                value.encode(reading, metric.encode_family(&labels)?)?;
            }
            Ok(())
        };
        family("workqueue_depth", "Keys that wait for a worker.", MetricType::Gauge, Value::Gauge(depth))?;
        // The encoder adds `_total` to the name of a counter.
        family(
            "workqueue_adds",
            "Keys that came into the queue.",
            MetricType::Counter,
            Value::Counter(|reading| reading.totals.adds),
        )?;
        family(
            "workqueue_queue_duration_seconds",
            "How long a key stays in the queue before a worker takes it.",
            MetricType::Histogram,
            Value::Histogram(|reading| &reading.totals.queue_duration),
        )?;
        family(
            "workqueue_work_duration_seconds",
            "How long the work on a key takes.",
            MetricType::Histogram,
            Value::Histogram(|reading| &reading.totals.work_duration),
        )?;
        family(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress that work_duration has not seen yet. Large values mean stuck workers.",
            MetricType::Gauge,
            Value::Gauge(unfinished_seconds),
        )?;
        family(
            "workqueue_longest_running_processor_seconds",
            "How long the longest running worker has been at its key.",
            MetricType::Gauge,
            Value::Gauge(longest_seconds),
        )?;
        family(
            "workqueue_retries",
            "Keys that were added with a delay.",
            MetricType::Counter,
            Value::Counter(|reading| reading.totals.retries),
        )
    }
}

enum Value {
    Gauge(fn(&Reading) -> f64),
    Counter(fn(&Reading) -> u64),
    Histogram(fn(&Reading) -> &Histogram),
}

impl Value {
    fn encode(&self, reading: &Reading, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Gauge(value) => metric.encode_gauge(&value(reading)),
            Self::Counter(value) => metric.encode_counter::<NoLabelSet, _, u64>(&value(reading), None),
            Self::Histogram(value) => {
                let histogram = value(reading);
                let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
                let buckets: Vec<_> = bounds.zip(histogram.buckets).collect();
                metric.encode_histogram::<NoLabelSet>(
                    histogram.sum_seconds(),
                    histogram.count(),
                    &buckets,
                    None,
                )
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a metric is a float
fn depth(reading: &Reading) -> f64 {
    reading.depth as f64
}

#[allow(clippy::cast_precision_loss)] // a metric is a float
fn unfinished_seconds(reading: &Reading) -> f64 {
    reading.unfinished_nanos as f64 / 1e9
}

#[allow(clippy::cast_precision_loss)] // a metric is a float
fn longest_seconds(reading: &Reading) -> f64 {
    reading.longest_nanos as f64 / 1e9
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueMetrics").finish_non_exhaustive()
    }
}
