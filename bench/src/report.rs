//! Report of a workload: one line of JSON.

use std::{collections::BTreeMap, time::Instant};

use mimalloc::MiMalloc;
use serde::Serialize;
use stats_alloc::{Region, StatsAlloc};

pub use crate::measure::{cpu_seconds, resident_bytes};

/// Allocator of the programs that count allocations, the same for all implementations.
pub type Counting = StatsAlloc<MiMalloc>;

/// Running measurement.
pub struct Report {
    bench: String,
    implementation: &'static str,
    allocations: Option<Region<'static, MiMalloc>>,
    extra: BTreeMap<&'static str, f64>,
    cpu: f64,
    start: Instant,
}

/// Measured numbers.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Operations per second of wall-clock time.
    pub per_s: f64,
    /// Microseconds of this process's CPU time per operation.
    pub cpu_us_each: f64,
}

#[derive(Serialize)]
struct Line {
    bench: String,
    #[serde(rename = "impl")]
    implementation: &'static str,
    n: usize,
    wall_s: f64,
    cpu_s: f64,
    per_s: f64,
    cpu_us_each: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations_each: Option<f64>,
    #[serde(flatten)]
    extra: BTreeMap<&'static str, f64>,
}

#[allow(clippy::cast_precision_loss)] // counts and bytes are far below 2^52
fn each(total: u64, n: usize) -> f64 {
    total as f64 / n as f64
}

impl Report {
    /// Starts the clock, and counts allocations if the allocator does.
    pub fn start(
        bench: &str,
        implementation: &'static str,
        allocator: impl Into<Option<&'static Counting>>,
    ) -> Self {
        let allocations = allocator.into().map(Region::new);
        let (cpu, start) = (cpu_seconds(), Instant::now());
        Self { bench: bench.to_owned(), implementation, allocations, extra: BTreeMap::new(), cpu, start }
    }

    /// Adds another number per operation to the line.
    #[must_use]
    pub fn with(mut self, name: &'static str, total: u64, n: usize) -> Self {
        self.extra.insert(name, each(total, n));
        self
    }

    /// Stops the clock, prints the line and returns its numbers.
    #[allow(clippy::print_stdout)] // the line is what the program is for
    pub fn finish(self, n: usize) -> Measured {
        let (wall_s, cpu_s) = (self.start.elapsed().as_secs_f64(), cpu_seconds() - self.cpu);
        let line = Line {
            bench: self.bench,
            implementation: self.implementation,
            n,
            wall_s,
            cpu_s,
            per_s: each(n as u64, 1) / wall_s,
            cpu_us_each: cpu_s * 1e6 / each(n as u64, 1),
            allocations_each: self.allocations.map(|region| each(region.change().allocations as u64, n)),
            extra: self.extra,
        };
        let measured = Measured { per_s: line.per_s, cpu_us_each: line.cpu_us_each };
        println!("{}", serde_json::json!(line));
        measured
    }
}
