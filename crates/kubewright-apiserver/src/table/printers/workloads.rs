//! Printers of workloads.

use jiff::Timestamp;
use serde_json::Value;

use super::{Printer, containers, number_at, or_none, pairs, printer, selector, shown, template};
use crate::{
    registry::json::{Json, at, name, object, objects, text, text_at},
    table::{
        age::{age, duration, since},
        columns::{AGE, Column, NAME, number, text as column, wide},
    },
};

fn status(object_: &Json, key: &str) -> Value {
    number_at(object_, &["status", key]).into()
}

pub(super) static DEPLOYMENT: Printer = printer(
    &[
        NAME,
        column("Ready"),
        column("Up-to-date"),
        column("Available"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    |o, now| {
        let (names, images) = containers(template(o));
        let ready =
            format!("{}/{}", number_at(o, &["status", "readyReplicas"]), number_at(o, &["spec", "replicas"]));
        vec![
            name(o).into(),
            ready.into(),
            status(o, "updatedReplicas"),
            status(o, "availableReplicas"),
            age(o, now),
            names,
            images,
            selector(at(o, &["spec", "selector"])),
        ]
    },
);

const REPLICAS: &[Column] = &[
    NAME,
    number("Desired"),
    number("Current"),
    number("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

fn replicas(o: &Json, now: Timestamp, selector: Value) -> Vec<Value> {
    let (names, images) = containers(template(o));
    vec![
        name(o).into(),
        number_at(o, &["spec", "replicas"]).into(),
        status(o, "replicas"),
        status(o, "readyReplicas"),
        age(o, now),
        names,
        images,
        selector,
    ]
}

pub(super) static REPLICA_SET: Printer =
    printer(REPLICAS, |o, now| replicas(o, now, selector(at(o, &["spec", "selector"]))));

pub(super) static REPLICATION_CONTROLLER: Printer = printer(REPLICAS, |o, now| {
    replicas(o, now, pairs(object(o, "spec").and_then(|s| object(s, "selector"))))
});

pub(super) static STATEFUL_SET: Printer =
    printer(&[NAME, column("Ready"), AGE, wide("Containers"), wide("Images")], |o, now| {
        let (names, images) = containers(template(o));
        let ready =
            format!("{}/{}", number_at(o, &["status", "readyReplicas"]), number_at(o, &["spec", "replicas"]));
        vec![name(o).into(), ready.into(), age(o, now), names, images]
    });

pub(super) static DAEMON_SET: Printer = printer(
    &[
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        number("Up-to-date"),
        number("Available"),
        column("Node Selector"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    |o, now| {
        let (names, images) = containers(template(o));
        vec![
            name(o).into(),
            status(o, "desiredNumberScheduled"),
            status(o, "currentNumberScheduled"),
            status(o, "numberReady"),
            status(o, "updatedNumberScheduled"),
            status(o, "numberAvailable"),
            pairs(template(o).and_then(|t| object(t, "nodeSelector"))),
            age(o, now),
            names,
            images,
            selector(at(o, &["spec", "selector"])),
        ]
    },
);

pub(super) static REVISION: Printer =
    printer(&[NAME, column("Controller"), column("Revision"), AGE], |o, now| {
        let owner = object(o, "metadata").and_then(|m| {
            objects(m, "ownerReferences").find(|r| r.get("controller").and_then(Value::as_bool) == Some(true))
        });
        let controller = owner.map(|r| format!("{}/{}", text(r, "kind").to_lowercase(), text(r, "name")));
        vec![
            name(o).into(),
            or_none(&controller.unwrap_or_default()),
            number_at(o, &["revision"]).into(),
            age(o, now),
        ]
    });

pub(super) static JOB: Printer = printer(
    &[
        NAME,
        column("Status"),
        column("Completions"),
        column("Duration"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    |o, now| {
        let (names, images) = containers(template(o));
        let done = number_at(o, &["status", "succeeded"]);
        let completions = match at(o, &["spec", "completions"]).and_then(Value::as_i64) {
            Some(wanted) => format!("{done}/{wanted}"),
            None => match number_at(o, &["spec", "parallelism"]) {
                most if most > 1 => format!("{done}/1 of {most}"),
                _ => format!("{done}/1"),
            },
        };
        let start = text_at(o, &["status", "startTime"]).parse::<Timestamp>().ok();
        let end = text_at(o, &["status", "completionTime"]).parse::<Timestamp>().unwrap_or(now);
        let lasted = start.map(|s| duration(end.as_second() - s.as_second())).unwrap_or_default();
        vec![
            name(o).into(),
            job_state(o).into(),
            completions.into(),
            lasted.into(),
            age(o, now),
            names,
            images,
            selector(at(o, &["spec", "selector"])),
        ]
    },
);

fn job_state(job: &Json) -> &'static str {
    let holds = |kind: &str| {
        object(job, "status").is_some_and(|s| {
            objects(s, "conditions").any(|c| text(c, "type") == kind && text(c, "status") == "True")
        })
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if object(job, "metadata").is_some_and(|m| m.contains_key("deletionTimestamp")) {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

pub(super) static CRON_JOB: Printer = printer(
    &[
        NAME,
        column("Schedule"),
        column("Timezone"),
        Column { name: "Suspend", kind: "boolean", format: "", priority: 0 },
        number("Active"),
        column("Last Schedule"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    |o, now| {
        let job = object(o, "spec").and_then(|s| object(s, "jobTemplate")).and_then(|t| object(t, "spec"));
        let (names, images) =
            containers(job.and_then(|j| object(j, "template")).and_then(|t| object(t, "spec")));
        let last = text_at(o, &["status", "lastScheduleTime"]);
        let active = object(o, "status").map_or(0, |s| super::count(s, "active"));
        let suspended = at(o, &["spec", "suspend"]).and_then(Value::as_bool).unwrap_or(false);
        vec![
            name(o).into(),
            text_at(o, &["spec", "schedule"]).into(),
            or_none(text_at(o, &["spec", "timeZone"])),
            if suspended { "True" } else { "False" }.into(),
            active.into(),
            if last.is_empty() { "<none>".into() } else { since(last, now).into() },
            age(o, now),
            names,
            images,
            selector(job.and_then(|j| j.get("selector"))),
        ]
    },
);

pub(super) static AUTOSCALER: Printer = printer(
    &[
        NAME,
        column("Reference"),
        column("Targets"),
        column("MinPods"),
        column("MaxPods"),
        column("Replicas"),
        AGE,
    ],
    |o, now| {
        let reference = format!(
            "{}/{}",
            text_at(o, &["spec", "scaleTargetRef", "kind"]),
            text_at(o, &["spec", "scaleTargetRef", "name"])
        );
        let least = at(o, &["spec", "minReplicas"]);
        vec![
            name(o).into(),
            reference.into(),
            targets(o).into(),
            if least.is_some() { shown(least).into() } else { "<unset>".into() },
            number_at(o, &["spec", "maxReplicas"]).into(),
            number_at(o, &["status", "currentReplicas"]).into(),
            age(o, now),
        ]
    },
);

fn targets(scaler: &Json) -> String {
    let empty = Json::new();
    let (spec, status) =
        (object(scaler, "spec").unwrap_or(&empty), object(scaler, "status").unwrap_or(&empty));
    if let Some(percent) = spec.get("targetCPUUtilizationPercentage") {
        let current = status.get("currentCPUUtilizationPercentage");
        let current = current.map_or_else(|| "<unknown>".to_owned(), |c| format!("{}%", shown(Some(c))));
        return format!("cpu: {current}/{}%", shown(Some(percent)));
    }
    let parts: Vec<String> = objects(spec, "metrics")
        .enumerate()
        .map(|(n, metric)| {
            let kind = text(metric, "type");
            let key =
                kind.chars().next().map(|c| c.to_lowercase().to_string() + &kind[1..]).unwrap_or_default();
            let source = object(metric, &key).unwrap_or(&empty);
            let target = object(source, "target").unwrap_or(&empty);
            let current = objects(status, "currentMetrics").nth(n).and_then(|m| object(m, &key));
            let now = |field: &str| {
                current
                    .and_then(|c| at(c, &["current", field]))
                    .map_or_else(|| "<unknown>".to_owned(), |v| shown(Some(v)))
            };
            let label = if text(source, "name").is_empty() {
                String::new()
            } else {
                format!("{}: ", text(source, "name"))
            };
            if let Some(percent) = target.get("averageUtilization") {
                let current = now("averageUtilization");
                let current = if current == "<unknown>" { current } else { format!("{current}%") };
                format!("{label}{current}/{}%", shown(Some(percent)))
            } else if let Some(value) = target.get("averageValue") {
                format!("{label}{}/{} (avg)", now("averageValue"), shown(Some(value)))
            } else {
                format!("{label}{}/{}", now("value"), shown(target.get("value")))
            }
        })
        .collect();
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(", ") }
}

pub(super) static BUDGET: Printer = printer(
    &[NAME, column("Min Available"), column("Max Unavailable"), number("Allowed Disruptions"), AGE],
    |o, now| {
        let of = |key: &str| match shown(at(o, &["spec", key])).as_str() {
            "" => "N/A".to_owned(),
            text => text.to_owned(),
        };
        vec![
            name(o).into(),
            of("minAvailable").into(),
            of("maxUnavailable").into(),
            status(o, "disruptionsAllowed"),
            age(o, now),
        ]
    },
);
