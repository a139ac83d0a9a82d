//! Counters with labels, scraped in the order of their labels.
//!
//! prometheus-client's own `Family` keeps its series in a randomly seeded map, so two scrapes of two runs would differ.

use std::{collections::BTreeMap, fmt};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// One name and the values of its labels.
pub(crate) struct Series<V, const LABELS: usize> {
    labels: [&'static str; LABELS],
    values: Mutex<BTreeMap<[String; LABELS], V>>,
}

impl<V: Default, const LABELS: usize> Series<V, LABELS> {
    pub(crate) fn new(labels: [&'static str; LABELS]) -> Self {
        Self { labels, values: Mutex::new(BTreeMap::new()) }
    }

    /// Changes one value; it starts at its default.
    pub(crate) fn change(&self, labels: [&str; LABELS], change: impl FnOnce(&mut V)) {
        let mut values = self.values.lock();
        change(values.entry(labels.map(str::to_owned)).or_default());
    }

    fn pairs<'a>(&'a self, values: &'a [String; LABELS]) -> [(&'a str, &'a str); LABELS] {
        std::array::from_fn(|at| (self.labels[at], values[at].as_str()))
    }
}

impl<const LABELS: usize> Series<u64, LABELS> {
    /// Counts one.
    pub(crate) fn count(&self, labels: [&str; LABELS]) {
        self.change(labels, |count| *count += 1);
    }

    /// The encoder adds `_total` to the name.
    pub(crate) fn encode_counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in &*self.values.lock() {
            let pairs = self.pairs(labels);
            metric.encode_family(&pairs)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }
}

impl<const LABELS: usize> Series<bool, LABELS> {
    /// 1 for true, 0 for false.
    pub(crate) fn encode_gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in &*self.values.lock() {
            let pairs = self.pairs(labels);
            metric.encode_family(&pairs)?.encode_gauge(&i64::from(*value))?;
        }
        Ok(())
    }
}
