//! Replays recorded exchanges with a real kube-apiserver against this server, in process and in parallel.
//!
//! `passing.txt` names the scenarios that pass. The test fails when one of them no longer does, and also when another
//! one does: the list is always the truth, and so is the table in `docs/conformance.md`. `GOLDEN_UPDATE=1` writes both anew; `GOLDEN=area/name` replays what matches
//! and prints every difference.

mod compare;
mod ordered;
mod scenario;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use scenario::Scenario;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).expect("the recordings are beside the test");
    found.map(|entry| entry.expect("a folder can be read").path()).collect()
}

fn scenarios(filter: Option<&str>) -> Vec<Scenario> {
    let mut found = Vec::new();
    for area in entries(&home().join("transcripts")) {
        for file in entries(&area) {
            let text = |p: &Path| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = format!("{}/{}", text(&area), text(&file));
            if filter.is_none_or(|f| name.contains(f)) {
                let recording = fs::read_to_string(&file).expect("a recording can be read");
                found.push(Scenario::parse(name, &recording));
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
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
                    let found = runtime.expect("a runtime starts").block_on(async {
                        scenario.replay(&scenario.server().in_process().expect("a server starts")).await
                    });
                    results.lock().insert(scenario.name.clone(), found);
                }
            });
        }
    });
    results.into_inner()
}

/// What the page says above its table.
const PAGE: &str = "\
# Conformance

Scenarios were recorded with a stock kube-apiserver and are replayed against kubewright's. A scenario passes when the
answers to all its requests are the recorded ones: the status, the body, and the headers that the scenario is about.
Uids and resource versions are compared by identity, not by value, and of times only that they are there; steps may
leave out texts that only Go can print, or look at the status or at named fields alone.

The test that replays them writes this page (`GOLDEN_UPDATE=1 cargo test -p kubewright-apiserver --test golden`) and
fails when it is out of date.

| area | recorded | passing |
|---|---:|---:|
";

/// How many scenarios of each area are recorded and how many of them pass, as a page.
fn page(results: &BTreeMap<String, Vec<String>>) -> String {
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, differences) in results {
        let (recorded, passing) = areas.entry(name.split('/').next().unwrap_or_default()).or_default();
        *recorded += 1;
        *passing += usize::from(differences.is_empty());
    }
    let row =
        |(area, (recorded, passing)): (&str, (usize, usize))| format!("| {area} | {recorded} | {passing} |");
    let rows: Vec<String> = areas.into_iter().map(row).collect();
    let passing = results.values().filter(|differences| differences.is_empty()).count();
    format!("{PAGE}{}\n| **all** | **{}** | **{passing}** |\n", rows.join("\n"), results.len())
}

#[test]
fn recorded_scenarios_replay_as_listed() {
    let filter = std::env::var("GOLDEN").ok();
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
    let table = home().join("../../../../docs/conformance.md");
    if std::env::var_os("GOLDEN_UPDATE").is_some() {
        let names: Vec<&str> = passing.iter().map(|name| name.as_str()).collect();
        fs::write(&list, names.join("\n") + "\n").expect("the list can be written");
        fs::write(&table, page(&results)).expect("the page can be written");
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
    if fs::read_to_string(&table).unwrap_or_default() != page(&results) {
        wrong.push("docs/conformance.md is out of date".to_owned());
    }
    println!("{} of {} scenarios pass", passing.len(), results.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
