//! Which writes a policy or a webhook is about: rules, selectors, equivalent versions.

use std::sync::Arc;

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::{Attributes, Operation};
use crate::{
    registry::{
        Registry,
        descriptor::Descriptor,
        json::{Json, list, meta, object, objects, text},
        selector::LabelSelector,
    },
    status::{About, Status},
};

/// Questions that store nothing, which nobody may get between.
pub(crate) const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Whether what users bring is never asked: their own configuration, so that a mistake can be taken back, and reviews.
pub(super) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let ty = attributes.ty();
    ty.group == "admissionregistration.k8s.io" || REVIEWS.contains(&(ty.group.as_ref(), ty.plural.as_ref()))
}

fn has(items: &[Value], wanted: &str) -> bool {
    items.iter().any(|item| item == "*" || item == wanted)
}

/// Whether a rule is about a write, seen as one of `ty`.
fn rule_matches(rule: &Json, attributes: &Attributes<'_>, ty: &Descriptor) -> bool {
    let is_namespace = ty.group.is_empty() && ty.plural == "namespaces";
    let in_namespace = !is_namespace && !attributes.namespace().is_empty();
    let in_scope = match text(rule, "scope") {
        "Namespaced" => in_namespace,
        "Cluster" => !in_namespace,
        _ => true,
    };
    in_scope
        && has(list(rule, "operations"), attributes.operation.as_str())
        && has(list(rule, "apiGroups"), &ty.group)
        && has(list(rule, "apiVersions"), &ty.version)
        && list(rule, "resources").iter().filter_map(Value::as_str).any(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            (resource == "*" || resource == ty.plural)
                && (subresource == "*" || subresource == attributes.call.subresource)
        })
}

fn name_matches(rule: &Json, attributes: &Attributes<'_>) -> bool {
    let names = list(rule, "resourceNames");
    names.is_empty() || names.iter().any(|name| name == attributes.name())
}

/// The type as which a write matches one of the rules: its own, else one that is stored in the same place.
pub(super) fn rules_match(
    rules: &[Value],
    match_policy: &str,
    registry: &Registry,
    attributes: &Attributes<'_>,
) -> Option<Arc<Descriptor>> {
    let own = attributes.call.ty;
    let rules: Vec<&Json> = rules.iter().filter_map(Value::as_object).collect();
    if rules.iter().any(|rule| rule_matches(rule, attributes, own) && name_matches(rule, attributes)) {
        return Some(Arc::clone(own));
    }
    if match_policy != "Equivalent" {
        return None;
    }
    let types = registry.types();
    let subresource = attributes.call.subresource;
    let equivalent = |ty: &&Arc<Descriptor>| {
        ty.storage == own.storage
            && (ty.group != own.group || ty.version != own.version)
            && (subresource.is_empty() || ty.subresource(subresource).is_some())
    };
    let equivalents: Vec<&Arc<Descriptor>> = types.all().iter().filter(equivalent).collect();
    rules.iter().filter(|rule| name_matches(rule, attributes)).find_map(|rule| {
        equivalents.iter().find(|ty| rule_matches(rule, attributes, ty)).map(|ty| Arc::clone(ty))
    })
}

fn labels_match(selector: &LabelSelector, labels: Option<&Json>) -> bool {
    selector.matches(|key| labels?.get(key)?.as_str())
}

fn selector(parent: &Json, key: &str) -> Result<Option<LabelSelector>, Status> {
    let Some(written) = parent.get(key) else { return Ok(None) };
    let selector = LabelSelector::from_object(written)
        .ok_or_else(|| Status::internal_error(format!("{key} is not a valid label selector")))?;
    Ok(Some(selector).filter(|selector| !selector.is_empty()))
}

/// Whether the namespace of a write is selected. What is in no namespace always is.
pub(super) fn namespace_selected(
    parent: &Json,
    registry: &Registry,
    attributes: &Attributes<'_>,
) -> Result<bool, Status> {
    let ty = attributes.ty();
    let namespace = attributes.namespace();
    if namespace.is_empty() && ty.plural != "namespaces" {
        return Ok(true);
    }
    let Some(selector) = selector(parent, "namespaceSelector")? else { return Ok(true) };
    let about_namespace = ty.plural == "namespaces" && attributes.call.subresource.is_empty();
    if about_namespace && matches!(attributes.operation, Operation::Create | Operation::Update) {
        return Ok(labels_match(&selector, object(meta(&attributes.object), "labels")));
    }
    let found = registry
        .storage
        .get("namespaces", &ObjectKey::cluster(namespace))
        .ok_or_else(|| Status::not_found(About { group: "", kind: "namespaces", name: namespace }))?;
    Ok(selector.matches(|key| found.meta.label(key)))
}

/// Whether the object of a write is selected, as it is or as it was.
pub(super) fn object_selected(parent: &Json, attributes: &Attributes<'_>) -> Result<bool, Status> {
    let Some(selector) = selector(parent, "objectSelector")? else { return Ok(true) };
    let selected = |object: &Json| labels_match(&selector, self::object(meta(object), "labels"));
    let current = Some(&attributes.object).filter(|object| !object.is_empty());
    Ok(current.is_some_and(selected) || attributes.old.is_some_and(selected))
}

/// Whether `matchConstraints` or `matchResources` are about a write, and as which type.
pub(super) fn resources_match(
    criteria: &Json,
    registry: &Registry,
    attributes: &Attributes<'_>,
) -> Result<Option<Arc<Descriptor>>, Status> {
    let in_namespace = namespace_selected(criteria, registry, attributes);
    let is_object = object_selected(criteria, attributes);
    if matches!(in_namespace, Ok(false)) || matches!(is_object, Ok(false)) {
        return Ok(None);
    }
    let policy = text(criteria, "matchPolicy");
    let rules = |key: &str| rules_match(list(criteria, key), policy, registry, attributes);
    if rules("excludeResourceRules").is_some() {
        return Ok(None);
    }
    let found = if objects(criteria, "resourceRules").next().is_none() {
        Some(Arc::clone(attributes.call.ty))
    } else {
        rules("resourceRules")
    };
    // Only a write that the rules are about is told what is wrong with the selectors.
    if found.is_some() {
        in_namespace?;
        is_object?;
    }
    Ok(found)
}
