//! Parallel replay of recordings, compared with the list of those that pass.
//!
//! `passing.txt` lists the scenarios that pass. The test fails if one of them fails, and also if another one
//! passes: the list is always exact. `GOLDEN_UPDATE=1` rewrites it; `GOLDEN=area/name` replays the matching
//! scenarios and prints every difference.
#![allow(clippy::print_stdout)] // the output is the test report
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;

use crate::scenario::Scenario;

/// Differences of each scenario.
pub(crate) type Results = BTreeMap<String, Vec<String>>;

/// Page generated from the results.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: fn(&Results) -> String,
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).expect("the recordings are beside the test");
    found.map(|entry| entry.expect("a folder can be read").path()).collect()
}

/// Returns the recordings in a folder and its subfolders, by name.
fn scenarios(folder: &Path, area: &str, filter: Option<&str>) -> Vec<Scenario> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let name = format!("{area}{}", path.file_stem().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            found.extend(scenarios(&path, &format!("{name}/"), filter));
        } else if filter.is_none_or(|wanted| name.contains(wanted)) {
            let recording = fs::read_to_string(&path).expect("a recording can be read");
            found.push(Scenario::parse(name, &recording));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Replays scenarios on all cores, each in its own runtime with paused time.
fn replay(scenarios: &[Scenario], one: impl AsyncFn(&Scenario) -> Vec<String> + Sync) -> Results {
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
                    let found = runtime.expect("a runtime starts").block_on(one(scenario));
                    results.lock().insert(scenario.name.clone(), found);
                }
            });
        }
    });
    results.into_inner()
}

/// Replays the recordings beside `passing.txt` and fails if the list or a page is out of date.
pub(crate) fn judge(home: &Path, one: impl AsyncFn(&Scenario) -> Vec<String> + Sync, pages: &[Page]) {
    let filter = std::env::var("GOLDEN").ok();
    let results = replay(&scenarios(&home.join("transcripts"), "", filter.as_deref()), one);
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
    let list = home.join("passing.txt");
    if std::env::var_os("GOLDEN_UPDATE").is_some() {
        let names: Vec<&str> = passing.iter().map(|name| name.as_str()).collect();
        fs::write(&list, names.join("\n") + "\n").expect("the list can be written");
        for page in pages {
            fs::write(&page.path, (page.text)(&results)).expect("the page can be written");
        }
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
    for page in pages {
        if fs::read_to_string(&page.path).unwrap_or_default() != (page.text)(&results) {
            wrong.push(format!("{} is out of date", page.path.display()));
        }
    }
    println!("{} of {} scenarios pass", passing.len(), results.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
