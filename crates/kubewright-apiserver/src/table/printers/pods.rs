//! Printers of pods, pod templates and nodes.

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

/// Returns why a container is not running, in one word.
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

fn is(container: &Json, what: &str) -> bool {
    container.get(what).and_then(Value::as_bool) == Some(true)
}

/// Counters of ready containers and restarts.
#[derive(Default)]
struct ContainerCounts<'a> {
    ready: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
}

impl<'a> ContainerCounts<'a> {
    fn restarted(&mut self, container: &'a Json) {
        self.restarts += number_at(container, &["restartCount"]);
        let ended = at(container, &["lastState", "terminated", "finishedAt"]).and_then(Value::as_str);
        self.last_restart = self.last_restart.max(ended);
    }
}

/// Returns the status of an unfinished initialisation; `None` if finished. Sidecars (restartable init
/// containers) count as containers once they have started.
fn initialising<'a>(
    spec: &Json,
    status: &'a Json,
    all: &mut ContainerCounts<'a>,
    beside: &mut ContainerCounts<'a>,
) -> Option<String> {
    for (n, container) in objects(status, "initContainerStatuses").enumerate() {
        all.restarted(container);
        let goes_on = objects(spec, "initContainers")
            .any(|c| text(c, "name") == text(container, "name") && text(c, "restartPolicy") == "Always");
        if goes_on {
            beside.restarted(container);
        }
        let ended = at(container, &["state", "terminated"]).and_then(Value::as_object);
        if ended.is_some_and(|e| number_at(e, &["exitCode"]) == 0) {
            continue;
        }
        if goes_on && is(container, "started") {
            let ready = usize::from(is(container, "ready"));
            all.ready += ready;
            beside.ready += ready;
            continue;
        }
        return Some(match container_reason(container) {
            Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{n}/{}", list(spec, "initContainers").len()),
        });
    }
    None
}

/// Updates the reason of an initialised pod from its containers.
fn running<'a>(status: &'a Json, reason: &mut String, counts: &mut ContainerCounts<'a>) {
    let (mut runs, mut failed) = (false, None);
    let statuses: Vec<&Json> = objects(status, "containerStatuses").collect();
    for container in statuses.into_iter().rev() {
        counts.restarted(container);
        let state = object(container, "state");
        if let Some(why) = container_reason(container) {
            let code = state.and_then(|s| object(s, "terminated")).map(|e| number_at(e, &["exitCode"]));
            if code.is_some_and(|code| code != 0) {
                failed = Some(why.clone());
            }
            *reason = why;
        } else if is(container, "ready") && state.is_some_and(|s| s.contains_key("running")) {
            runs = true;
            counts.ready += 1;
        }
    }
    if reason != "Completed" {
        return;
    }
    let is_ready =
        objects(status, "conditions").any(|c| text(c, "type") == "Ready" && text(c, "status") == "True");
    if runs && is_ready {
        "Running".clone_into(reason);
    } else if let Some(failed) = failed {
        *reason = failed;
    } else if runs {
        "NotReady".clone_into(reason);
    }
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
    let (mut counts, mut beside) = (ContainerCounts::default(), ContainerCounts::default());
    let initial = initialising(spec, status, &mut counts, &mut beside);
    let initialised = objects(status, "conditions")
        .any(|c| text(c, "type") == "Initialized" && text(c, "status") == "True");
    let starts = initial.is_some();
    if let Some(initial) = initial {
        reason = initial;
    }
    if !starts || initialised {
        counts = beside;
        running(status, &mut reason, &mut counts);
    }
    if meta(pod).contains_key("deletionTimestamp") {
        let finished = matches!(text(status, "phase"), "Succeeded" | "Failed");
        if text(status, "reason") == "NodeLost" {
            "Unknown".clone_into(&mut reason);
        } else if !finished {
            "Terminating".clone_into(&mut reason);
        }
    }
    let restarts = match counts {
        ContainerCounts { restarts, last_restart: Some(time), .. } if restarts > 0 => {
            format!("{restarts} ({} ago)", since(time, now))
        }
        ContainerCounts { restarts, .. } => restarts.to_string(),
    };
    let beside = objects(spec, "initContainers").filter(|c| text(c, "restartPolicy") == "Always").count();
    vec![
        name(pod).into(),
        format!("{}/{}", counts.ready, list(spec, "containers").len() + beside).into(),
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
