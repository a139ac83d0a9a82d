//! Validation of every node of a schema: types, keywords forbidden in CRDs, list and map types, and rules.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    error, forbidden, invalid, not_supported, required, rules, spec::Strictness, structural::is_zero,
};
use crate::{
    crd::props::Props,
    schema::field::{ErrorKind, FieldError},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords allowed at the root of a schema with a status subresource, with their Go names.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

pub(super) fn is_known_type(kind: &str) -> bool {
    kind.is_empty() || TYPES.contains(&kind)
}

/// Validates the root against the restrictions of the status subresource.
pub(super) fn root(schema: &Value, has_status: bool, path: &str) -> Option<FieldError> {
    if !has_status {
        return None;
    }
    let props = Props::new(schema);
    let kind = props.kind();
    if !kind.is_empty() && kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(invalid(format!("{path}.type"), kind, detail));
    }
    let other =
        props.0?.iter().any(|(key, value)| !is_zero(value) && !AT_ROOT.iter().any(|(name, _)| name == key));
    other.then(|| {
        let allowed: Vec<_> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        invalid(path, schema.clone(), detail)
    })
}

/// Context of a node from its ancestors.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeContext {
    /// Why a default is not allowed, if so.
    no_default: Option<String>,
    inside_meta: bool,
    /// First ancestor whose content cannot be correlated with its old value.
    pub(super) uncorrelatable: Option<String>,
}

/// Errors of the schema and errors of its rules; the latter come last.
#[derive(Debug, Default)]
pub(super) struct SchemaErrors {
    pub(super) schema: Vec<FieldError>,
    pub(super) rules: Vec<FieldError>,
}

impl SchemaErrors {
    fn merge(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }
}

/// Validates a schema; rules are compiled only if the schema is structural (`with_rules`).
pub(super) fn validate(schema: &Value, path: &str, strict: Strictness, with_rules: bool) -> Vec<FieldError> {
    let mut total = rules::TotalCost::default();
    let mut walk = Walk { strict, total: &mut total };
    let scope = with_rules.then(|| rules::Scope::root(schema));
    let found = walk.node(schema, path, &NodeContext::default(), true, scope.as_ref());
    let mut out = found.schema;
    out.extend(found.rules);
    out.extend(total.errors(path));
    out
}

struct Walk<'t> {
    strict: Strictness,
    total: &'t mut rules::TotalCost,
}

impl Walk<'_> {
    fn node<'s>(
        &mut self,
        schema: &'s Value,
        path: &str,
        context: &NodeContext,
        is_root: bool,
        scope: Option<&rules::Scope<'s>>,
    ) -> SchemaErrors {
        let props = Props::new(schema);
        let mut found = SchemaErrors { schema: self.keywords(props, path, context), rules: Vec::new() };
        self.children(props, path, context, is_root, scope, &mut found);
        let out = &mut found.schema;
        if props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
            out.push(invalid(field, false, "must be true or undefined"));
        }
        map_type(props, path, out);
        self.list_type(props, path, out);
        if self.strict.map_keys {
            out.extend(map_keys(props, path));
        }
        rules::texts(schema, path, out);
        if found.schema.is_empty()
            && let Some(scope) = scope
        {
            found.rules.extend(rules::compile(
                schema,
                path,
                scope,
                context,
                self.strict.rule_cost,
                self.total,
            ));
        }
        found
    }

    fn keywords(&self, props: Props<'_>, path: &str, context: &NodeContext) -> Vec<FieldError> {
        let mut out = Vec::new();
        let kind = props.kind();
        if self.strict.known_types && !is_known_type(kind) {
            out.push(not_supported(format!("{path}.type"), kind, &TYPES));
        }
        if let Some(reason) = context.no_default.as_ref().filter(|_| props.get("default").is_some()) {
            out.push(forbidden(format!("{path}.default"), format!("must not be set {reason}")));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if props.get(name).is_some_and(|value| !is_zero(value)) {
                out.push(forbidden(format!("{path}.{name}"), format!("{name} is not supported")));
            }
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            out.push(forbidden(format!("{path}.type"), detail));
        }
        if props.get("items").is_some_and(Value::is_array) {
            out.push(forbidden(format!("{path}.items"), "items must be a schema object and not an array"));
        }
        if context.inside_meta && props.flag("x-kubernetes-embedded-resource") {
            let field = format!("{path}.x-kubernetes-embedded-resource");
            out.push(forbidden(field, "must not be used inside of resource meta"));
        }
        if props.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            out.push(forbidden(format!("{path}.uniqueItems"), detail));
        }
        let closed = props.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(true));
        if closed && props.has_properties() {
            let detail = "additionalProperties and properties are mutual exclusive";
            out.push(forbidden(format!("{path}.additionalProperties"), detail));
        }
        out
    }

    fn children<'s>(
        &mut self,
        props: Props<'s>,
        path: &str,
        context: &NodeContext,
        is_root: bool,
        scope: Option<&rules::Scope<'s>>,
        found: &mut SchemaErrors,
    ) {
        if let Some(values) = props.values() {
            let mut below = context.clone();
            if context.inside_meta {
                below.no_default = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            let scope = scope.map(|scope| scope.below(values));
            found.merge(self.node(
                values,
                &format!("{path}.additionalProperties"),
                &below,
                false,
                scope.as_ref(),
            ));
        }
        let is_resource = is_root || props.flag("x-kubernetes-embedded-resource");
        for (name, schema) in props.properties() {
            let mut below = context.clone();
            if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
                below.inside_meta = true;
                if is_root {
                    below.no_default = Some(format!("in top-level {name}"));
                }
            }
            let scope = scope.map(|scope| scope.below(schema));
            found.merge(self.node(
                schema,
                &format!("{path}.properties[{name}]"),
                &below,
                false,
                scope.as_ref(),
            ));
        }
        if let Some(schema) = props.get("not") {
            found.merge(self.node(schema, &format!("{path}.not"), context, false, None));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (i, schema) in props.list(name).iter().enumerate() {
                found.merge(self.node(schema, &format!("{path}.{name}[{i}]"), context, false, None));
            }
        }
        if let Some(items) = props.items() {
            let mut below = context.clone();
            if props.text("x-kubernetes-list-type") != "map" && below.uncorrelatable.is_none() {
                below.uncorrelatable = Some(path.to_owned());
            }
            let scope = scope.map(|scope| scope.below(items));
            found.merge(self.node(items, &format!("{path}.items"), &below, false, scope.as_ref()));
        }
    }

    fn list_type(&self, props: Props<'_>, path: &str, out: &mut Vec<FieldError>) {
        const TYPE: &str = "x-kubernetes-list-type";
        const KEYS: &str = "x-kubernetes-list-map-keys";
        let keys = props.texts(KEYS);
        let Some(list_type) = props.get(TYPE).and_then(Value::as_str) else {
            if !keys.is_empty() {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                out.push(required(format!("{path}.{TYPE}"), detail));
            }
            return;
        };
        if props.kind() != "array" {
            out.push(wrong_type(props.kind(), path, "must be array if x-kubernetes-list-type is specified"));
        } else if self.strict.atomic_sets && has_granular_set(props) {
            let items = Props::new(props.items().unwrap_or(&Value::Null));
            let name = if items.kind() == "array" { TYPE } else { "x-kubernetes-map-type" };
            let value = items.get(TYPE).cloned().unwrap_or_default();
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            out.push(invalid(format!("{path}.items.{name}"), value, detail));
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            out.push(not_supported(format!("{path}.{TYPE}"), list_type, &["atomic", "set", "map"]));
        }
        if !keys.is_empty() && list_type != "map" {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            out.push(invalid(format!("{path}.{TYPE}"), list_type, detail));
        }
        if list_type != "map" {
            return;
        }
        if keys.is_empty() {
            out.push(required(
                format!("{path}.{KEYS}"),
                "must not be empty if x-kubernetes-list-type is map",
            ));
        }
        let Some(items) = props.items().map(Props::new) else {
            if props.get("items").is_none() {
                out.push(required(
                    format!("{path}.items"),
                    "must have a schema if x-kubernetes-list-type is map",
                ));
            }
            return;
        };
        if items.kind() != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            out.push(invalid(format!("{path}.items.type"), items.kind(), detail));
            return;
        }
        let mut seen = BTreeSet::new();
        for key in &keys {
            let all: Vec<Value> = keys.iter().map(|key| Value::from(*key)).collect();
            match items.property(key).map(|schema| Props::new(schema).kind()) {
                Some("array" | "object") => out.push(invalid(
                    format!("{path}.items.properties[{key}].type"),
                    items.kind(),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                )),
                Some(_) => {}
                None => out.push(invalid(
                    format!("{path}.{KEYS}"),
                    all.clone(),
                    "entries must all be names of item properties",
                )),
            }
            if !seen.insert(key) {
                out.push(invalid(format!("{path}.{KEYS}"), all, "must not contain duplicate entries"));
            }
        }
    }
}

fn wrong_type(kind: &str, path: &str, detail: &str) -> FieldError {
    let field = format!("{path}.type");
    if kind.is_empty() { required(field, detail) } else { error(ErrorKind::Invalid, field, kind, detail) }
}

fn map_type(props: Props<'_>, path: &str, out: &mut Vec<FieldError>) {
    let Some(map_type) = props.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
    if props.kind() != "object" {
        out.push(wrong_type(props.kind(), path, "must be object if x-kubernetes-map-type is specified"));
    }
    if !matches!(map_type, "atomic" | "granular") {
        out.push(not_supported(format!("{path}.x-kubernetes-map-type"), map_type, &["atomic", "granular"]));
    }
}

/// Returns whether this is a set whose items could be merged field by field.
pub(super) fn has_granular_set(props: Props<'_>) -> bool {
    let Some(items) = props.items().map(Props::new).filter(|_| props.text("x-kubernetes-list-type") == "set")
    else {
        return false;
    };
    match items.kind() {
        "array" => !matches!(items.text("x-kubernetes-list-type"), "" | "atomic"),
        "object" => items.text("x-kubernetes-map-type") != "atomic",
        _ => false,
    }
}

/// Validates that keys of an associative list are required or defaulted, and that items of sets and
/// associative lists are not nullable.
pub(super) fn map_keys(props: Props<'_>, path: &str) -> Vec<FieldError> {
    let mut out = Vec::new();
    let list_type = props.text("x-kubernetes-list-type");
    let Some(items) = props.items().map(Props::new).filter(|_| matches!(list_type, "set" | "map")) else {
        return out;
    };
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        out.push(forbidden(format!("{path}.items.nullable"), detail));
    }
    if list_type == "map" {
        let needed = items.texts("required");
        for key in props.texts("x-kubernetes-list-map-keys") {
            let Some(schema) = items.property(key).map(Props::new) else { continue };
            let field = format!("{path}.items.properties[{key}]");
            if !needed.contains(&key) && schema.get("default").is_none() {
                out.push(required(
                    format!("{field}.default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                ));
            }
            if schema.flag("nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                out.push(forbidden(format!("{field}.nullable"), detail));
            }
        }
    }
    out
}
