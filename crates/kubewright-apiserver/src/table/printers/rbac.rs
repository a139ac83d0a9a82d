//! Printers of role bindings and certificate signing requests.

use serde_json::Value;

use super::{Printer, or_none, printer};
use crate::{
    registry::json::{Json, at, name, object, objects, text, text_at},
    table::{
        age::{age, duration},
        columns::{AGE, NAME, text as column, wide},
    },
};

pub(super) static BINDING: Printer = printer(
    &[NAME, column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")],
    |binding, now| {
        let of = |kind: &str| -> Value {
            let all: Vec<String> = objects(binding, "subjects")
                .filter(|s| text(s, "kind") == kind)
                .map(|s| match text(s, "namespace") {
                    "" => text(s, "name").to_owned(),
                    namespace => format!("{namespace}/{}", text(s, "name")),
                })
                .collect();
            all.join(", ").into()
        };
        let role =
            format!("{}/{}", text_at(binding, &["roleRef", "kind"]), text_at(binding, &["roleRef", "name"]));
        vec![
            name(binding).into(),
            role.into(),
            age(binding, now),
            of("User"),
            of("Group"),
            of("ServiceAccount"),
        ]
    },
);

pub(super) static SIGNING_REQUEST: Printer = printer(
    &[NAME, AGE, column("SignerName"), column("Requestor"), column("RequestedDuration"), column("Condition")],
    |request, now| {
        let seconds = at(request, &["spec", "expirationSeconds"]).and_then(Value::as_i64);
        vec![
            name(request).into(),
            age(request, now),
            or_none(text_at(request, &["spec", "signerName"])),
            text_at(request, &["spec", "username"]).into(),
            or_none(&seconds.map(duration).unwrap_or_default()),
            condition(request).into(),
        ]
    },
);

fn condition(request: &Json) -> String {
    let status = object(request, "status");
    let has = |kind: &str| status.is_some_and(|s| objects(s, "conditions").any(|c| text(c, "type") == kind));
    let mut parts = Vec::new();
    if has("Denied") {
        parts.push("Denied");
    } else if has("Approved") {
        parts.push("Approved");
    } else {
        parts.push("Pending");
    }
    if has("Failed") {
        parts.push("Failed");
    }
    if status.is_some_and(|s| !text(s, "certificate").is_empty()) {
        parts.push("Issued");
    }
    parts.join(",")
}
