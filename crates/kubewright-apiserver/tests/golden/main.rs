//! Replay of recorded exchanges with kube-apiserver against this server, in process and in parallel.
//!
//! See [`judge`] for how to update `passing.txt`. The table in `docs/conformance.md` is generated and checked
//! with it.

mod compare;
mod judge;
mod ordered;
mod scenario;

use std::{collections::BTreeMap, path::Path};

use judge::{Page, Results, judge};
use scenario::Scenario;

/// Text above the table of the page.
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

/// Renders the page: the number of recorded and passing scenarios per area.
fn page(results: &Results) -> String {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let replay = async |scenario: &Scenario| {
        scenario.replay(&scenario.server().in_process().expect("a server starts")).await
    };
    let table = Page { path: root.join("../../docs/conformance.md"), text: page };
    judge(&root.join("tests/golden"), replay, &[table]);
}
