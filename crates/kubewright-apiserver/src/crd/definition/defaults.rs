//! Validation of `default` values: they must be pruned and valid under their own schema and its rules.

use serde_json::Value;

use super::invalid;
use crate::{
    cel::rules::{Budget, Rules},
    crd::{
        props::{Props, any},
        resource::prefixed,
    },
    schema::{
        AdditionalProperties, Child, Kind, Node, TypeRef, field::FieldError, prune::prune,
        validate::Validator,
    },
};

pub(super) fn validate(schema: &Value, path: &str, require_pruned: bool) -> Vec<FieldError> {
    let mut out = Vec::new();
    if !any(schema, &|props| props.get("default").is_some()) {
        return out;
    }
    if let Ok(root) = TypeRef::from_structural(schema) {
        visit(schema, Some(&root), true, false, path, require_pruned, &mut out);
    }
    out
}

/// Returns whether no default has fields unknown to its schema.
pub(super) fn are_pruned(schema: &Value) -> bool {
    validate(schema, "", true).iter().all(|error| error.detail != UNKNOWN)
}

const UNKNOWN: &str = "must not have unknown fields";

fn visit(
    schema: &Value,
    node: Option<&Node>,
    is_resource: bool,
    inside_meta: bool,
    path: &str,
    require_pruned: bool,
    out: &mut Vec<FieldError>,
) {
    let props = Props::new(schema);
    let embedded = is_resource || props.flag("x-kubernetes-embedded-resource");
    let inside_meta = inside_meta && !embedded;
    if let Some(default) = props.get("default") {
        let field = format!("{path}.default");
        if let Some(node) = node.filter(|_| require_pruned && !inside_meta) {
            let mut pruned = default.clone();
            prune(node, &mut pruned);
            if pruned != *default {
                out.push(invalid(field.as_str(), default.clone(), UNKNOWN));
            }
        }
        if let Ok(validator) = Validator::new(schema) {
            let errors = prefixed(validator.validate(default), &field);
            if errors.is_empty() {
                out.extend(rule_errors(schema, is_resource, default, &field));
            }
            out.extend(errors);
        }
    }
    if let Some(items) = props.items() {
        let node = node.and_then(Node::as_list).map(|list| list.item.node());
        visit(items, node, false, inside_meta, &format!("{path}.items"), require_pruned, out);
    }
    for (name, schema) in props.properties() {
        let meta = embedded && matches!(name, "metadata" | "apiVersion" | "kind");
        let node = node.and_then(|node| child(node, name));
        let path = format!("{path}.properties[{name}]");
        visit(schema, node, false, inside_meta || meta, &path, require_pruned, out);
    }
}

fn child<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Kind::Object(object) = &node.kind else { return None };
    match (object.field(name), &object.additional) {
        (Some(field), _) => Some(field.node.node()),
        (None, AdditionalProperties::Values(values)) => Some(Child::node(values)),
        (None, AdditionalProperties::Closed | AdditionalProperties::Any) => None,
    }
}

/// Validates a default both as an unchanged value and as a new one.
fn rule_errors(schema: &Value, is_resource: bool, default: &Value, field: &str) -> Vec<FieldError> {
    let Some(rules) = Rules::compile(schema, is_resource) else { return Vec::new() };
    let errors = rules.validate(field, default, Some(default), false, &mut Budget::per_object()).errors;
    if !errors.is_empty() {
        return errors;
    }
    rules.validate(field, default, None, false, &mut Budget::per_object()).errors
}
