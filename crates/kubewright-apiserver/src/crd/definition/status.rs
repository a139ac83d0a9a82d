//! Status of a CRD: accepted names and conditions.
//!
//! In kube-apiserver controllers set these, shortly after the write. [`refresh`] does the work of all of
//! them; call it for the CRD that was written, and for the others of its group when a name may have become
//! free.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    approval::{self, Approval},
    structural,
    view::View,
};
use kubewright_schema::props::{self, Props, entry};

/// Returns whether a condition is `True`.
pub fn is_true(crd: &Value, condition: &str) -> bool {
    find(crd, condition).is_some_and(|found| found["status"] == "True")
}

fn find<'c>(crd: &'c Value, condition: &str) -> Option<&'c Value> {
    crd["status"]["conditions"].as_array()?.iter().find(|found| found["type"] == condition)
}

/// Sets a condition; its transition time changes only with its status.
pub fn set_condition(crd: &mut Value, condition: &str, status: &str, reason: &str, message: &str, now: &str) {
    let Some(conditions) = entry(crd, &["status", "conditions"]) else { return };
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let new = json!({"type": condition, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    match conditions.iter_mut().find(|found| found["type"] == condition) {
        None => conditions.push(new),
        Some(found) => {
            let time =
                if found["status"] == status { found["lastTransitionTime"].clone() } else { now.into() };
            *found = new;
            props::set(found, &["lastTransitionTime"], time);
        }
    }
}

/// Marks a CRD in deletion: no new objects, and the cleanup finalizer until the existing ones are deleted.
pub fn mark_terminating(crd: &mut Value, now: &str) {
    if crd["metadata"]["deletionTimestamp"].is_null() {
        props::set(crd, &["metadata", "deletionTimestamp"], now);
    }
    let Some(finalizers) = entry(crd, &["metadata", "finalizers"]) else { return };
    if !finalizers.is_array() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == super::CLEANUP_FINALIZER)
    {
        finalizers.push(super::CLEANUP_FINALIZER.into());
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(crd, "Terminating", "True", "InstanceDeletionPending", message, now);
}

/// Returns the CRD with updated names and conditions, or `None` if they are up to date.
///
/// `group` are the CRDs of the same group, with or without this one.
///
/// ```
/// use kubewright_apiserver::crd::definition::status;
/// use serde_json::json;
///
/// let names = json!({"plural": "demos", "singular": "demo", "kind": "Demo", "listKind": "DemoList"});
/// let crd = json!({"metadata": {"name": "demos.example.com"}, "spec": {"group": "example.com", "names": names}});
/// let ready = status::refresh(&crd, [&crd], "2026-01-01T00:00:00Z").unwrap();
/// assert!(status::is_true(&ready, "Established"));
/// assert_eq!(ready["status"]["acceptedNames"], names);
/// assert!(status::refresh(&ready, [&ready], "2026-01-01T00:00:01Z").is_none());
/// ```
pub fn refresh<'c>(crd: &Value, group: impl IntoIterator<Item = &'c Value>, now: &str) -> Option<Value> {
    let mut out = crd.clone();
    names(crd, group, now, &mut out);
    approval_condition(crd, now, &mut out);
    structural_condition(crd, now, &mut out);
    (out != *crd).then_some(out)
}

fn names<'c>(crd: &Value, group: impl IntoIterator<Item = &'c Value>, now: &str, out: &mut Value) {
    let wanted = Props::new(&crd["spec"]["names"]);
    let accepted = Props::new(&crd["status"]["acceptedNames"]);
    if encode_names(wanted) == encode_names(accepted) && find(crd, "NamesAccepted").is_some() {
        return;
    }
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in group.into_iter().filter(|other| other["spec"]["group"] == crd["spec"]["group"]) {
        let names = Props::new(&other["status"]["acceptedNames"]);
        resources.extend([names.text("plural"), names.text("singular")].map(str::to_owned));
        resources.extend(names.texts("shortNames").into_iter().map(str::to_owned));
        kinds.extend([names.text("kind"), names.text("listKind")].map(str::to_owned));
    }
    let mut conflict = None;
    let mut new = encode_names(accepted);
    for (name, used, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let (want, have) = (texts(wanted, name), texts(accepted, name));
        let taken: Vec<_> = want
            .iter()
            .filter(|text| !have.contains(text) && used.contains(**text))
            .map(|text| format!("\"{text}\" is already in use"))
            .collect();
        if taken.is_empty() {
            set(&mut new, wanted, name);
        } else {
            let message = if taken.len() == 1 { taken[0].clone() } else { format!("[{}]", taken.join(", ")) };
            conflict = Some((reason, message));
        }
    }
    set(&mut new, wanted, "categories");
    props::set(out, &["status", "acceptedNames"], new);
    match &conflict {
        Some((reason, message)) => set_condition(out, "NamesAccepted", "False", reason, message, now),
        None => set_condition(out, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
    }
    if conflict.is_none() && !is_true(crd, "Established") {
        let message = "the initial names have been accepted";
        set_condition(out, "Established", "True", "InitialNamesAccepted", message, now);
    } else if find(crd, "Established").is_none() {
        set_condition(out, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
}

fn texts<'c>(names: Props<'c>, name: &str) -> Vec<&'c str> {
    match names.get(name) {
        Some(Value::String(text)) if !text.is_empty() => vec![text],
        Some(Value::Array(_)) => names.texts(name),
        _ => Vec::new(),
    }
}

fn set(names: &mut Map<String, Value>, from: Props<'_>, name: &str) {
    match from.get(name).filter(|_| !texts(from, name).is_empty()) {
        Some(value) => names.insert(name.to_owned(), value.clone()),
        None if matches!(name, "plural" | "kind") => names.insert(name.to_owned(), "".into()),
        None => names.remove(name),
    };
}

/// Encodes names: plural and kind always, the others if set.
fn encode_names(names: Props<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    for name in ["plural", "singular", "shortNames", "kind", "listKind", "categories"] {
        set(&mut out, names, name);
    }
    out
}

fn approval_condition(crd: &Value, now: &str, out: &mut Value) {
    const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";
    if !approval::is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        return;
    }
    let state = approval::approval(crd);
    let (status, reason) = match &state {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid(_) => ("False", "InvalidAnnotation"),
        Approval::Bypassed(_) => ("False", "UnapprovedAPI"),
        Approval::Approved(_) => ("True", "ApprovedAnnotation"),
    };
    set_condition(out, CONDITION, status, reason, &state.reason(), now);
}

fn structural_condition(crd: &Value, now: &str, out: &mut Value) {
    const CONDITION: &str = "NonStructuralSchema";
    let view = View::new(crd);
    let mut errors = Vec::new();
    for (i, version) in view.versions.iter().enumerate() {
        let path = format!("spec.versions[{i}].schema.openAPIV3Schema");
        errors.extend(version.schema.into_iter().flat_map(|schema| structural::validate(schema, &path)));
    }
    if !errors.is_empty() {
        set_condition(out, CONDITION, "True", "Violations", &crate::schema::field::join(&errors), now);
    } else if let Some(conditions) = out.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition["type"] != CONDITION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {"group": "example.com", "names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
            "shortNames": short}}})
    }

    #[test]
    fn the_last_conflict_is_reported_and_free_names_are_accepted() {
        let first = refresh(&crd("widgets", "Widget", &["wd"]), [], "t").unwrap();
        let second = refresh(&crd("gizmos", "Widget", &["gz", "wd"]), [&first], "t").unwrap();
        assert_eq!(second["status"]["acceptedNames"], json!({"plural": "gizmos", "kind": ""}));
        let conditions = &second["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "ListKindConflict");
        assert_eq!(conditions[0]["message"], "\"WidgetList\" is already in use");
        assert_eq!(conditions[1]["reason"], "NotAccepted");
        let freed = refresh(&second, [&second], "u").unwrap();
        assert!(is_true(&freed, "Established") && is_true(&freed, "NamesAccepted"));
    }

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_is_unchanged() {
        let mut crd = json!({});
        set_condition(&mut crd, "A", "True", "x", "", "1");
        set_condition(&mut crd, "A", "True", "y", "", "2");
        assert_eq!(crd["status"]["conditions"][0]["lastTransitionTime"], "1");
        set_condition(&mut crd, "A", "False", "y", "", "3");
        assert_eq!(crd["status"]["conditions"][0]["lastTransitionTime"], "3");
    }

    #[test]
    fn deletion_adds_the_cleanup_finalizer_once() {
        let mut definition = crd("widgets", "Widget", &[]);
        mark_terminating(&mut definition, "1");
        mark_terminating(&mut definition, "2");
        assert_eq!(definition["metadata"]["finalizers"], json!([super::super::CLEANUP_FINALIZER]));
        assert_eq!(definition["metadata"]["deletionTimestamp"], "1");
        assert!(is_true(&definition, "Terminating"));
    }
}
