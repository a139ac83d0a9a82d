//! What a namespace that is being deleted says about its contents.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::NamespaceCondition, apimachinery::pkg::apis::meta::v1::Time};

/// What was found after deleting the contents of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Groups that could not be asked what they serve.
    pub discovery: Option<String>,
    /// Deletions that failed, as sentences.
    pub failures: Vec<String>,
    /// How many objects of each kind, as `plural.group`, are left.
    pub remaining: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    pub finalizers: BTreeMap<String, usize>,
}

impl Findings {
    /// Whether the namespace may go.
    pub fn is_empty(&self) -> bool {
        self.discovery.is_none() && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// Takes in what is left of one kind: the finalizers of every object.
    pub fn remain<'a>(&mut self, plural: &str, group: &str, left: impl IntoIterator<Item = &'a [String]>) {
        let mut count = 0;
        for finalizers in left {
            count += 1;
            for finalizer in finalizers {
                *self.finalizers.entry(finalizer.clone()).or_default() += 1;
            }
        }
        if count > 0 {
            self.remaining.insert(format!("{plural}.{group}"), count);
        }
    }
}

/// A condition's type, and its reason and message when all is well.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// The conditions with what was found; `None` when they say that already.
pub fn plan(
    old: &[NamespaceCondition],
    findings: &Findings,
    now: Timestamp,
) -> Option<Vec<NamespaceCondition>> {
    let mut conditions = old.to_vec();
    for (kind, reason, message) in WELL {
        let trouble = trouble(kind, findings);
        let status = if trouble.is_some() { "True" } else { "False" };
        let (reason, message) = trouble.unwrap_or_else(|| (reason, message.to_owned()));
        let mut wanted = NamespaceCondition {
            last_transition_time: Some(Time(now)),
            message: Some(message),
            reason: Some(reason.to_owned()),
            status: status.to_owned(),
            type_: kind.to_owned(),
        };
        match conditions.iter_mut().find(|condition| condition.type_ == kind) {
            None => conditions.push(wanted),
            Some(held) => {
                if held.status == wanted.status {
                    wanted.last_transition_time.clone_from(&held.last_transition_time);
                }
                *held = wanted;
            }
        }
    }
    (conditions != old).then_some(conditions)
}

fn trouble(kind: &str, findings: &Findings) -> Option<(&'static str, String)> {
    let counted = |counts: &BTreeMap<String, usize>, word: &str| {
        let parts = counts.iter().map(|(what, count)| format!("{what} {word} {count} resource instances"));
        parts.collect::<Vec<_>>().join(", ")
    };
    match kind {
        "NamespaceDeletionDiscoveryFailure" => {
            findings.discovery.as_ref().map(|why| ("DiscoveryFailed", why.clone()))
        }
        "NamespaceDeletionContentFailure" if !findings.failures.is_empty() => {
            let mut failures = findings.failures.clone();
            failures.sort();
            let text = failures.join(", ");
            let count = failures.len();
            Some((
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {count} remaining: {text}"),
            ))
        }
        "NamespaceContentRemaining" if !findings.remaining.is_empty() => {
            let text = counted(&findings.remaining, "has");
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {text}")))
        }
        "NamespaceFinalizersRemaining" if !findings.finalizers.is_empty() => {
            let text = counted(&findings.finalizers, "in");
            let text = format!("Some content in the namespace has finalizers remaining: {text}");
            Some(("SomeFinalizersRemain", text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u8) -> Timestamp {
        format!("2026-08-01T00:{minute:02}:00Z").parse().unwrap()
    }

    #[test]
    fn an_empty_namespace_has_five_conditions_that_are_false() {
        let conditions = plan(&[], &Findings::default(), at(0)).unwrap();
        assert_eq!(conditions.len(), 5);
        assert!(conditions.iter().all(|condition| condition.status == "False"));
        assert!(Findings::default().is_empty());
    }

    #[test]
    fn what_remains_and_what_holds_it_is_counted() {
        let mut findings = Findings::default();
        let held = ["example.com/hold".to_owned()];
        findings.remain("configmaps", "", [held.as_slice()]);
        findings.remain("widgets", "example.com", [held.as_slice(), &[]]);
        findings.remain("secrets", "", []);
        let conditions = plan(&[], &findings, at(0)).unwrap();
        let message = |at: usize| conditions[at].message.clone().unwrap();
        assert_eq!(
            message(3),
            "Some resources are remaining: configmaps. has 1 resource instances, \
             widgets.example.com has 2 resource instances"
        );
        assert_eq!(
            message(4),
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances"
        );
        assert!(!findings.is_empty());
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut findings = Findings::default();
        findings.remain("configmaps", "", [[].as_slice(), &[]]);
        let first = plan(&[], &findings, at(0)).unwrap();
        assert_eq!(plan(&first, &findings, at(1)), None);
        findings.remaining.insert("configmaps.".into(), 1);
        let second = plan(&first, &findings, at(2)).unwrap();
        assert_eq!(second[3].last_transition_time, Some(Time(at(0))));
        let third = plan(&second, &Findings::default(), at(3)).unwrap();
        assert_eq!(third[3].last_transition_time, Some(Time(at(3))));
        assert_eq!(third[3].reason.as_deref(), Some("ContentRemoved"));
    }

    #[test]
    fn failures_are_listed_in_order() {
        let failures = vec!["b failed".to_owned(), "a failed".to_owned()];
        let findings =
            Findings { failures, discovery: Some("group x is down".into()), ..Findings::default() };
        let conditions = plan(&[], &findings, at(0)).unwrap();
        assert_eq!(conditions[0].message.as_deref(), Some("group x is down"));
        assert_eq!(
            conditions[2].message.as_deref(),
            Some("Failed to delete all resource types, 2 remaining: a failed, b failed")
        );
    }
}
