//! Runs kubewright and its peers on the same workloads, in turns, and prints one table of ratios.
//!
//! `compare --ours DIR [--kube-rs DIR] [--go DIR] [--real DIR] [--quick] [--repeats N] [--sizes 1000,10000,…]
//! [--foos 1000,10000] [--only WORD,…] [--output table|targets|json] [--chart FILE]`: `make bench` builds the programs and calls it. Peers
//! that were not built are left out.
//!
//! It is also the program of the servers: `compare host …` (src/host.rs) and
//! `compare servers …` (src/apiservers.rs).
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is what the program is for")]

use std::{
    io::IsTerminal as _,
    path::PathBuf,
    process::{Command, ExitCode},
    time::Instant,
};

use kubewright_bench::{apiservers, arguments::Arguments, chart, host, plan::Plan, results::Results, table};
use mimalloc::MiMalloc;
use serde_json::json;

const KNOWN: [&str; 11] =
    ["ours", "kube-rs", "go", "real", "quick", "repeats", "sizes", "foos", "only", "output", "chart"];

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::of_process(&["quick"]);
    let word = |at: usize| arguments.words.get(at).map_or("", String::as_str);
    let mut runtime = match word(0) {
        "host" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let Ok(runtime) = runtime.enable_all().build() else { return ExitCode::FAILURE };
    runtime.block_on(async {
        match word(0) {
            "host" => host::run(word(1)).await,
            "servers" => apiservers::run(word(1), &arguments).await,
            _ => return compare(&arguments).await,
        }
        ExitCode::SUCCESS
    })
}

async fn compare(arguments: &Arguments) -> ExitCode {
    if let Some(unknown) = arguments.unknown(&KNOWN) {
        eprintln!("compare: unknown option --{unknown}; the head of this file names them all");
        return ExitCode::FAILURE;
    }
    let plan = plan(arguments);
    let (began, mut results) = (Instant::now(), Results::default());
    let say = |what: &str| {
        let (start, end) = if std::io::stderr().is_terminal() { ("\r\x1b[2K", "") } else { ("", "\n") };
        eprint!("{start}{:>5.0} s  {what}{end}", began.elapsed().as_secs_f64());
    };
    plan.run(&mut results, &say).await;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
    let versions = versions(&plan);
    if arguments.text("output", "table") == "json" {
        println!("{}", json!({"versions": versions, "failures": results.failures}));
        results.to_json().iter().for_each(|line| println!("{line}"));
    } else {
        for version in &versions {
            println!("{version}");
        }
        let table = match arguments.text("output", "table") {
            "targets" => table::render_targets(&results),
            _ => table::render(&results),
        };
        println!("\n{table}");
        println!("\nAll of it took {:.0} s.", began.elapsed().as_secs_f64());
    }
    // The chart needs all results.
    if arguments.has("chart")
        && plan.only.is_empty()
        && let Err(error) = std::fs::write(arguments.text("chart", ""), chart::render(&results))
    {
        eprintln!("compare: cannot write the chart: {error}");
        return ExitCode::FAILURE;
    }
    if results.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plan(arguments: &Arguments) -> Plan {
    let quick = arguments.has("quick");
    let there = |name: &str| {
        let path = PathBuf::from(arguments.text(name, ""));
        Some(path).filter(|path| !path.as_os_str().is_empty() && path.exists())
    };
    let numbers = |name: &str, otherwise: &str| -> Vec<usize> {
        arguments.text(name, otherwise).split(',').filter_map(|number| number.parse().ok()).collect()
    };
    Plan {
        ours: PathBuf::from(arguments.text("ours", "target/release")),
        kube_rs: there("kube-rs"),
        go: there("go"),
        real: there("real"),
        repeats: arguments.get("repeats", 3).max(1),
        quick,
        only: arguments.text("only", "").to_owned(),
        sizes: numbers("sizes", if quick { "1000,10000,30000" } else { "1000,10000,30000,100000" }),
        foos: numbers("foos", if quick { "1000" } else { "1000,10000" }),
    }
}

/// Returns the versions and the machine.
fn versions(plan: &Plan) -> Vec<String> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    let mut lines = vec![format!(
        "kubewright {}, {}",
        env!("CARGO_PKG_VERSION"),
        said("rustc", &["--version"]).unwrap_or_default()
    )];
    if let Some(go) = &plan.go {
        let modules =
            said("go", &["version", "-m", &go.join("manager").display().to_string()]).unwrap_or_default();
        let version = |module: &str| {
            let line = modules.lines().find(|line| line.contains(&format!("\t{module}\t")));
            line.and_then(|line| line.split('\t').nth(3)).unwrap_or("?").to_owned()
        };
        let go = modules.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or("?").to_owned();
        lines.push(format!(
            "client-go {}, controller-runtime {}, {go}; protobuf for built-in types unless said otherwise, no limit on requests",
            version("k8s.io/client-go"),
            version("sigs.k8s.io/controller-runtime")
        ));
    }
    if plan.kube_rs.is_some() {
        lines.push(format!(
            "kube-rs {} with kube-runtime; stripped: managedFields cleared; tuned: and mimalloc as ours",
            kube_rs_version()
        ));
    }
    if let Some(real) = &plan.real {
        let version = |program: &str| {
            let text = said(&real.join(program).display().to_string(), &["--version"]).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        lines.push(format!(
            "kube-apiserver {}, {}, without fsync",
            version("kube-apiserver"),
            version("etcd")
        ));
    }
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    lines.push(format!(
        "{cores} cores{}, load {} when it ended",
        model.replace('\t', "").replacen(':', ",", 1),
        load.split(' ').next().unwrap_or("?")
    ));
    lines
}

/// Returns the version in the lock file of the peer.
fn kube_rs_version() -> &'static str {
    let lock = include_str!("../../peers/kube-rs/Cargo.lock");
    let at = lock.find("name = \"kube-runtime\"").and_then(|at| lock[at..].lines().nth(1));
    at.and_then(|line| line.split('"').nth(1)).unwrap_or("?")
}
