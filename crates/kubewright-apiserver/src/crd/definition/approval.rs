//! API approval: CRDs in the groups of the Kubernetes project need an annotation with their approval.

use serde_json::Value;

use super::{invalid, required};
use crate::schema::{field::FieldError, go};

pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";
const MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Content of the annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Approval {
    Missing,
    Bypassed(String),
    Approved(String),
    Invalid(String),
}

pub(super) fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

pub(super) fn approval(crd: &Value) -> Approval {
    let text = crd["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !host.is_empty()
            && !host.contains(' ')
    });
    match text {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed(text.to_owned()),
        text if is_url => Approval::Approved(text.to_owned()),
        text => Approval::Invalid(text.to_owned()),
    }
}

impl Approval {
    /// Returns the reason used by errors and by the condition.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Missing => {
                format!("protected groups must have approval annotation {}, {MORE}", go::quote(ANNOTATION))
            }
            Self::Bypassed(text) => format!("not approved: {}", go::quote(text)),
            Self::Approved(text) => format!("approved in {text}"),
            Self::Invalid(_) => format!(
                "protected groups must have approval annotation {} with either a URL or a reason starting with \
                 \"unapproved\", {MORE}",
                go::quote(ANNOTATION)
            ),
        }
    }
}

/// Validates the approval; a CRD that was unapproved before may stay so.
pub(super) fn validate(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    if !is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        return None;
    }
    let state = approval(crd);
    if old.is_some_and(|old| std::mem::discriminant(&approval(old)) == std::mem::discriminant(&state)) {
        return None;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match &state {
        Approval::Missing => Some(required(field, state.reason())),
        Approval::Invalid(text) => Some(invalid(field, text.as_str(), state.reason())),
        Approval::Bypassed(_) | Approval::Approved(_) => None,
    }
}
