//! Replays what was recorded with a real kube-controller-manager against the built-in controllers, in process, in
//! virtual time and in parallel.
//!
//! The machinery is the API server's own (see its `tests/golden`); here each scenario gets a cluster with all
//! controllers and no nodes. `passing.txt` names the scenarios that pass, and the test fails when that list is not the
//! truth. `GOLDEN_UPDATE=1` writes it anew; `GOLDEN=name` replays what matches and prints every difference.

#[path = "../../../kubewright-apiserver/tests/golden/compare.rs"]
mod compare;
#[path = "../../../kubewright-apiserver/tests/golden/ordered.rs"]
mod ordered;
#[path = "../../../kubewright-apiserver/tests/golden/scenario.rs"]
mod scenario;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use kubewright_cluster::Cluster;
use parking_lot::Mutex;
use scenario::Scenario;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn scenarios(filter: Option<&str>) -> Vec<Scenario> {
    let folder = fs::read_dir(home().join("transcripts")).expect("the recordings are beside the test");
    let mut found = Vec::new();
    for file in folder.map(|entry| entry.expect("a folder can be read").path()) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if filter.is_none_or(|wanted| name.contains(wanted)) {
            let recording = fs::read_to_string(&file).expect("a recording can be read");
            found.push(Scenario::parse(name, &recording));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

async fn replay_one(scenario: &Scenario) -> Vec<String> {
    let start = "2026-08-01T00:00:00Z".parse().expect("a time");
    let builder = Cluster::builder().server(scenario.server()).virtual_time(start);
    let cluster = builder.start().await.expect("a cluster starts");
    scenario.replay(cluster.server()).await
}

/// Replays scenarios on all cores; what differs in each.
fn replay(scenarios: &[Scenario]) -> BTreeMap<String, Vec<String>> {
    let queue = Mutex::new(scenarios.iter());
    let results = Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = queue.lock().next() else { break };
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
                    let found = runtime.expect("a runtime starts").block_on(replay_one(scenario));
                    results.lock().insert(scenario.name.clone(), found);
                }
            });
        }
    });
    results.into_inner()
}

#[test]
fn recorded_scenarios_replay_as_listed() {
    let filter = std::env::var("GOLDEN").ok();
    if std::env::var_os("RUST_LOG").is_some() {
        let environment = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(environment).with_test_writer().init();
    }
    let results = replay(&scenarios(filter.as_deref()));
    if filter.is_some() {
        for (name, differences) in &results {
            println!("{} {name}", if differences.is_empty() { "ok  " } else { "FAIL" });
            for difference in differences {
                println!("     {difference}");
            }
        }
        return;
    }
    let passing: BTreeSet<&String> = results.iter().filter(|(_, d)| d.is_empty()).map(|(n, _)| n).collect();
    let list = home().join("passing.txt");
    if std::env::var_os("GOLDEN_UPDATE").is_some() {
        let names: Vec<&str> = passing.iter().map(|name| name.as_str()).collect();
        fs::write(&list, names.join("\n") + "\n").expect("the list can be written");
    }
    let text = fs::read_to_string(&list).unwrap_or_default();
    let listed: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let mut wrong = Vec::new();
    for name in &listed {
        match results.get(name) {
            Some(differences) if differences.is_empty() => {}
            Some(differences) => {
                wrong.push(format!("{name} no longer passes:\n     {}", differences.join("\n     ")));
            }
            None => wrong.push(format!("{name} is listed but not recorded")),
        }
    }
    for name in passing.iter().filter(|n| !listed.contains(**n)) {
        wrong.push(format!("{name} passes: add it to passing.txt"));
    }
    println!("{} of {} scenarios pass", passing.len(), results.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
