//! Printers of configuration types, events, and admission and scheduling types.

use serde_json::Value;

use super::{Printer, count, number_at, or_none, printer, shown};
use crate::{
    registry::json::{Json, at, meta, name, object, objects, text, text_at},
    table::{
        age::{age, since},
        columns::{AGE, Column, NAME, number, text as column, wide},
    },
};

pub(super) static NAMESPACE: Printer = printer(&[NAME, column("Status"), AGE], |o, now| {
    vec![name(o).into(), text_at(o, &["status", "phase"]).into(), age(o, now)]
});

fn entries(object_: &Json, keys: &[&str]) -> usize {
    keys.iter().filter_map(|k| object(object_, k)).map(Json::len).sum()
}

pub(super) static CONFIG_MAP: Printer = printer(&[NAME, column("Data"), AGE], |o, now| {
    vec![name(o).into(), entries(o, &["data", "binaryData"]).into(), age(o, now)]
});

pub(super) static SECRET: Printer = printer(&[NAME, column("Type"), column("Data"), AGE], |o, now| {
    vec![name(o).into(), text(o, "type").into(), entries(o, &["data"]).into(), age(o, now)]
});

pub(super) static QUOTA: Printer = printer(&[NAME, column("Request"), column("Limit"), AGE], |quota, now| {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (key, hard) in at(quota, &["status", "hard"]).and_then(Value::as_object).into_iter().flatten() {
        let used = shown(at(quota, &["status", "used", key]));
        let used = if used.is_empty() { "0".to_owned() } else { used };
        let line = format!("{key}: {used}/{}", shown(Some(hard)));
        if key.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
    }
    vec![name(quota).into(), requests.join(", ").into(), limits.join(", ").into(), age(quota, now)]
});

pub(super) static EVENT: Printer = printer(
    &[
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        wide("Subobject"),
        wide("Source"),
        column("Message"),
        wide("First Seen"),
        wide("Count"),
        Column { name: "Name", kind: "string", format: "name", priority: 1 },
    ],
    |event, now| {
        let first_of = |keys: &[&str]| {
            let found = keys.iter().map(|k| text(event, k)).find(|t| !t.is_empty()).unwrap_or_default();
            found.to_owned()
        };
        let seen = |time: &str| -> Value {
            if time.is_empty() { "<unknown>".into() } else { since(time, now).into() }
        };
        let object_key = if event.contains_key("regarding") { "regarding" } else { "involvedObject" };
        let source_key = if event.contains_key("deprecatedSource") { "deprecatedSource" } else { "source" };
        let mut source = text_at(event, &[source_key, "component"]).to_owned();
        if source.is_empty() {
            source = first_of(&["reportingController", "reportingComponent"]);
        }
        let host = text_at(event, &[source_key, "host"]);
        if !host.is_empty() {
            source = format!("{source}, {host}");
        }
        let what = format!(
            "{}/{}",
            text_at(event, &[object_key, "kind"]).to_lowercase(),
            text_at(event, &[object_key, "name"])
        );
        let count = ["count", "deprecatedCount"]
            .iter()
            .find_map(|k| event.get(*k).and_then(Value::as_i64))
            .or_else(|| at(event, &["series", "count"]).and_then(Value::as_i64))
            .unwrap_or(1);
        let first = first_of(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
        let last = match text_at(event, &["series", "lastObservedTime"]) {
            "" => first_of(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"]),
            time => time.to_owned(),
        };
        vec![
            seen(&last),
            text(event, "type").into(),
            text(event, "reason").into(),
            what.into(),
            text_at(event, &[object_key, "fieldPath"]).into(),
            source.into(),
            first_of(&["message", "note"]).trim().into(),
            seen(&first),
            count.into(),
            name(event).into(),
        ]
    },
);

pub(super) static LEASE: Printer = printer(&[NAME, column("Holder"), AGE], |o, now| {
    vec![name(o).into(), text_at(o, &["spec", "holderIdentity"]).into(), age(o, now)]
});

pub(super) static PRIORITY_CLASS: Printer = printer(
    &[
        NAME,
        number("Value"),
        Column { name: "Global-Default", kind: "boolean", format: "", priority: 0 },
        AGE,
        column("PreemptionPolicy"),
    ],
    |o, now| {
        vec![
            name(o).into(),
            number_at(o, &["value"]).into(),
            o.get("globalDefault").and_then(Value::as_bool).unwrap_or(false).into(),
            age(o, now),
            text(o, "preemptionPolicy").into(),
        ]
    },
);

pub(super) static RUNTIME_CLASS: Printer = printer(&[NAME, column("Handler"), AGE], |o, now| {
    vec![name(o).into(), text(o, "handler").into(), age(o, now)]
});

pub(super) static WEBHOOKS: Printer = printer(&[NAME, number("Webhooks"), AGE], |o, now| {
    vec![name(o).into(), count(o, "webhooks").into(), age(o, now)]
});

pub(super) static POLICY: Printer =
    printer(&[NAME, number("Validations"), column("ParamKind"), AGE], |o, now| {
        let spec = object(o, "spec").cloned().unwrap_or_default();
        let param =
            match (text_at(&spec, &["paramKind", "apiVersion"]), text_at(&spec, &["paramKind", "kind"])) {
                ("", "") => "<unset>".to_owned(),
                (version, kind) => format!("{version}/{kind}"),
            };
        vec![name(o).into(), count(&spec, "validations").into(), param.into(), age(o, now)]
    });

pub(super) static POLICY_BINDING: Printer =
    printer(&[NAME, column("PolicyName"), column("ParamRef"), AGE], |o, now| {
        let param =
            match (text_at(o, &["spec", "paramRef", "namespace"]), text_at(o, &["spec", "paramRef", "name"]))
            {
                ("", "") => "<unset>".to_owned(),
                ("", name) => name.to_owned(),
                (namespace, name) => format!("{namespace}/{name}"),
            };
        vec![name(o).into(), text_at(o, &["spec", "policyName"]).into(), param.into(), age(o, now)]
    });

/// Printer of types with name and creation time only.
pub(super) static CREATED: Printer =
    printer(&[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }], |o, _| {
        vec![name(o).into(), text(meta(o), "creationTimestamp").into()]
    });

pub(super) static API_SERVICE: Printer =
    printer(&[NAME, column("Service"), column("Available"), AGE], |o, now| {
        let service = match object(o, "spec").and_then(|s| object(s, "service")) {
            Some(service) => format!("{}/{}", text(service, "namespace"), text(service, "name")),
            None => "Local".to_owned(),
        };
        let condition = object(o, "status")
            .and_then(|s| objects(s, "conditions").find(|c| text(c, "type") == "Available"));
        let available = match condition {
            Some(c) if text(c, "status") == "True" => "True".to_owned(),
            Some(c) => format!("{} ({})", text(c, "status"), text(c, "reason")),
            None => "Unknown".to_owned(),
        };
        vec![name(o).into(), or_none(&service), available.into(), age(o, now)]
    });
