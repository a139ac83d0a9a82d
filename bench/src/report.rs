//! One line of JSON per workload: what the runner reads.

use std::{alloc::System, collections::BTreeMap, time::Instant};

use serde::Serialize;
use stats_alloc::{Region, StatsAlloc};

/// A measurement that is under way.
pub struct Report {
    bench: &'static str,
    implementation: &'static str,
    allocations: Region<'static, System>,
    extra: BTreeMap<&'static str, f64>,
    start: Instant,
}

#[derive(Serialize)]
struct Line {
    bench: &'static str,
    #[serde(rename = "impl")]
    implementation: &'static str,
    n: usize,
    wall_s: f64,
    per_s: f64,
    allocations_each: f64,
    #[serde(flatten)]
    extra: BTreeMap<&'static str, f64>,
}

impl Report {
    /// Starts the clock and counts allocations from here.
    pub fn start(bench: &'static str, implementation: &'static str, allocator: &'static StatsAlloc<System>) -> Self {
        let allocations = Region::new(allocator);
        Self { bench, implementation, allocations, extra: BTreeMap::new(), start: Instant::now() }
    }

    /// Adds another number to the line.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        self.extra.insert(name, value);
        self
    }

    /// Stops the clock and prints the line.
    #[allow(clippy::print_stdout)] // the line is what the program is for
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^52
    pub fn finish(self, n: usize) {
        let wall_s = self.start.elapsed().as_secs_f64();
        let line = Line {
            bench: self.bench,
            implementation: self.implementation,
            n,
            wall_s,
            per_s: n as f64 / wall_s,
            allocations_each: self.allocations.change().allocations as f64 / n as f64,
            extra: self.extra,
        };
        println!("{}", serde_json::to_string(&line).expect("numbers and names are always JSON"));
    }
}

/// The resident memory of this process, where the system tells (Linux); zero elsewhere.
pub fn resident_bytes() -> u64 {
    let pages = |text: &str| text.split_whitespace().nth(1)?.parse::<u64>().ok();
    std::fs::read_to_string("/proc/self/statm").ok().as_deref().and_then(pages).unwrap_or(0) * 4096
}
