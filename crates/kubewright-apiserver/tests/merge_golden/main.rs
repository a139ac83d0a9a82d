//! Replay of recorded exchanges with kube-apiserver, using only the pure functions of this crate.
//!
//! A [`World`](world::World) has the objects of one scenario and implements just enough of the API for
//! patches, apply, field validation and the validation of custom resources. Steps about something else
//! (options, names, media types, validation of built-in types) are skipped by name below; the replay against
//! the server covers them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod defaults;
mod world;

use std::{collections::BTreeSet, fs, path::PathBuf};

use kubewright_schema::{Gvk, Schemas, canonical};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Skipped steps, which are not about merging, by scenario.
const SKIPPED: &[(&str, &[&str])] = &[
    (
        "apply/bad-requests",
        &[
            "no-manager",
            "name-mismatch",
            "no-name",
            "long-manager",
            "bad-force",
            "other-namespace",
            "force-on-merge",
        ],
    ),
    ("apply/containers-merge-by-name", &["no-key"]),
    ("apply/unknown-and-invalid-fields", &["invalid", "negative"]),
    ("apply/scale-and-status-subresources", &["status-of-absent"]),
    ("patch/apply-basics", &["no-manager", "other-name", "force-merge"]),
    ("patch/merge-patch", &["missing"]),
    (
        "patch/patch-refusals",
        &[
            "plain-json",
            "unknown-type",
            "rename",
            "move-ns",
            "change-uid",
            "change-kind",
            "bad-label",
            "creation-time",
        ],
    ),
    ("core/field-validation", &["bogus", "put-strict"]),
    (
        "core/create-bad-bodies",
        &[
            "empty",
            "garbage",
            "array",
            "string",
            "no-kind",
            "no-version",
            "wrong-kind",
            "wrong-version",
            "unknown-kind",
            "no-name",
            "name-and-generate",
        ],
    ),
    ("crd/prune-unknown-fields", &["bad-mode"]),
];

/// Bodies of a transcript as written: field validation reports in document order.
#[derive(Deserialize)]
struct RawTranscript {
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
struct RawStep {
    request: RawRequest,
}

#[derive(Deserialize)]
struct RawRequest {
    body: Option<Box<RawValue>>,
}

fn transcripts() -> Vec<(String, Value, RawTranscript)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/transcripts");
    let ours = [
        "apply",
        "patch",
        "core/field-validation",
        "core/create-bad-bodies",
        "crd/prune",
        "crd/preserve",
        "crd/int-or-string",
        "crd/ratcheting",
        "crd/validate-",
        "crd/defaulting",
    ];
    let mut out = Vec::new();
    for area in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&area).unwrap().map(|entry| entry.unwrap().path()) {
            let name =
                format!("{}/{}", area.file_name().unwrap().display(), file.file_stem().unwrap().display());
            if ours.iter().any(|prefix| name.starts_with(prefix)) {
                let text = fs::read(&file).unwrap();
                out.push((
                    name,
                    serde_json::from_slice(&text).unwrap(),
                    serde_json::from_slice(&text).unwrap(),
                ));
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

#[test]
fn recorded_exchanges_replay_identically() {
    let mut problems = Vec::new();
    let (mut scenarios, mut steps) = (0, 0);
    for (name, transcript, written) in transcripts() {
        let skipped =
            SKIPPED.iter().find(|(scenario, _)| *scenario == name).map_or(&[][..], |(_, steps)| steps);
        let mut world = world::World::new();
        scenarios += 1;
        for (step, written) in transcript["steps"].as_array().unwrap().iter().zip(&written.steps) {
            let id = step["id"].as_str().unwrap();
            if skipped.contains(&id) {
                continue;
            }
            steps += 1;
            let body = written.request.body.as_ref().map_or("", |body| body.get());
            let answer = world.answer(&step["request"], body);
            world.remember(id, &answer);
            let differences = compare::differences(step, &answer, &mut world);
            problems.extend(differences.into_iter().map(|difference| format!("{name} {id}: {difference}")));
        }
    }
    assert!(scenarios >= 32 && steps >= 180, "{scenarios} scenarios, {steps} steps");
    assert!(problems.is_empty(), "{} differences\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn skipped_steps_exist() {
    let known: BTreeSet<String> = transcripts().into_iter().map(|(name, ..)| name).collect();
    for (scenario, _) in SKIPPED {
        assert!(known.contains(*scenario), "{scenario}");
    }
}

/// Responses of kube-apiserver are in canonical form, so canonicalising them must not change them.
#[test]
fn recorded_objects_are_in_canonical_form() {
    let mut seen = 0;
    for (name, transcript, _) in transcripts() {
        for step in transcript["steps"].as_array().unwrap() {
            let body = &step["answer"]["body"];
            let text = |key: &str| body[key].as_str().unwrap_or_default();
            let gvk = Gvk::from_api_version(text("apiVersion"), text("kind"));
            let Some(schema) =
                Schemas::builtin().lookup(&gvk).filter(|_| body["metadata"]["uid"].is_string())
            else {
                continue;
            };
            let mut again = body.clone();
            canonical::canonicalise(&schema, &mut again);
            canonical::nullify_empty(&schema, &mut again);
            assert_eq!(&again, body, "{name} {}", step["id"]);
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}
