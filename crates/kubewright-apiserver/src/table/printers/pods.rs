//! Pods and nodes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Printer, containers, number_at, or_none, pairs, printer, shown};
use crate::{
    registry::json::{Json, at, list, meta, name, object, objects, text, text_at},
    table::{
        age::{age, since},
        columns::{AGE, NAME, text as column, wide},
    },
};

pub(super) static POD: Printer = Printer {
    columns: &[
        NAME,
        column("Ready"),
        column("Status"),
        column("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells: pod,
    conditions: |pod| {
        let (reason, message) = match text_at(pod, &["status", "phase"]) {
            "Succeeded" => ("Succeeded", "The pod has completed successfully."),
            "Failed" => ("Failed", "The pod failed."),
            _ => return None,
        };
        Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
    },
};

/// Why a container is not running, in one word.
fn container_reason(status: &Json) -> Option<String> {
    let state = object(status, "state")?;
    if let Some(waiting) = object(state, "waiting") {
        return Some(text(waiting, "reason").to_owned()).filter(|r| !r.is_empty());
    }
    let ended = object(state, "terminated")?;
    let reason = text(ended, "reason");
    Some(match (reason, number_at(ended, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number_at(ended, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

/// What an unfinished initialisation shows; `None` when it is finished.
fn initialising(pod: &Json, status: &Json) -> Option<String> {
    let total = object(pod, "spec").map_or(0, |s| list(s, "initContainers").len());
    for (n, container) in objects(status, "initContainerStatuses").enumerate() {
        let ended = at(container, &["state", "terminated"]).and_then(Value::as_object);
        if ended.is_some_and(|e| number_at(e, &["exitCode"]) == 0) {
            continue;
        }
        return Some(match container_reason(container) {
            Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{n}/{total}"),
        });
    }
    None
}

fn pod(pod: &Json, now: Timestamp) -> Vec<Value> {
    let empty = Json::new();
    let (spec, status) = (object(pod, "spec").unwrap_or(&empty), object(pod, "status").unwrap_or(&empty));
    let mut reason = match text(status, "reason") {
        "" => text(status, "phase").to_owned(),
        reason => reason.to_owned(),
    };
    for condition in objects(status, "conditions") {
        if text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated" {
            "SchedulingGated".clone_into(&mut reason);
        }
    }
    let statuses: Vec<&Json> = objects(status, "containerStatuses").collect();
    let ready = statuses.iter().filter(|c| {
        c.get("ready").and_then(Value::as_bool) == Some(true) && at(c, &["state", "running"]).is_some()
    });
    let ready = ready.count();
    let mut restarts: i64 = statuses.iter().map(|c| number_at(c, &["restartCount"])).sum();
    if let Some(initial) = initialising(pod, status) {
        reason = initial;
        restarts = objects(status, "initContainerStatuses").map(|c| number_at(c, &["restartCount"])).sum();
    } else {
        let mut running = false;
        for container in statuses.iter().rev() {
            match container_reason(container) {
                Some(why) => reason = why,
                None => running |= container.get("ready").and_then(Value::as_bool) == Some(true),
            }
        }
        if reason == "Completed" && running {
            "Running".clone_into(&mut reason);
        }
    }
    if meta(pod).contains_key("deletionTimestamp") {
        let finished = matches!(text(status, "phase"), "Succeeded" | "Failed");
        if text(status, "reason") == "NodeLost" {
            "Unknown".clone_into(&mut reason);
        } else if !finished {
            "Terminating".clone_into(&mut reason);
        }
    }
    let last = statuses
        .iter()
        .filter_map(|c| at(c, &["lastState", "terminated", "finishedAt"]).and_then(Value::as_str))
        .max();
    let restarts = match last {
        Some(time) if restarts > 0 => format!("{restarts} ({} ago)", since(time, now)),
        _ => restarts.to_string(),
    };
    vec![
        name(pod).into(),
        format!("{ready}/{}", list(spec, "containers").len()).into(),
        reason.into(),
        restarts.into(),
        age(pod, now),
        or_none(text(status, "podIP")),
        or_none(text(spec, "nodeName")),
        or_none(text(status, "nominatedNodeName")),
        gates(spec, status),
    ]
}

fn gates(spec: &Json, status: &Json) -> Value {
    let wanted: Vec<&str> = objects(spec, "readinessGates").map(|g| text(g, "conditionType")).collect();
    if wanted.is_empty() {
        return "<none>".into();
    }
    let open = wanted.iter().filter(|gate| {
        objects(status, "conditions").any(|c| text(c, "type") == **gate && text(c, "status") == "True")
    });
    format!("{}/{}", open.count(), wanted.len()).into()
}

pub(super) static TEMPLATE: Printer =
    printer(&[NAME, column("Containers"), column("Images"), column("Pod Labels")], |object_, _| {
        let template = object(object_, "template");
        let (names, images) = containers(template.and_then(|t| object(t, "spec")));
        let labels = template.and_then(|t| object(meta(t), "labels"));
        vec![name(object_).into(), names, images, pairs(labels)]
    });

pub(super) static NODE: Printer = printer(
    &[
        NAME,
        column("Status"),
        column("Roles"),
        AGE,
        column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    node,
);

fn node(node: &Json, now: Timestamp) -> Vec<Value> {
    let empty = Json::new();
    let status = object(node, "status").unwrap_or(&empty);
    let ready = objects(status, "conditions").find(|c| text(c, "type") == "Ready");
    let mut state = match ready.map(|c| text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if at(node, &["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true) {
        state.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = object(meta(node), "labels")
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role),
            _ if key == "kubernetes.io/role" => value.as_str(),
            _ => None,
        })
        .collect();
    roles.sort_unstable();
    let address = |kind: &str| {
        let found = objects(status, "addresses").find(|a| text(a, "type") == kind);
        or_none(found.map(|a| text(a, "address")).unwrap_or_default())
    };
    let info = |key: &str| text_at(status, &["nodeInfo", key]);
    let unknown = |text: &str| -> Value { if text.is_empty() { "<unknown>".into() } else { text.into() } };
    let kernel = match (info("kernelVersion"), info("architecture")) {
        (kernel, "") => kernel.to_owned(),
        (kernel, arch) => format!("{kernel} ({arch})"),
    };
    vec![
        name(node).into(),
        state.into(),
        or_none(&roles.join(",")),
        age(node, now),
        shown(at(status, &["nodeInfo", "kubeletVersion"])).into(),
        address("InternalIP"),
        address("ExternalIP"),
        unknown(info("osImage")),
        unknown(&kernel),
        unknown(info("containerRuntimeVersion")),
    ]
}
