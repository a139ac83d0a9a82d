//! Structural schema rules: every node has a type, and value validations nested in `allOf`, `anyOf`, `oneOf`
//! and `not` restrict only fields that the schema proper specifies.

use serde_json::{Value, json};

use super::{forbidden, invalid, required};
use crate::{crd::props::Props, schema::field::FieldError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Returns the keyword that makes a schema non-structural, as text.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let props = Props::new(schema);
    for name in
        ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"]
    {
        if props.get(name).is_some_and(|value| !is_zero(value)) {
            let name = if name == "$schema" { "schema" } else { name };
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if props.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    if props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    let nested = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| props.list(name));
    let single = [props.items(), props.values(), props.get("not")].into_iter().flatten();
    props.properties().map(|(_, schema)| schema).chain(nested).chain(single).find_map(unsupported)
}

/// Returns whether Go's decoder leaves the field at its zero value.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

pub(super) fn validate(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut out = Vec::new();
    invariants(Props::new(schema), Level::Root, path, &mut out);
    // Only clauses of the root are checked, as upstream.
    for (name, clause) in clauses(schema) {
        covered(clause, schema, path, &format!("{path}.{name}"), &mut out);
    }
    out.sort_by_key(ToString::to_string);
    out
}

fn invariants(props: Props<'_>, level: Level, path: &str, out: &mut Vec<FieldError>) {
    let kind = props.kind();
    if kind == "array" && props.get("items").is_none() {
        out.push(required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = props.items() {
        invariants(Props::new(items), Level::Item, &format!("{path}.items"), out);
    }
    for (name, schema) in props.properties() {
        invariants(Props::new(schema), Level::Field, &format!("{path}.properties[{name}]"), out);
    }
    let has_rest = props.get("additionalProperties").is_some();
    if has_rest {
        if level == Level::Root {
            out.push(forbidden(format!("{path}.additionalProperties"), "must not be used at the root"));
        }
        if let Some(values) = props.values() {
            invariants(Props::new(values), Level::Field, &format!("{path}.additionalProperties"), out);
        }
    }
    let flag = |name: &str| props.flag(name);
    let embedded = flag("x-kubernetes-embedded-resource");
    let preserve = flag("x-kubernetes-preserve-unknown-fields");
    let int_or_string = flag("x-kubernetes-int-or-string");
    for (name, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            out.push(invalid(format!("{path}.{name}"), true, detail));
        }
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let skip_any_of = props.get("anyOf") == Some(&either);
    let skip_first = props.list("allOf").first().is_some_and(|first| first.get("anyOf") == Some(&either));
    value_rules(props, skip_any_of, skip_first, path, out);
    let type_field = format!("{path}.type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        out.push(if kind.is_empty() {
            required(type_field, detail)
        } else {
            invalid(type_field, kind, detail)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        out.push(required(
            type_field,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if embedded && has_rest {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        out.push(forbidden(format!("{path}.additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        out.push(invalid(format!("{path}.type"), kind, "must be object at the root"));
    }
    let is_resource = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(found) = props.property(name).map(|schema| Props::new(schema).kind())
            && is_resource
            && found != "string"
        {
            out.push(invalid(format!("{path}.properties[{name}].type"), found, "must be string"));
        }
    }
    if let Some(metadata) = props.property("metadata") {
        metadata_rules(
            Props::new(metadata),
            is_resource,
            level,
            &format!("{path}.properties[metadata]"),
            out,
        );
    }
    if embedded && !preserve && !props.has_properties() {
        out.push(required(
            format!("{path}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// Validates metadata at the root, which may restrict only the name.
fn metadata_rules(props: Props<'_>, is_resource: bool, level: Level, path: &str, out: &mut Vec<FieldError>) {
    if is_resource && props.kind() != "object" {
        out.push(invalid(format!("{path}.type"), props.kind(), "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let only_names = props.properties().all(|(name, _)| matches!(name, "name" | "generateName"));
    let other = props
        .0
        .into_iter()
        .flatten()
        .any(|(key, value)| !matches!(&**key, "type" | "properties" | "default") && !is_zero(value));
    if !only_names || other {
        out.push(forbidden(
            path,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ));
    }
}

fn value_rules(props: Props<'_>, skip_any_of: bool, skip_first: bool, path: &str, out: &mut Vec<FieldError>) {
    if !skip_any_of {
        for (i, schema) in props.list("anyOf").iter().enumerate() {
            nested_rules(Props::new(schema), false, &format!("{path}.anyOf[{i}]"), out);
        }
    }
    for (i, schema) in props.list("allOf").iter().enumerate() {
        nested_rules(Props::new(schema), skip_first && i == 0, &format!("{path}.allOf[{i}]"), out);
    }
    for (i, schema) in props.list("oneOf").iter().enumerate() {
        nested_rules(Props::new(schema), false, &format!("{path}.oneOf[{i}]"), out);
    }
    if let Some(schema) = props.get("not") {
        nested_rules(Props::new(schema), false, &format!("{path}.not"), out);
    }
    let pattern = props.text("pattern");
    if !pattern.is_empty()
        && let Err(reason) = regex::Regex::new(pattern)
    {
        let reason = reason.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let detail = format!(
            "must be a valid regular expression, but isn't: error parsing regexp: {reason}: `{pattern}`"
        );
        out.push(invalid(format!("{path}.pattern"), pattern, detail));
    }
}

const EMPTY: &str = "must be empty to be structural";
const UNDEFINED: &str = "must be undefined to be structural";
const FALSE: &str = "must be false to be structural";

fn nested_rules(props: Props<'_>, skip_any_of: bool, path: &str, out: &mut Vec<FieldError>) {
    value_rules(props, skip_any_of, false, path, out);
    if let Some(items) = props.items() {
        nested_rules(Props::new(items), false, &format!("{path}.items"), out);
    }
    for (name, schema) in props.properties() {
        nested_rules(Props::new(schema), false, &format!("{path}.properties[{name}]"), out);
    }
    let rest = props.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
    for (name, detail) in [
        ("type", EMPTY),
        ("default", UNDEFINED),
        ("title", EMPTY),
        ("description", EMPTY),
        ("nullable", FALSE),
        ("x-kubernetes-preserve-unknown-fields", FALSE),
        ("x-kubernetes-embedded-resource", FALSE),
        ("x-kubernetes-int-or-string", FALSE),
        ("x-kubernetes-list-map-keys", EMPTY),
        ("x-kubernetes-list-type", UNDEFINED),
        ("x-kubernetes-map-type", UNDEFINED),
        ("x-kubernetes-validations", EMPTY),
    ] {
        if props.get(name).is_some_and(|value| detail == UNDEFINED || !is_zero(value)) {
            out.push(forbidden(format!("{path}.{name}"), detail));
        }
    }
    if rest {
        out.push(forbidden(format!("{path}.additionalProperties"), UNDEFINED));
    }
    if props.property("metadata").is_some() {
        out.push(forbidden(
            format!("{path}.properties[metadata]"),
            "must not be specified in a nested context",
        ));
    }
}

/// Returns the clauses of `allOf`, `anyOf`, `oneOf` and `not` of one node, with their names.
fn clauses(schema: &Value) -> Vec<(String, &Value)> {
    let props = Props::new(schema);
    let mut out: Vec<_> = props.get("not").map(|clause| ("not".to_owned(), clause)).into_iter().collect();
    for name in ["allOf", "anyOf", "oneOf"] {
        out.extend(props.list(name).iter().enumerate().map(|(i, clause)| (format!("{name}[{i}]"), clause)));
    }
    out
}

/// Validates that every field of a clause is specified outside of it.
fn covered(clause: &Value, described: &Value, path: &str, at: &str, out: &mut Vec<FieldError>) {
    let (props, real) = (Props::new(clause), Props::new(described));
    for (name, clause) in clauses(clause) {
        covered(clause, described, path, &format!("{at}.{name}"), out);
    }
    if let Some(items) = props.items() {
        match real.items() {
            None => {
                out.push(required(format!("{path}.items"), format!("because it is defined in {at}.items")));
            }
            Some(schema) => {
                covered(items, schema, &format!("{path}.items"), &format!("{at}.items"), out);
            }
        }
    }
    for (name, clause) in props.properties() {
        let (path, at) = (format!("{path}.properties[{name}]"), format!("{at}.properties[{name}]"));
        match real.property(name) {
            None => out.push(required(path, format!("because it is defined in {at}"))),
            Some(schema) => covered(clause, schema, &path, &at, out),
        }
    }
}
