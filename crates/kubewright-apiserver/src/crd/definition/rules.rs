//! Validation of `x-kubernetes-validations` in a CRD: texts, types and cost.

use std::sync::Arc;

use serde_json::Value;

use super::{fields::valid_path, forbidden, invalid, not_supported, openapi::NodeContext, required};
use crate::{
    cel::{Decl, Expression, Output},
    crd::props::Props,
    schema::{field::FieldError, go},
};

/// Cost limit of one rule over a whole object.
const RULE_LIMIT: u64 = 10_000_000;
/// Cost limit of all rules of a schema.
const SCHEMA_LIMIT: u64 = 100_000_000;
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// CEL context of a schema node: its type, and how often it can occur in an object.
#[derive(Debug, Clone)]
pub(super) struct Scope<'s> {
    schema: &'s Value,
    is_resource: bool,
    /// `None` if unbounded.
    cardinality: Option<u64>,
}

impl<'s> Scope<'s> {
    pub(super) fn root(schema: &'s Value) -> Self {
        Self { schema, is_resource: true, cardinality: Some(1) }
    }

    /// Returns the context of a property, the items or the values of this node.
    pub(super) fn below(&self, schema: &'s Value) -> Self {
        let props = Props::new(self.schema);
        let bound = |name: &str| props.number(name).map(|n| u64::try_from(n).unwrap_or_default());
        let elements = match props.kind() {
            "object" if props.get("additionalProperties").is_some() => bound("maxProperties"),
            "array" => bound("maxItems"),
            _ => Some(1),
        };
        let cardinality =
            self.cardinality.zip(elements).map(|(count, elements)| count.saturating_mul(elements));
        Self { schema, is_resource: Props::new(schema).flag("x-kubernetes-embedded-resource"), cardinality }
    }
}

/// Cost of all rules of a schema.
#[derive(Debug, Default)]
pub(super) struct TotalCost {
    total: u64,
    expensive: Vec<(u64, String)>,
}

impl TotalCost {
    fn add(&mut self, field: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((cost, field));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }

    pub(super) fn errors(&self, path: &str) -> Vec<FieldError> {
        if self.total <= SCHEMA_LIMIT {
            return Vec::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut out: Vec<_> =
            self.expensive.iter().map(|(_, field)| forbidden(field.as_str(), detail)).collect();
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        out.push(forbidden(path, too_costly(name, self.total, SCHEMA_LIMIT)));
        out
    }
}

#[expect(clippy::cast_precision_loss, reason = "only displayed")]
fn too_costly(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Validates the rules of a node as far as possible without compiling them.
pub(super) fn texts(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    for (i, written) in Props::new(schema).list("x-kubernetes-validations").iter().enumerate() {
        let rule = Props::new(written);
        let at = |name: &str| format!("{path}.x-kubernetes-validations[{i}].{name}");
        let (text, message) = (rule.text("rule").trim(), rule.text("message"));
        if text.is_empty() {
            out.push(required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            out.push(invalid(at("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            out.push(invalid(at("message"), message, "must not contain line breaks"));
        } else if breaks(text) && message.trim().is_empty() {
            out.push(required(at("message"), "message must be specified if rule contains line breaks"));
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            out.push(required(at("messageExpression"), "messageExpression must be non-empty if specified"));
        }
        if let Some(reason) =
            rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
        {
            out.push(not_supported(at("reason"), reason, &REASONS));
        }
        let field = rule.text("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            out.push(invalid(at("fieldPath"), field, "must be non-empty if specified"));
        }
        if breaks(field) {
            out.push(invalid(at("fieldPath"), field, "must not contain line breaks"));
        }
        if !field.is_empty() && valid_path(field, schema, true).is_err() {
            out.push(invalid(at("fieldPath"), field, "must be a valid path"));
        }
    }
}

/// Compiles the rules of a node and adds up their cost.
pub(super) fn compile(
    schema: &Value,
    path: &str,
    scope: &Scope<'_>,
    context: &NodeContext,
    limit_cost: bool,
    total: &mut TotalCost,
) -> Vec<FieldError> {
    let mut out = Vec::new();
    let written = Props::new(schema).list("x-kubernetes-validations");
    if written.is_empty() {
        return out;
    }
    let Some(decl) = Decl::from_schema(schema, scope.is_resource) else {
        let detail = "failed to retrieve type information for x-kubernetes-validations";
        return vec![invalid(format!("{path}.x-kubernetes-validations"), Value::Null, detail)];
    };
    let times = scope.cardinality.unwrap_or_else(|| decl.max_cardinality());
    for (i, written) in written.iter().enumerate() {
        let rule = Props::new(written);
        let at = |name: &str| format!("{path}.x-kubernetes-validations[{i}].{name}");
        let refuse = |name: &str, detail: String| {
            invalid(at(name), Value::Null, detail).with_displayed_value(go_rule(rule))
        };
        let optional_old = rule.flag("optionalOldSelf");
        let program = match Expression::compile(rule.text("rule"), &decl, optional_old) {
            Err(error) => {
                out.push(refuse("rule", format!("compilation failed: {error}")));
                continue;
            }
            Ok(program) if program.output() != Output::Bool => {
                out.push(refuse("rule", "cel expression must evaluate to a bool".to_owned()));
                continue;
            }
            Ok(program) => program,
        };
        let mut spend = |name: &str, what: &str, cost: u64, out: &mut Vec<FieldError>| {
            if limit_cost && cost > RULE_LIMIT {
                out.push(forbidden(at(name), too_costly(what, cost, RULE_LIMIT)));
            }
            total.add(at(name), cost);
        };
        spend("rule", "estimated rule cost", program.estimated_cost().saturating_mul(times), &mut out);
        match message(rule, &decl, optional_old) {
            None => {}
            Some(Err(detail)) => out.push(refuse("messageExpression", detail)),
            Some(Ok(cost)) => spend("messageExpression", "estimated messageExpression cost", cost, &mut out),
        }
        if !program.uses_old_self() {
            if let Some(flag) = rule.get("optionalOldSelf") {
                let detail = "may not be set if oldSelf is not used in rule";
                out.push(invalid(at("optionalOldSelf"), flag.clone(), detail));
            }
        } else if let Some(place) = &context.uncorrelatable {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {place}");
            out.push(invalid(at("rule"), rule.text("rule"), detail));
        }
    }
    out
}

fn message(rule: Props<'_>, decl: &Arc<Decl>, optional_old: bool) -> Option<Result<u64, String>> {
    let text = Some(rule.text("messageExpression")).filter(|text| !text.is_empty())?;
    Some(match Expression::compile(text, decl, optional_old) {
        Err(error) => Err(format!("messageExpression compilation failed: {error}")),
        Ok(program) if program.output() != Output::String => {
            Err("messageExpression must evaluate to a string".to_owned())
        }
        Ok(program) => Ok(program.estimated_cost()),
    })
}

/// Formats a rule like kube-apiserver in errors: a Go struct in JSON.
fn go_rule(rule: Props<'_>) -> String {
    let text = |name: &str| go::json(&rule.text(name).into());
    let json = |name: &str| rule.get(name).map_or("null".to_owned(), go::json);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        json("reason"),
        text("fieldPath"),
        json("optionalOldSelf"),
    )
}
