//! Validation of group, scope, names and deprecation warnings.

use serde_json::Value;

use super::{invalid, not_supported, required, view::Version};
use crate::{
    crd::{names, props::Props},
    schema::field::FieldError,
};

pub(super) fn group_and_scope(spec: Props<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let group = spec.text("group");
    let reasons = names::subdomain(group);
    if group.is_empty() {
        out.push(required("spec.group", ""));
    } else if !reasons.is_empty() {
        out.push(invalid("spec.group", group, reasons.join(",")));
    } else if !group.contains('.') {
        out.push(invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    match spec.text("scope") {
        "" => out.push(required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => out.push(not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    out
}

pub(super) fn deprecation_warning(version: &Version<'_>, path: &str) -> Vec<FieldError> {
    let Some(warning) = version.definition.get("deprecationWarning").and_then(Value::as_str) else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    if version.definition.flag("deprecated") {
        if warning.len() > 256 {
            reasons.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            reasons.push("must not be an empty string".to_owned());
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
            reasons.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    } else {
        reasons.push("can only be set for deprecated versions".to_owned());
    }
    let field = format!("{path}.deprecationWarning");
    reasons.into_iter().map(|reason| invalid(field.as_str(), warning, reason)).collect()
}

pub(super) fn validate_names(names: Props<'_>, path: &str) -> Vec<FieldError> {
    let mut out = Vec::new();
    for name in ["plural", "singular"] {
        let text = names.text(name);
        let reasons = names::label_1035(text);
        if !text.is_empty() && !reasons.is_empty() {
            out.push(invalid(format!("{path}.{name}"), text, reasons.join(",")));
        }
    }
    for name in ["kind", "listKind"] {
        let text = names.text(name);
        let reasons = names::label_1035(&text.to_lowercase());
        if !text.is_empty() && !reasons.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", reasons.join(","));
            out.push(invalid(format!("{path}.{name}"), text, detail));
        }
    }
    out.extend(labels(names, "shortNames", path));
    let kind = names.text("kind");
    if !kind.is_empty() && kind == names.text("listKind") {
        out.push(invalid(format!("{path}.listKind"), kind, "kind and listKind may not be the same"));
    }
    out.extend(labels(names, "categories", path));
    out
}

fn labels(names: Props<'_>, name: &str, path: &str) -> Vec<FieldError> {
    let texts = names.texts(name).into_iter().enumerate().map(|(i, text)| (i, text, names::label_1035(text)));
    texts
        .filter(|(_, _, reasons)| !reasons.is_empty())
        .map(|(i, text, reasons)| invalid(format!("{path}.{name}[{i}]"), text, reasons.join(",")))
        .collect()
}
