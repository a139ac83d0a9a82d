//! `fuzz [TARGET…] [--seconds N] [--seed N]`: runs targets, all by default, for a while each.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

use std::{process::ExitCode, time::Duration};

use kubewright_fuzz::{
    driver::{drive, report},
    targets::ALL,
};

fn main() -> ExitCode {
    let (mut names, mut seconds, mut seed) = (Vec::new(), 60, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
        match argument.as_str() {
            "--seconds" => seconds = number().unwrap_or(seconds),
            "--seed" => seed = number().unwrap_or(seed),
            name if ALL.iter().any(|(known, _)| *known == name) => names.push(name.to_owned()),
            other => {
                eprintln!("there is no target {other:?}; usage: fuzz [TARGET…] [--seconds N] [--seed N]");
                return ExitCode::FAILURE;
            }
        }
    }
    // Panics are caught and reported with their input; only the location is printed here.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let mut failed = false;
    for target in ALL.into_iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name)) {
        match drive(target, seed, u64::MAX, Duration::from_secs(seconds)) {
            Ok(summary) => println!(
                "{:<18} {:>9} inputs, {:>4} kept, slowest {:?}",
                target.0, summary.inputs, summary.kept, summary.slowest
            ),
            Err(failure) => {
                report(target.0, &failure);
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
