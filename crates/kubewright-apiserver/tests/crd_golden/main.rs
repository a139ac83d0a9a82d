//! Recorded exchanges about custom resources, replayed with the pure functions of this crate.
//!
//! A [`World`](world::World) answers what definitions and their objects are about; steps about something else (media
//! types, watches, discovery, options, names of requests) are skipped by name below and covered by the server's own
//! replay.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
#[path = "../merge_golden/compare.rs"]
mod compare;
mod world;

use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Steps about something else, by scenario; no steps means the whole scenario.
const SKIPPED: &[(&str, &[&str])] = &[
    ("default-columns", &["partial", "partial-list", "yaml", "protobuf"]),
    ("dry-run-and-generation", &["dry-bad"]),
    // Names made by the server, label selectors and pages.
    ("generate-name-and-reads", &[]),
    // Field validation; replayed with the patches and applies.
    ("prune-unknown-fields", &[]),
    ("put-rules", &["name-mismatch", "uid-mismatch", "bad-version"]),
    ("sample-demo-definition", &["discovery"]),
    // The managedFields of a Scale have tests of their own.
    ("scale-subresource", &["after-put", "wrong-type"]),
    ("selectable-fields", &["watch", "delete", "left"]),
    ("version-not-served", &["discovery", "discovery-v2", "group-after"]),
    ("watch", &["watch"]),
];

/// A step of which only the status is compared: the real server keeps no trace of a second manager there, which is
/// for managedFields to explain.
const STATUS_ONLY: (&str, &str) = ("two-versions", "patch-v2");

#[derive(Deserialize)]
struct Written {
    steps: Vec<WrittenStep>,
}

#[derive(Deserialize)]
struct WrittenStep {
    request: WrittenRequest,
}

#[derive(Deserialize)]
struct WrittenRequest {
    body: Option<Box<RawValue>>,
}

fn transcripts() -> Vec<(String, Value, Written)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/transcripts/crd");
    let mut out: Vec<_> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|file| {
            let text = fs::read(&file).unwrap();
            let name = file.file_stem().unwrap().display().to_string();
            (name, serde_json::from_slice(&text).unwrap(), serde_json::from_slice(&text).unwrap())
        })
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Takes out what a step says not to compare: dotted paths, `*` for every element.
fn forget(value: &mut Value, path: &[&str]) {
    match (path, value) {
        ([last], Value::Object(map)) => drop(map.remove(*last)),
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| forget(item, rest)),
        (["*", rest @ ..], Value::Object(map)) => map.values_mut().for_each(|item| forget(item, rest)),
        ([first, rest @ ..], Value::Object(map)) => {
            if let Some(inner) = map.get_mut(*first) {
                forget(inner, rest);
            }
        }
        ([first, rest @ ..], Value::Array(items)) => {
            let at = first.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            if let Some(inner) = at {
                forget(inner, rest);
            }
        }
        _ => {}
    }
}

#[test]
fn recorded_exchanges_come_out_the_same() {
    let mut problems = Vec::new();
    let (mut scenarios, mut steps) = (0, 0);
    for (name, transcript, written) in transcripts() {
        let skipped = SKIPPED.iter().find(|(scenario, _)| *scenario == name).map(|(_, steps)| *steps);
        if skipped == Some(&[]) {
            continue;
        }
        let mut world = world::World::new();
        scenarios += 1;
        for (step, written) in transcript["steps"].as_array().unwrap().iter().zip(&written.steps) {
            let id = step["id"].as_str().unwrap();
            if skipped.is_some_and(|skipped| skipped.contains(&id)) {
                continue;
            }
            steps += 1;
            let body = written.request.body.as_ref().map_or("", |body| body.get());
            let mut answer = world.answer(&step["request"], body);
            world.remember(id, &answer);
            if step["compare"] == "none" {
                continue;
            }
            for path in step["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                forget(&mut answer.body, &path.split('.').collect::<Vec<_>>());
            }
            let mut step = step.clone();
            if (&*name, id) == STATUS_ONLY {
                step["compare"] = "status".into();
            }
            let differences = compare::differences(&step, &answer, &mut world);
            problems.extend(differences.into_iter().map(|difference| format!("{name} {id}: {difference}")));
        }
    }
    assert!(scenarios >= 40 && steps >= 300, "{scenarios} scenarios, {steps} steps");
    assert!(problems.is_empty(), "{} differences\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn skipped_steps_exist() {
    let known = transcripts();
    for (scenario, steps) in SKIPPED {
        let (_, transcript, _) = known.iter().find(|(name, ..)| name == scenario).unwrap();
        for step in *steps {
            assert!(
                transcript["steps"].as_array().unwrap().iter().any(|known| known["id"] == *step),
                "{scenario} {step}"
            );
        }
    }
}
