//! Contestants side by side.
//!
//! They run in turns, so that whatever else the machine does meanwhile hits all of them alike, and each workload in a
//! process of its own, so that none inherits the other's heap. The table shows medians; the ratio is against the first
//! contestant.

use std::{
    fmt::{self, Write},
    io,
    process::Command,
};

use crate::Line;

/// A program that does workloads: it is run with the name of one as its last argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contestant {
    /// What the table calls it.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The command line was not understood.
    #[error("{0:?} is not a contestant: write it as NAME=PROGRAM")]
    NotAContestant(String),
    /// The program could not be started.
    #[error("cannot run {program}: {source}; build it first (see the Makefile)")]
    NotStarted {
        /// What should have been run.
        program: String,
        /// Why it was not.
        source: io::Error,
    },
    /// The program failed.
    #[error("{name} failed on workload {workload} ({status}): {stderr}")]
    Failed {
        /// The contestant.
        name: String,
        /// What it was asked to do.
        workload: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// The program printed no line for the workload.
    #[error("{name} printed no result for workload {workload}")]
    Silent {
        /// The contestant.
        name: String,
        /// What it was asked to do.
        workload: String,
    },
}

impl std::str::FromStr for Contestant {
    type Err = CompareError;

    fn from_str(text: &str) -> Result<Self, CompareError> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && !command.trim().is_empty() => {
                Ok(Self { name: name.into(), command: command.split_whitespace().map(Into::into).collect() })
            }
            _ => Err(CompareError::NotAContestant(text.into())),
        }
    }
}

impl Contestant {
    fn run(&self, workload: &str) -> Result<Line, CompareError> {
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| CompareError::NotAContestant(self.name.clone()))?;
        let output = Command::new(program)
            .args(arguments)
            .arg(workload)
            .output()
            .map_err(|source| CompareError::NotStarted { program: program.clone(), source })?;
        if !output.status.success() {
            return Err(CompareError::Failed {
                name: self.name.clone(),
                workload: workload.into(),
                status: output.status,
                stderr: String::from_utf8_lossy(&output.stderr).trim().into(),
            });
        }
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok())
            .find(|line| line.bench == workload)
            .ok_or_else(|| CompareError::Silent { name: self.name.clone(), workload: workload.into() })
    }
}

/// All runs of all contestants.
#[derive(Debug)]
pub struct Comparison {
    names: Vec<String>,
    /// By workload, then by contestant.
    rows: Vec<(String, Vec<Vec<Line>>)>,
}

/// Lets the contestants do the workloads in turns, `repeats` times each. `progress` hears of every line as it comes.
pub fn compare(
    contestants: &[Contestant],
    workloads: &[String],
    repeats: usize,
    mut progress: impl FnMut(&Line),
) -> Result<Comparison, CompareError> {
    let mut rows = vec![];
    for workload in workloads {
        let mut lines = vec![vec![]; contestants.len()];
        for _ in 0..repeats {
            for (contestant, lines) in contestants.iter().zip(&mut lines) {
                let line = contestant.run(workload)?;
                progress(&line);
                lines.push(line);
            }
        }
        rows.push((workload.clone(), lines));
    }
    Ok(Comparison { names: contestants.iter().map(|contestant| contestant.name.clone()).collect(), rows })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut header = vec!["workload".to_owned()];
        for (at, name) in self.names.iter().enumerate() {
            header.push(format!("{name}/s"));
            header.push("spread".into());
            header.push("CPU ns each".into());
            if at > 0 {
                header.push("ratio".into());
                header.push("CPU ratio".into());
            }
        }
        let mut cells = vec![header];
        for (workload, contestants) in &self.rows {
            let mut row = vec![workload.clone()];
            let medians: Vec<_> = contestants.iter().map(|lines| Medians::of(lines)).collect();
            for (at, one) in medians.iter().enumerate() {
                row.push(thousands(one.per_second));
                row.push(format!("±{:.0} %", one.spread * 100.0));
                row.push(format!("{:.0}", one.cpu_nanos));
                if at > 0 {
                    row.push(format!("{:.2}×", one.per_second / medians[0].per_second));
                    row.push(format!("{:.2}×", medians[0].cpu_nanos / one.cpu_nanos));
                }
            }
            cells.push(row);
        }
        f.write_str(&align(&cells))
    }
}

struct Medians {
    per_second: f64,
    cpu_nanos: f64,
    /// Half the distance from the slowest to the fastest run, in parts of the median.
    spread: f64,
}

impl Medians {
    fn of(lines: &[Line]) -> Self {
        let rates: Vec<_> = lines.iter().map(|line| line.per_s).collect();
        let (low, high) =
            rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        let per_second = median(rates);
        let cpu_nanos = median(lines.iter().map(|line| line.cpu_s * 1e9 / f64::from(line.n)).collect());
        Self { per_second, cpu_nanos, spread: (high - low) / 2.0 / per_second }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        even if even.is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// 1234567.8 as `1 234 568`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The first column to the left, all others to the right.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let written =
                if at == 0 { write!(text, "{cell:width$}") } else { write!(text, "  {cell:>width$}") };
            written.expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bench: &str, per_s: f64) -> Line {
        Line {
            bench: bench.into(),
            implementation: "x".into(),
            n: 1000,
            wall_s: 1000.0 / per_s,
            per_s,
            cpu_s: 0.001,
        }
    }

    #[test]
    fn the_table_shows_medians_and_ratios_against_the_first() {
        let theirs = [1_000_000.0, 900_000.0, 1_200_000.0].map(|rate| line("a", rate)).to_vec();
        let ours = [2_500_000.0, 2_400_000.0, 3_000_000.0].map(|rate| line("a", rate)).to_vec();
        let comparison = Comparison {
            names: vec!["theirs".into(), "ours".into()],
            rows: vec![("a".into(), vec![theirs, ours])],
        };
        let expected = "\
workload   theirs/s  spread  CPU ns each     ours/s  spread  CPU ns each  ratio  CPU ratio
a         1 000 000  ±15 %         1000  2 500 000  ±12 %         1000  2.50×      1.00×
";
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&comparison.to_string()), squeeze(expected));
        let lengths: Vec<_> = comparison.to_string().lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths[0], lengths[1], "aligned");
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert!((median(vec![4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_contestant_is_a_name_and_a_command() {
        let contestant: Contestant = "ours=target/queue --fast".parse().unwrap();
        assert_eq!(contestant.command, ["target/queue", "--fast"]);
        for text in ["", "ours", "=x", "ours="] {
            assert!(matches!(text.parse::<Contestant>(), Err(CompareError::NotAContestant(_))), "{text:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let missing = Contestant { name: "x".into(), command: vec!["/no/such/program".into()] };
        let error = compare(&[missing], &["a".into()], 1, |_| {}).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
