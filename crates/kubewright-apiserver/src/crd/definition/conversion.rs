//! Validation of `spec.conversion`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{forbidden, invalid, not_supported, required};
use crate::{
    crd::{names, props::Props},
    schema::field::FieldError,
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn validate(conversion: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if !conversion.is_object() {
        return out;
    }
    let strategy = Props::new(conversion).text("strategy");
    match strategy {
        "" => out.push(required("spec.conversion.strategy", "")),
        "None" | "Webhook" => {}
        other => out.push(not_supported("spec.conversion.strategy", other, &["None", "Webhook"])),
    }
    let webhook = Props::new(&conversion["webhook"]);
    let client = webhook.get("clientConfig");
    let review = webhook.texts("conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            None => out.push(required(
                "spec.conversion.webhookClientConfig",
                "required when strategy is set to Webhook",
            )),
            Some(client) => out.extend(validate_client(Props::new(client))),
        }
        let old =
            old.map(|old| Props::new(&old["webhook"]).texts("conversionReviewVersions")).unwrap_or_default();
        let recognised = |versions: &[&str]| versions.iter().any(|version| REVIEW_VERSIONS.contains(version));
        out.extend(review_versions(&review, old.is_empty() || recognised(&old)));
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            out.push(forbidden("spec.conversion.webhookClientConfig", detail));
        }
        if !review.is_empty() {
            out.push(forbidden("spec.conversion.conversionReviewVersions", detail));
        }
    }
    out
}

fn validate_client(client: Props<'_>) -> Vec<FieldError> {
    const FIELD: &str = "spec.conversion.webhookClientConfig";
    let mut out = Vec::new();
    match (client.get("url"), client.get("service")) {
        (Some(url), None) => {
            let url = url.as_str().unwrap_or_default();
            let field = format!("{FIELD}.url");
            match url.split_once("://") {
                None => out.push(invalid(
                    field,
                    url,
                    "url must be a valid URL: missing scheme; desired format: https://host[/path]",
                )),
                Some((scheme, rest)) => {
                    if scheme != "https" {
                        out.push(invalid(
                            field.as_str(),
                            scheme,
                            "'https' is the only allowed URL scheme; desired format: https://host[/path]",
                        ));
                    }
                    if rest.split(['/', '?', '#']).next().unwrap_or_default().is_empty() {
                        out.push(invalid(
                            field,
                            "",
                            "host must be specified; desired format: https://host[/path]",
                        ));
                    }
                }
            }
        }
        (None, Some(service)) => {
            let service = Props::new(service);
            for name in ["name", "namespace"] {
                if service.text(name).is_empty() {
                    out.push(required(
                        format!("{FIELD}.service.{name}"),
                        format!("service {name} is required"),
                    ));
                }
            }
            let port = service.number("port").unwrap_or(443);
            if !(1..=65535).contains(&port) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                out.push(invalid(format!("{FIELD}.service.port"), port, detail));
            }
            let path = service.text("path");
            if !path.is_empty() && !path.starts_with('/') {
                out.push(invalid(format!("{FIELD}.service.path"), path, "must start with a '/'"));
            }
        }
        _ => out.push(required(FIELD, "exactly one of url or service is required")),
    }
    out
}

fn review_versions(versions: &[&str], require_recognised: bool) -> Vec<FieldError> {
    const FIELD: &str = "spec.conversion.conversionReviewVersions";
    if versions.is_empty() {
        return vec![required(FIELD, "")];
    }
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    for (i, version) in versions.iter().enumerate() {
        let field = format!("{FIELD}[{i}]");
        if !seen.insert(version) {
            out.push(invalid(field, *version, "duplicate version"));
            continue;
        }
        out.extend(names::label_1035(version).into_iter().map(|why| invalid(field.as_str(), *version, why)));
    }
    if require_recognised && !versions.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let versions: Vec<Value> = versions.iter().map(|version| Value::from(*version)).collect();
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        out.push(invalid(FIELD, versions, detail));
    }
    out
}
