//! Measurements of a process: CPU time, memory, percentiles; one line of JSON per phase.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// Returns user and system time of this process.
#[allow(clippy::cast_precision_loss, reason = "seconds and nanoseconds are far below 2^52")]
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the resident memory of this process on Linux; zero elsewhere.
pub fn resident_bytes() -> u64 {
    memory_of("self").0
}

/// Returns the resident memory of a process and its peak on Linux; zero elsewhere.
pub fn memory_of(process: &str) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Returns user and system time of another process in steps of 10 ms on Linux; zero elsewhere.
pub fn cpu_of(process: u32) -> f64 {
    /// Unit of Linux on every platform.
    const TICKS_PER_SECOND: f64 = 100.0;
    let ticks = |stat: &str| -> Option<f64> {
        // The second field is the name in brackets and may contain anything; user and system time are 14 and 15.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
    };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok();
    stat.as_deref().and_then(ticks).unwrap_or(0.0) / TICKS_PER_SECOND
}

/// Running measurement.
#[derive(Debug)]
pub struct Phase {
    cpu: f64,
    start: Instant,
}

impl Phase {
    /// Starts the clock and resets the peak of memory.
    pub fn start() -> Self {
        // Linux: "5" resets VmHWM. Elsewhere the peak is that of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self { cpu: cpu_seconds(), start: Instant::now() }
    }

    /// Returns the measurements since the start, for `n` operations.
    pub fn stop(&self, n: usize) -> Line {
        let (wall, cpu) = (self.start.elapsed(), cpu_seconds() - self.cpu);
        let line = Line::default().with("cpu_s", cpu).with("peak_bytes", memory_of("self").1);
        line.with("cpu_us_each", cpu * 1e6 / count(n)).timed(n, wall)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(n: usize) -> f64 {
    n as f64
}

/// Measurements of a phase.
#[derive(Debug, Default)]
#[must_use = "a line has to be printed"]
pub struct Line(Map<String, Value>);

impl Line {
    /// Adds a number.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the wall time and rate of `n` operations.
    pub fn timed(self, n: usize, wall: Duration) -> Self {
        let wall = wall.as_secs_f64();
        self.with("n", n).with("wall_s", wall).with("per_s", count(n) / wall)
    }

    /// Prints it.
    #[allow(clippy::print_stdout, reason = "the line is what the program is for")]
    pub fn print(mut self, bench: &str, implementation: &str) {
        self.0.insert("bench".to_owned(), bench.into());
        self.0.insert("impl".to_owned(), implementation.into());
        println!("{}", json!(self.0));
    }
}

/// Sorts durations and returns a percentile in microseconds.
pub fn percentile(of: &mut [Duration], percent: usize) -> f64 {
    of.sort_unstable();
    let at = (of.len() * percent / 100).min(of.len().saturating_sub(1));
    of.get(at).map_or(0.0, |duration| duration.as_secs_f64() * 1e6)
}
