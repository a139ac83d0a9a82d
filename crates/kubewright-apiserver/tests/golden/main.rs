//! Replays recorded exchanges with a real kube-apiserver against this server, in process and in parallel.
//!
//! `passing.txt` names the scenarios that pass. The test fails when one of them no longer does, and also when another
//! one does: the list is always the truth. `GOLDEN_UPDATE=1` writes it anew; `GOLDEN=area/name` replays what matches
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
                    let found = runtime.expect("a runtime starts").block_on(scenario.replay());
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
