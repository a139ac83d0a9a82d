//! controller-runtime's metrics of controllers, for Prometheus.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// The metrics of a set of controllers, under the names that controller-runtime gives them.
///
/// | metric | type | |
/// |---|---|---|
/// | `controller_runtime_reconcile_total` | counter, by `result` | `success`, `requeue`, `requeue_after`, `error` |
/// | `controller_runtime_reconcile_errors_total` | counter | errors, panics and time-outs included |
/// | `controller_runtime_terminal_reconcile_errors_total` | counter | errors that are not retried |
/// | `controller_runtime_reconcile_panics_total` | counter | |
/// | `controller_runtime_reconcile_timeouts_total` | counter | |
/// | `controller_runtime_reconcile_time_seconds` | histogram | |
/// | `controller_runtime_max_concurrent_reconciles` | gauge | workers |
/// | `controller_runtime_active_workers` | gauge | of these, at work |
///
/// Each has the label `controller`. Queues are measured by [`QueueMetrics`](kubewright_queue::QueueMetrics); register both.
#[derive(Clone, Default)]
pub struct ControllerMetrics {
    series: Arc<Mutex<BTreeMap<Arc<str>, Arc<Meter>>>>,
}

impl ControllerMetrics {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of the process, in which controllers are measured unless they are built with another.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<ControllerMetrics> = LazyLock::new(ControllerMetrics::new);
        &GLOBAL
    }

    /// What each controller has done so far, by name: for a status page or a log, without a Prometheus.
    ///
    /// ```
    /// use kubewright::controller::ControllerMetrics;
    ///
    /// for controller in ControllerMetrics::global().totals() {
    ///     println!("{}: {} reconciles, {} failed", controller.name, controller.reconciles, controller.errors);
    /// }
    /// ```
    pub fn totals(&self) -> Vec<Totals> {
        let series = self.series.lock();
        series.iter().map(|(name, meter)| meter.totals(Arc::clone(name))).collect()
    }

    /// The numbers of one controller; two of the same name share them.
    pub(super) fn meter(&self, controller: &str) -> Arc<Meter> {
        Arc::clone(self.series.lock().entry(controller.into()).or_default())
    }
}

/// What one controller has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Its name.
    pub name: Arc<str>,
    /// How many reconciles have ended.
    pub reconciles: u64,
    /// How many of these failed.
    pub errors: u64,
    /// How long they took together.
    pub time: Duration,
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Success,
    Requeue,
    RequeueAfter,
    Error,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        RESULTS[self as usize]
    }
}

const RESULTS: [&str; 4] = ["success", "requeue", "requeue_after", "error"];

/// controller-runtime's bounds, in seconds.
const BOUNDS: [f64; 39] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0,
];
const LAST_BOUND: f64 = 60.0;

/// The numbers of one controller.
pub(super) struct Meter {
    results: [AtomicU64; 4],
    terminal: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    workers: AtomicU64,
    active: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len() + 2],
    nanos: AtomicU64,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            results: Default::default(),
            terminal: AtomicU64::default(),
            panics: AtomicU64::default(),
            timeouts: AtomicU64::default(),
            workers: AtomicU64::default(),
            active: AtomicU64::default(),
            buckets: std::array::from_fn(|_| AtomicU64::default()),
            nanos: AtomicU64::default(),
        }
    }
}

/// A worker at work; ends with the guard.
pub(super) struct Active<'m>(&'m Meter);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Meter {
    pub(super) fn begin(&self) -> Active<'_> {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self)
    }

    pub(super) fn observe(&self, outcome: Outcome, took: Duration) {
        self.results[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        let bucket = bucket.unwrap_or(BOUNDS.len() + usize::from(seconds > LAST_BOUND));
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn totals(&self, name: Arc<str>) -> Totals {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        Totals {
            name,
            reconciles: self.results.iter().map(read).sum(),
            errors: read(&self.results[Outcome::Error as usize]),
            time: Duration::from_nanos(read(&self.nanos)),
        }
    }

    pub(super) fn set_workers(&self, workers: usize) {
        self.workers.store(workers as u64, Ordering::Relaxed);
    }

    pub(super) fn count_terminal(&self) {
        self.terminal.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_timeout(&self) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
    }
}

/// A metric with one number per controller: its name, what it is, and where it is kept.
type Single = (&'static str, &'static str, fn(&Meter) -> &AtomicU64);

impl Collector for ControllerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let series: Vec<_> =
            self.series.lock().iter().map(|(name, meter)| (name.clone(), meter.clone())).collect();
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);

        // The encoder adds `_total` to the name of a counter.
        let help = "Reconciles, by result.";
        let mut metric =
            encoder.encode_descriptor("controller_runtime_reconcile", help, None, MetricType::Counter)?;
        for (name, meter) in &series {
            for (result, count) in RESULTS.iter().zip(&meter.results) {
                let labels = [("controller", &**name), ("result", *result)];
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&read(count), None)?;
            }
        }
        let counters: [Single; 4] = [
            ("controller_runtime_reconcile_errors", "Reconciles that failed.", |meter| {
                &meter.results[Outcome::Error as usize]
            }),
            ("controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good.", |meter| {
                &meter.terminal
            }),
            ("controller_runtime_reconcile_panics", "Reconciles that panicked.", |meter| &meter.panics),
            ("controller_runtime_reconcile_timeouts", "Reconciles that took too long.", |meter| {
                &meter.timeouts
            }),
        ];
        for (name, help, value) in counters {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (controller, meter) in &series {
                let labels = [("controller", &**controller)];
                let count = read(value(meter));
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        let gauges: [Single; 2] = [
            ("controller_runtime_max_concurrent_reconciles", "Workers.", |meter| &meter.workers),
            ("controller_runtime_active_workers", "Workers at work.", |meter| &meter.active),
        ];
        for (name, help, value) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (controller, meter) in &series {
                let labels = [("controller", &**controller)];
                let now = i64::try_from(read(value(meter))).unwrap_or(i64::MAX);
                metric.encode_family(&labels)?.encode_gauge(&now)?;
            }
        }
        let help = "How long reconciles take.";
        let name = "controller_runtime_reconcile_time_seconds";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (controller, meter) in &series {
            let labels = [("controller", &**controller)];
            let bounds = BOUNDS.into_iter().chain([LAST_BOUND, f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(meter.buckets.iter().map(read)).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = Duration::from_nanos(read(&meter.nanos)).as_secs_f64();
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").finish_non_exhaustive()
    }
}
