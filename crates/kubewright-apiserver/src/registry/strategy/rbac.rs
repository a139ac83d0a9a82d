//! Strategies of roles and bindings.

use serde_json::{Value, json};

use super::{PLAIN, Strategy};
use crate::registry::{
    json::{Json, default_text, object_mut, objects_mut, text, text_at},
    validation::{
        Errors,
        at::ObjectAt,
        names::{self, NameRule},
    },
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) static ROLE: Strategy = Strategy {
    names: NameRule::PathSegment,
    validate: |role, errors| validate_rules(role, true, errors),
    validate_update: |new, _, errors| validate_rules(new, true, errors),
    ..PLAIN
};

pub(super) static CLUSTER_ROLE: Strategy = Strategy {
    names: NameRule::PathSegment,
    validate: validate_cluster_role,
    validate_update: |new, _, errors| validate_cluster_role(new, errors),
    ..PLAIN
};

fn validate_cluster_role(role: &Json, errors: &mut Errors) {
    validate_rules(role, false, errors);
    let Some(rule) = ObjectAt::new(role, "").child("aggregationRule") else { return };
    let selectors: Vec<ObjectAt<'_>> = rule.each("clusterRoleSelectors").collect();
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(rule.path("clusterRoleSelectors"), why);
    }
    for selector in selectors {
        super::templates::validate_selector(selector.object, &selector.field.to_string(), errors);
    }
}

fn validate_rules(role: &Json, namespaced: bool, errors: &mut Errors) {
    for rule in ObjectAt::new(role, "").each("rules") {
        if rule.list("verbs").is_empty() {
            errors.required(rule.path("verbs"), "");
        }
        let urls = rule.list("nonResourceURLs");
        if !urls.is_empty() {
            let refuse = |why: &str, errors: &mut Errors| {
                errors.invalid(rule.path("nonResourceURLs"), Value::Array(urls.to_vec()), why);
            };
            if namespaced {
                refuse("namespaced rules cannot apply to non-resource URLs", errors);
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|key| !rule.list(key).is_empty()) {
                refuse("rules cannot apply to both regular resources and non-resource URLs", errors);
            }
            continue;
        }
        if rule.list("apiGroups").is_empty() {
            errors.required(rule.path("apiGroups"), "resource rules must supply at least one api group");
        }
        if rule.list("resources").is_empty() {
            errors.required(rule.path("resources"), "resource rules must supply at least one resource");
        }
    }
}

pub(super) static BINDING: Strategy = Strategy {
    names: NameRule::PathSegment,
    default: default_binding,
    validate: |binding, errors| validate_binding(binding, &["Role", "ClusterRole"], errors),
    validate_update: |new, old, errors| {
        validate_binding(new, &["Role", "ClusterRole"], errors);
        validate_same_role(new, old, errors);
    },
    ..PLAIN
};

pub(super) static CLUSTER_BINDING: Strategy = Strategy {
    names: NameRule::PathSegment,
    default: default_binding,
    validate: |binding, errors| validate_binding(binding, &["ClusterRole"], errors),
    validate_update: |new, old, errors| {
        validate_binding(new, &["ClusterRole"], errors);
        validate_same_role(new, old, errors);
    },
    ..PLAIN
};

fn default_binding(binding: &mut Json) {
    default_text(object_mut(binding, "roleRef"), "apiGroup", GROUP);
    for subject in objects_mut(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default_text(subject, "apiGroup", GROUP);
        }
    }
}

fn validate_binding(binding: &Json, kinds: &[&str], errors: &mut Errors) {
    let binding = ObjectAt::new(binding, "");
    let Some(role) = binding.child("roleRef") else { return };
    let group = role.text("apiGroup");
    if group != GROUP {
        errors.not_supported(role.path("apiGroup"), group, &[GROUP]);
    }
    if !kinds.contains(&role.text("kind")) {
        errors.not_supported(role.path("kind"), role.text("kind"), kinds);
    }
    for subject in binding.each("subjects") {
        validate_subject(&subject, text_at(binding.object, &["metadata", "namespace"]), errors);
    }
    role.required("name", errors);
    role.named("name", |name| NameRule::PathSegment.check(name), errors);
}

fn validate_subject(subject: &ObjectAt<'_>, namespace: &str, errors: &mut Errors) {
    let group = subject.text("apiGroup");
    match subject.text("kind") {
        "ServiceAccount" => {
            subject.named("name", names::subdomain, errors);
            if !group.is_empty() {
                errors.not_supported(subject.path("apiGroup"), group, &[""]);
            }
            // In a namespaced binding the namespace of the account may be omitted.
            if subject.text("namespace").is_empty() && namespace.is_empty() {
                errors.required(subject.path("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.not_supported(subject.path("apiGroup"), group, &[GROUP]);
            }
        }
        other => {
            errors.not_supported(subject.path("kind"), other, &["ServiceAccount", "User", "Group"]);
        }
    }
    subject.required("name", errors);
}

fn validate_same_role(new: &Json, old: &Json, errors: &mut Errors) {
    if new.get("roleRef") != old.get("roleRef") {
        let of = |key: &str| text_at(new, &["roleRef", key]).to_owned();
        let shown = json!({"APIGroup": of("apiGroup"), "Kind": of("kind"), "Name": of("name")});
        errors.invalid("roleRef", shown, "field is immutable");
    }
}
