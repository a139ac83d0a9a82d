//! Results: every number of every run, by workload and implementation.

use indexmap::IndexMap;
use serde_json::{Value, json};

/// Our name in the lines.
pub const OURS: &str = "kubewright";

/// Numbers of one implementation, by their names.
pub type Numbers = IndexMap<String, Vec<f64>>;

/// Results in the order of measurement.
#[derive(Debug, Default)]
pub struct Results {
    workloads: IndexMap<String, IndexMap<String, Numbers>>,
    /// Failed runs, with the reason.
    pub failures: Vec<String>,
}

impl Results {
    /// Records a line that a program has printed.
    pub fn record(&mut self, workload: &str, line: &Value) {
        let implementation = line["impl"].as_str().unwrap_or_default();
        self.record_as(workload, implementation, line);
    }

    /// Records a line under another name of the implementation.
    pub fn record_as(&mut self, workload: &str, implementation: &str, line: &Value) {
        let held = self.workloads.entry(workload.to_owned()).or_default();
        let held = held.entry(implementation.to_owned()).or_default();
        for (name, value) in line.as_object().into_iter().flatten() {
            if let Some(value) = value.as_f64() {
                held.entry(name.clone()).or_default().push(value);
            }
        }
    }

    /// Returns workloads with their implementations.
    pub fn workloads(&self) -> impl Iterator<Item = (&str, &IndexMap<String, Numbers>)> {
        self.workloads.iter().map(|(name, held)| (name.as_str(), held))
    }

    /// Returns the numbers of an implementation.
    pub fn numbers(&self, workload: &str, implementation: &str) -> Option<&Numbers> {
        self.workloads.get(workload)?.get(implementation)
    }

    /// Returns the median of a number.
    pub fn median(&self, workload: &str, implementation: &str, name: &str) -> Option<f64> {
        self.numbers(workload, implementation)?.get(name).map(|values| median(values))
    }

    /// Records the exponent with which CPU time grows between two workloads; 1 is linear.
    pub fn growth(&mut self, from: (&str, f64), to: (&str, f64), title: &str) {
        let implementations: Vec<String> =
            self.workloads.get(to.0).into_iter().flat_map(|held| held.keys().cloned()).collect();
        for implementation in implementations {
            let cpu = |workload: &str| self.median(workload, &implementation, "cpu_s");
            if let (Some(small), Some(large)) = (cpu(from.0), cpu(to.0)) {
                let exponent = (large / small).ln() / (to.1 / from.1).ln();
                self.record_as(title, &implementation, &json!({"exponent": exponent}));
            }
        }
    }

    /// Returns a line of JSON per workload and implementation.
    pub fn to_json(&self) -> Vec<Value> {
        let lines = self.workloads.iter().flat_map(|(workload, held)| {
            held.iter().map(move |(implementation, numbers)| {
                let numbers: serde_json::Map<_, _> = numbers
                    .iter()
                    .map(|(name, values)| {
                        (
                            name.clone(),
                            json!({"median": median(values), "spread": spread(values), "runs": values.len()}),
                        )
                    })
                    .collect();
                json!({"workload": workload, "impl": implementation, "numbers": numbers})
            })
        });
        lines.collect()
    }
}

/// Returns the (upper) median.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the range of the values as a share of the median.
pub fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let median = median(values);
    if median == 0.0 { 0.0 } else { (high - low) / median }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_values_and_the_spread_a_share_of_it() {
        let values = [3.0, 1.0, 2.0];
        assert!((median(&values) - 2.0).abs() < f64::EPSILON);
        assert!((spread(&values) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn growth_is_the_slope_between_two_sizes() {
        let mut results = Results::default();
        results.record("small", &json!({"impl": "kubewright", "cpu_s": 1.0}));
        results.record("large", &json!({"impl": "kubewright", "cpu_s": 100.0}));
        results.growth(("small", 1_000.0), ("large", 10_000.0), "growth");
        assert!((results.median("growth", OURS, "exponent").unwrap() - 2.0).abs() < 1e-9);
    }
}
