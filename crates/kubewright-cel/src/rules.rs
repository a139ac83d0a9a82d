//! Validation of an object with all rules of its schema.
//!
//! A rule that uses `oldSelf` runs only if there is a correlated old value: fields and map values by name,
//! items of associative lists by key, items of other lists never. `optionalOldSelf` runs it regardless.
//! Errors of unchanged values become warnings (ratcheting), except for transition rules.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{CelError, Decl, Expression, Output, program::CALL_COST_LIMIT};
use kubewright_schema::field_path::valid_path;
use kubewright_schema::{
    field::{ErrorKind, FieldError},
    props::Props,
};

/// Maximum cost of all rules on one object.
const OBJECT_COST_LIMIT: u64 = 10_000_000;
const MAX_MESSAGE: usize = 5 * 1024;

/// Remaining cost budget of an object.
#[derive(Debug, Clone)]
pub struct Budget(Option<u64>);

impl Budget {
    /// Returns the full budget of one write.
    pub fn per_object() -> Self {
        Self(Some(OBJECT_COST_LIMIT))
    }

    fn is_spent(&self) -> bool {
        self.0.is_none()
    }
}

/// Result of validation.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Errors, in the order of the schema's fields.
    pub errors: Vec<FieldError>,
    /// Errors suppressed by ratcheting, as warnings.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: String,
    message: String,
    program: Result<Expression, String>,
    message_program: Option<Expression>,
    reason: ErrorKind,
    field: Option<String>,
    optional_old: bool,
}

/// Compiled rules of a schema.
#[derive(Debug, Clone)]
pub struct Rules {
    kind: String,
    own: Vec<Rule>,
    items: Option<Box<Self>>,
    keys: Vec<String>,
    is_keyed: bool,
    values: Option<Box<Self>>,
    properties: BTreeMap<String, Self>,
}

/// Whether a value is correlated with its old value, and if not, whether its nearest correlated ancestor is
/// unchanged.
#[derive(Debug, Clone, Copy)]
enum Ratchet<'v> {
    Off,
    Matched { new: &'v Value, old: Option<&'v Value> },
    Unmatched { above: bool },
}

impl<'v> Ratchet<'v> {
    fn suppresses_errors(self) -> bool {
        match self {
            Self::Off => false,
            Self::Matched { new, old } => old == Some(new),
            Self::Unmatched { above } => above,
        }
    }

    fn below(self, new: &'v Value, old: Option<&'v Value>, can_match: bool) -> Self {
        match self {
            Self::Matched { old: Some(_), .. } if can_match && old.is_some() => Self::Matched { new, old },
            Self::Matched { .. } => Self::Unmatched { above: self.suppresses_errors() },
            other => other,
        }
    }
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none.
    pub fn compile(schema: &Value, is_resource: bool) -> Option<Self> {
        let props = Props::new(schema);
        let written = props.list("x-kubernetes-validations");
        let decl = if written.is_empty() { None } else { Decl::from_schema(schema, is_resource) };
        let rules: Vec<Rule> = written
            .iter()
            .filter(|rule| !Props::new(rule).text("rule").trim().is_empty())
            .map(|rule| Rule::compile(Props::new(rule), schema, decl.as_ref()))
            .collect();
        let embedded = |schema: &Value| Props::new(schema).flag("x-kubernetes-embedded-resource");
        let child = |schema: &Value| Self::compile(schema, embedded(schema)).map(Box::new);
        let (items, values) = (props.items().and_then(child), props.values().and_then(child));
        let properties: BTreeMap<_, _> = props
            .properties()
            .filter_map(|(name, schema)| Some((name.to_owned(), Self::compile(schema, embedded(schema))?)))
            .collect();
        let empty = rules.is_empty() && items.is_none() && values.is_none() && properties.is_empty();
        let is_keyed = props.text("x-kubernetes-list-type") == "map";
        let keys = props.texts("x-kubernetes-list-map-keys").into_iter().map(str::to_owned).collect();
        (!empty).then(|| Self {
            kind: props.kind().to_owned(),
            own: rules,
            items,
            keys,
            is_keyed,
            values,
            properties,
        })
    }

    /// Runs all rules below `path` (empty for a whole object).
    pub fn validate(
        &self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        ratcheting: bool,
        budget: &mut Budget,
    ) -> Findings {
        let mut found = Findings::default();
        let ratchet = match old {
            Some(_) if ratcheting => Ratchet::Matched { new: value, old },
            _ => Ratchet::Off,
        };
        self.visit(path, value, old, ratchet, budget, &mut found);
        found
    }

    fn visit(
        &self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        budget: &mut Budget,
        found: &mut Findings,
    ) {
        let old = old.filter(|old| !old.is_null());
        if value.is_null() || budget.is_spent() {
            return;
        }
        for rule in &self.own {
            rule.run(&self.kind, path, value, old, ratchet, budget, found);
            if budget.is_spent() {
                return;
            }
        }
        match value {
            Value::Array(items) => {
                let Some(rules) = &self.items else { return };
                for (i, item) in items.iter().enumerate() {
                    let before = self.old_item(item, old);
                    let below = ratchet.below(item, before, self.is_keyed);
                    rules.visit(&format!("{path}[{i}]"), item, before, below, budget, found);
                }
            }
            Value::Object(map) => self.visit_map(path, map, old, ratchet, budget, found),
            _ => {}
        }
    }

    fn visit_map(
        &self,
        path: &str,
        map: &Map<String, Value>,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        budget: &mut Budget,
        found: &mut Findings,
    ) {
        for (key, value) in map {
            let before = old.and_then(|old| old.get(key));
            let is_type = path.is_empty() && matches!(&**key, "apiVersion" | "kind");
            let below = if is_type { Ratchet::Off } else { ratchet.below(value, before, true) };
            if let Some(rules) = &self.values {
                rules.visit(&format!("{path}[{key}]"), value, before, below, budget, found);
            }
            if let Some(rules) = self.properties.get(key) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                rules.visit(&path, value, before, below, budget, found);
            }
        }
    }

    fn old_item<'o>(&self, item: &Value, old: Option<&'o Value>) -> Option<&'o Value> {
        let same = |before: &&Value| self.keys.iter().all(|key| before.get(key) == item.get(key));
        old?.as_array()?.iter().find(same).filter(|_| self.is_keyed && !self.keys.is_empty())
    }
}

impl Rule {
    fn compile(rule: Props<'_>, schema: &Value, decl: Option<&Arc<Decl>>) -> Self {
        let text = rule.text("rule");
        let optional_old = rule.flag("optionalOldSelf");
        let program = match decl {
            None => Err("failed to convert to declType for CEL validation rules".to_owned()),
            Some(decl) => match Expression::compile(text, decl, optional_old) {
                Ok(program) if program.output() == Output::Bool => Ok(program),
                Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
                Err(error) => Err(format!("compilation failed: {error}")),
            },
        };
        let message_program = decl
            .filter(|_| !rule.text("messageExpression").is_empty())
            .and_then(|decl| Expression::compile(rule.text("messageExpression"), decl, optional_old).ok())
            .filter(|program| program.output() == Output::String);
        let field = rule.get("fieldPath").and_then(Value::as_str);
        Self {
            text: text.trim().to_owned(),
            message: rule.text("message").trim().to_owned(),
            program,
            message_program,
            reason: match rule.text("reason") {
                "FieldValueForbidden" => ErrorKind::Forbidden,
                "FieldValueRequired" => ErrorKind::Required,
                "FieldValueDuplicate" => ErrorKind::Duplicate,
                _ => ErrorKind::Invalid,
            },
            field: field.and_then(|field| Some(valid_path(field, schema, true).ok()?.text)),
            optional_old,
        }
    }

    /// Returns the message, or the rule itself.
    fn shown(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    #[expect(clippy::too_many_arguments, reason = "the context of a rule")]
    fn run(
        &self,
        kind: &str,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        budget: &mut Budget,
        found: &mut Findings,
    ) {
        let mut refuse =
            |detail: String| found.errors.push(FieldError::new(ErrorKind::Invalid, path, kind, detail));
        let program = match &self.program {
            Ok(program) => program,
            Err(error) => return refuse(format!("rule compile error: {error}")),
        };
        if program.uses_old_self() && old.is_none() && !self.optional_old {
            return;
        }
        let shown = self.shown();
        let outcome = within_budget(budget, |call| program.evaluate_bool(value, old, call));
        match outcome {
            Some(Ok(true)) => return,
            Some(Ok(false)) => {}
            None => {
                return refuse(
                    "validation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
                );
            }
            Some(Err(error @ CelError::CostLimit)) => {
                budget.0 = None;
                return refuse(format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                ));
            }
            Some(Err(error)) if error.to_string().starts_with("no such overload") => {
                return refuse(format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: \
                     {shown}"
                ));
            }
            Some(Err(error)) => return refuse(format!("{error} evaluating rule: {shown}")),
        }
        let field = match &self.field {
            Some(field) if path.is_empty() => field.clone(),
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        };
        let detail = self.message_of(value, old, budget).unwrap_or_else(|| {
            if self.message.is_empty() { format!("failed rule: {shown}") } else { shown.to_owned() }
        });
        let detail = if self.reason == ErrorKind::Duplicate { String::new() } else { detail };
        let error = FieldError::new(self.reason, field, value.clone(), detail);
        let error = if matches!(kind, "object" | "array") { error.without_value() } else { error };
        if !program.uses_old_self() && ratchet.suppresses_errors() {
            found.warnings.push(error.to_string());
        } else {
            found.errors.push(error);
        }
    }

    fn message_of(&self, value: &Value, old: Option<&Value>, budget: &mut Budget) -> Option<String> {
        let program = self.message_program.as_ref()?;
        let text = within_budget(budget, |call| program.evaluate_string(value, old, call))?.ok()?;
        let text = text.trim();
        let good = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        good.then(|| text.to_owned())
    }
}

/// Runs `run` within the budgets of a call and of the object; `None` if the latter is spent.
fn within_budget<T>(budget: &mut Budget, run: impl FnOnce(&mut u64) -> T) -> Option<T> {
    let mut call = CALL_COST_LIMIT;
    let outcome = run(&mut call);
    budget.0 = budget.0.and_then(|left| left.checked_sub(CALL_COST_LIMIT - call));
    budget.0.map(|_| outcome)
}
