//! Comparison of a response with the recorded one, whose identities, versions and times are tokens.

use serde_json::Value;

use crate::world::{Answer, World};

pub(crate) fn differences(step: &Value, answer: &Answer, world: &mut World) -> Vec<String> {
    let wanted = &step["answer"];
    let mut out = Vec::new();
    if wanted["status"] != answer.status {
        out.push(format!("status: want {} got {} {}", wanted["status"], answer.status, answer.body));
        return out;
    }
    if step["compare"] == "status" {
        return out;
    }
    if let Some(Value::Object(paths)) = wanted.get("body").filter(|_| step.get("only").is_some()) {
        for (path, want) in paths {
            let got = pick(&answer.body, path).cloned().unwrap_or_default();
            compare(want, &got, path, world, &mut out);
        }
    } else if let Some(body) = wanted.get("body") {
        compare(body, &answer.body, "", world, &mut out);
    }
    if let Some(warning) = wanted.get("headers").and_then(|headers| headers.get("Warning")) {
        let texts: Vec<_> =
            answer.warnings.iter().map(|w| format!("299 - \"{}\"", w.replace('"', "\\\""))).collect();
        let got = if texts.is_empty() { Value::Null } else { texts.join(", ").into() };
        compare(warning, &got, "Warning", world, &mut out);
    }
    out
}

fn pick<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part.replace("~1", ".")),
    })
}

fn compare(want: &Value, got: &Value, path: &str, world: &mut World, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            for key in want.keys().chain(got.keys().filter(|key| !want.contains_key(*key))) {
                let here = format!("{path}.{key}");
                match (want.get(key), got.get(key)) {
                    (Some(want), Some(got)) => compare(want, got, &here, world, out),
                    // Messages with random parts were not recorded.
                    (None, Some(_)) if key == "message" => {}
                    (want, got) => out.push(format!("{here}: want {want:?} got {got:?}")),
                }
            }
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            for (i, (want, got)) in want.iter().zip(got).enumerate() {
                compare(want, got, &format!("{path}[{i}]"), world, out);
            }
        }
        (Value::String(want), Value::String(got)) if world.same_text(want, got) => {}
        _ if want == got => {}
        _ => out.push(format!("{path}: want {want} got {got}")),
    }
}
