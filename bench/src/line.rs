//! What a contestant measures and prints.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// What a contestant prints for one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The workload.
    pub bench: String,
    /// Whose code ran.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// How many operations it did.
    pub n: u32,
    /// How long they took.
    pub wall_s: f64,
    /// Operations per second.
    pub per_s: f64,
    /// Processor time of the whole process meanwhile.
    pub cpu_s: f64,
}

/// Runs a workload of `n` operations and prints its line.
#[allow(clippy::print_stdout)] // the line is what the program is for
pub async fn measure(bench: &str, implementation: &str, n: u32, run: impl Future<Output = ()>) {
    let (cpu, start) = (cpu_seconds(), Instant::now());
    run.await;
    let wall_s = start.elapsed().as_secs_f64();
    let line = Line {
        bench: bench.into(),
        implementation: implementation.into(),
        n,
        wall_s,
        per_s: f64::from(n) / wall_s,
        cpu_s: cpu_seconds() - cpu,
    };
    match serde_json::to_string(&line) {
        Ok(line) => println!("{line}"),
        Err(error) => println!("{{\"error\":{:?}}}", error.to_string()),
    }
}

/// User and system time of this process where the system tells (Linux), zero elsewhere.
fn cpu_seconds() -> f64 {
    /// What Linux counts in.
    const TICKS_PER_SECOND: f64 = 100.0;
    let ticks = |stat: &str| -> Option<f64> {
        // The second field is the name in brackets and may contain anything; the times are the fields 14 and 15.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ticks(&stat).unwrap_or(0.0) / TICKS_PER_SECOND
}
