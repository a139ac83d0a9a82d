//! Runs contestants in turns and prints a table: `compare WORKLOAD... NAME=PROGRAM...`.

use std::process::ExitCode;

use kubewright_bench::compare::{CompareError, Contestant, compare};

/// How often each contestant does each workload.
const REPEATS: usize = 5;

#[allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool
fn main() -> ExitCode {
    let (contestants, workloads): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|text| text.contains('='));
    if contestants.is_empty() || workloads.is_empty() {
        eprintln!("usage: compare WORKLOAD... NAME=PROGRAM...");
        return ExitCode::from(2);
    }
    let repeats = std::env::var("REPEATS").ok().and_then(|text| text.parse().ok()).unwrap_or(REPEATS);
    let result = contestants
        .iter()
        .map(|text| text.parse::<Contestant>())
        .collect::<Result<Vec<_>, CompareError>>()
        .and_then(|contestants| {
            compare(&contestants, &workloads, repeats, |line| {
                eprintln!("{:20} {:12} {:>12.0}/s", line.bench, line.implementation, line.per_s);
            })
        });
    match result {
        Ok(comparison) => {
            println!("{comparison}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
