//! Runs kubewright and its peers on the same workloads, in turns, and prints one table of ratios.
//!
//! `compare --ours DIR [--kube-rs BIN] [--go DIR] [--repeats N] [--only WORD] [--output table|json]`: `make bench` builds
//! the programs and calls it. A peer that is not there is left out.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is what the program is for")]

use std::{
    collections::BTreeMap,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use serde_json::{Value, json};

/// What is compared, and which way is better.
const METRICS: [Metric; 6] = [
    Metric { field: "per_s", unit: "operations/s", more_is_better: true },
    Metric { field: "cpu_us_each", unit: "µs CPU each", more_is_better: false },
    Metric { field: "server_cpu_us_each", unit: "µs CPU of server each", more_is_better: false },
    Metric { field: "allocations_each", unit: "allocations each", more_is_better: false },
    Metric { field: "resident_bytes_each", unit: "bytes resident each", more_is_better: false },
    Metric { field: "heap_bytes_each", unit: "bytes of heap each", more_is_better: false },
];

struct Metric {
    field: &'static str,
    unit: &'static str,
    more_is_better: bool,
}

struct Options {
    ours: PathBuf,
    kube_rs: Option<PathBuf>,
    go: Option<PathBuf>,
    repeats: usize,
    only: String,
    json: bool,
}

/// Every value of one metric of one workload of one implementation.
type Samples = BTreeMap<(String, String), BTreeMap<&'static str, Vec<f64>>>;

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|options| compare(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("compare: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        ours: PathBuf::new(),
        kube_rs: None,
        go: None,
        repeats: 5,
        only: String::new(),
        json: false,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--ours" => options.ours = value.into(),
            "--kube-rs" => options.kube_rs = Some(value.into()).filter(|path: &PathBuf| path.exists()),
            "--go" => options.go = Some(value.into()).filter(|path: &PathBuf| path.exists()),
            "--repeats" => {
                options.repeats = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
            }
            "--only" => options.only = value,
            "--output" => options.json = value == "json",
            _ => return Err(format!("unknown option {name}; the head of this file names them all")),
        }
    }
    Ok(options)
}

/// Who runs what: each round runs every command of a group once, so that all meet the same machine.
fn rounds(options: &Options) -> Vec<Vec<(PathBuf, Vec<&'static str>)>> {
    let ours = |program: &str| options.ours.join(program);
    let kube_rs = |arguments: &[&'static str]| options.kube_rs.clone().map(|path| (path, arguments.to_vec()));
    let go = |program: &str| options.go.as_ref().map(|path| (path.join(program), vec![]));
    let with = |own: (PathBuf, Vec<&'static str>), peers: Vec<Option<(PathBuf, Vec<&'static str>)>>| {
        std::iter::once(own).chain(peers.into_iter().flatten()).collect()
    };
    vec![
        with((ours("cache"), vec!["events"]), vec![kube_rs(&["events"])]),
        with((ours("cache"), vec!["sync", "10000"]), vec![kube_rs(&["sync", "10000"])]),
        with((ours("cache"), vec!["memory", "100000"]), vec![]),
        with((ours("indexer"), vec![]), vec![go("indexer")]),
        with((ours("queue"), vec![]), vec![go("queue")]),
        with((ours("server"), vec!["start"]), vec![]),
        with((ours("server"), vec!["create"]), vec![]),
        with((ours("server"), vec!["create-tls"]), vec![]),
        with((ours("server"), vec!["create-durable"]), vec![]),
        with((ours("server"), vec!["list"]), vec![]),
        with((ours("server"), vec!["fan-out"]), vec![]),
    ]
}

fn compare(options: &Options) -> Result<(), String> {
    let mut samples = Samples::new();
    let rounds: Vec<_> = rounds(options)
        .into_iter()
        .filter(|round| format!("{:?}", round[0]).contains(&options.only))
        .collect();
    for (at, round) in rounds.iter().enumerate() {
        // Filling a cache with 100,000 Pods takes its time and varies little.
        let repeats = if round[0].1.first() == Some(&"memory") { 1 } else { options.repeats };
        for repeat in 1..=repeats {
            for (program, arguments) in round {
                progress(at + 1, rounds.len(), repeat, program, arguments);
                run(program, arguments, &mut samples)?;
            }
        }
    }
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
    if options.json {
        print_json(&samples);
    } else {
        print_table(&samples);
    }
    Ok(())
}

fn progress(round: usize, rounds: usize, repeat: usize, program: &Path, arguments: &[&str]) {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let (start, end) = if std::io::stderr().is_terminal() { ("\r\x1b[2K", "") } else { ("", "\n") };
    eprint!("{start}[{round}/{rounds}] run {repeat}: {name} {}{end}", arguments.join(" "));
}

fn run(program: &Path, arguments: &[&str], samples: &mut Samples) -> Result<(), String> {
    let failed = |reason: String| format!("{} {}: {reason}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| failed(error.to_string()))?;
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let held = samples.entry((text("bench"), text("impl"))).or_default();
        for metric in &METRICS {
            if let Some(value) = line[metric.field].as_f64() {
                held.entry(metric.field).or_default().push(value);
            }
        }
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// How far the values lie apart, as a share of the median.
fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    (high - low) / median(values)
}

fn shown(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.1} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

fn print_table(samples: &Samples) {
    println!(
        "{:<30} {:<20} {:>11} {:>6}   {:<10} {:>11} {:>6}   {:>8}",
        "workload", "metric", "kubewright", "±", "peer", "", "±", "ratio"
    );
    for ((bench, implementation), metrics) in samples {
        if implementation != "kubewright" {
            continue;
        }
        for metric in &METRICS {
            let Some(ours) = metrics.get(metric.field) else { continue };
            let own = format!(
                "{bench:<30} {:<20} {:>11} {:>5.0}%",
                metric.unit,
                shown(median(ours)),
                spread(ours) * 100.0
            );
            let peers: Vec<_> = samples
                .iter()
                .filter(|((other, name), _)| other == bench && name != "kubewright")
                .filter_map(|((_, name), metrics)| Some((name, metrics.get(metric.field)?)))
                .collect();
            if peers.is_empty() {
                println!("{own}");
            }
            for (name, theirs) in peers {
                let ratio = median(ours) / median(theirs);
                let verdict = if (ratio > 1.0) == metric.more_is_better { "" } else { "  (worse)" };
                let (value, spread) = (shown(median(theirs)), spread(theirs) * 100.0);
                println!("{own}   {name:<10} {value:>11} {spread:>5.0}%   {ratio:>7.2}×{verdict}");
            }
        }
    }
}

fn print_json(samples: &Samples) {
    for ((bench, implementation), metrics) in samples {
        let medians: BTreeMap<_, _> = metrics
            .iter()
            .map(|(field, values)| (*field, json!({"median": median(values), "spread": spread(values)})))
            .collect();
        println!("{}", json!({"bench": bench, "impl": implementation, "metrics": medians}));
    }
}
