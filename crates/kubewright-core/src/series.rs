//! Metrics with labels, scraped in the order of their labels.
//!
//! prometheus-client's own `Family` iterates over a randomly seeded map, so that equal runs would scrape
//! differently.

use std::{collections::BTreeMap, fmt};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// The series of one metric, by the values of their labels.
pub struct Series<V, const LABELS: usize> {
    labels: [&'static str; LABELS],
    values: Mutex<BTreeMap<[String; LABELS], V>>,
}

impl<V: Default, const LABELS: usize> Series<V, LABELS> {
    /// Creates a metric with these label names.
    pub fn new(labels: [&'static str; LABELS]) -> Self {
        Self { labels, values: Mutex::new(BTreeMap::new()) }
    }

    /// Changes the value of one series, which starts at its default.
    pub fn update(&self, labels: [&str; LABELS], change: impl FnOnce(&mut V)) {
        let mut values = self.values.lock();
        change(values.entry(labels.map(str::to_owned)).or_default());
    }

    fn pairs<'a>(&'a self, values: &'a [String; LABELS]) -> [(&'a str, &'a str); LABELS] {
        std::array::from_fn(|at| (self.labels[at], values[at].as_str()))
    }
}

impl<const LABELS: usize> Series<u64, LABELS> {
    /// Increments the counter of one series.
    pub fn count(&self, labels: [&str; LABELS]) {
        self.update(labels, |count| *count += 1);
    }

    /// Encodes the series as counters; the encoder adds `_total` to the name.
    pub fn encode_counter(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in &*self.values.lock() {
            let pairs = self.pairs(labels);
            metric.encode_family(&pairs)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }
}

impl<const LABELS: usize> Series<bool, LABELS> {
    /// Encodes the series as gauges: 1 for true, 0 for false.
    pub fn encode_gauge(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in &*self.values.lock() {
            let pairs = self.pairs(labels);
            metric.encode_family(&pairs)?.encode_gauge(&i64::from(*value))?;
        }
        Ok(())
    }
}

/// Histogram of durations.
#[derive(Default)]
pub struct Durations {
    counts: Vec<u64>,
    above: u64,
    sum: f64,
}

impl Durations {
    /// Counts one duration.
    pub fn record(&mut self, bounds: &[f64], seconds: f64) {
        self.counts.resize(bounds.len(), 0);
        self.sum += seconds;
        match bounds.iter().position(|bound| seconds <= *bound) {
            Some(at) => self.counts[at] += 1,
            None => self.above += 1,
        }
    }
}

impl<const LABELS: usize> Series<Durations, LABELS> {
    /// Writes the histogram in the order of its labels.
    pub fn encode_histogram(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        bounds: &[f64],
    ) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, durations) in &*self.values.lock() {
            let pairs = self.pairs(labels);
            let mut buckets: Vec<(f64, u64)> =
                bounds.iter().copied().zip(durations.counts.iter().copied()).collect();
            buckets.push((f64::INFINITY, durations.above));
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_family(&pairs)?.encode_histogram::<NoLabelSet>(
                durations.sum,
                count,
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}
