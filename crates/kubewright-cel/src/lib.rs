#![doc = include_str!("../README.md")]
//!
//! Common Expression Language, as used by CRDs in `x-kubernetes-validations` and by admission policies.
//!
//! An expression is parsed, checked against declared types and its cost is estimated (all by
//! [`Expression::compile`]), then it is evaluated over JSON. The types come from a schema ([`Decl`]), so
//! `self.b` on an object without `b` is rejected when the CRD is written and not when an object is.
//!
//! - One rule or message: [`Expression`].
//! - All rules of a schema, with ratcheting, old values and budgets: [`rules::Rules`].
//! - Expressions over several variables, as admission policies have them: [`Program`].
//! - Field names that are not identifiers: [`escape`].
//!
//! Pitfalls: only `__` is escaped, not `_`, so `self.my_field` needs no escaping. An `int` and a `double`
//! compare with `<` but not with `==`. A field without a type in its schema
//! (`x-kubernetes-preserve-unknown-fields` alone) cannot be accessed.

mod ast;
mod check;
mod cost;
mod decl;
mod escape;
mod eval;
mod functions;
mod lexer;
mod parser;
mod program;
pub mod rules;
mod shapes;
mod signatures;
mod types;
mod value;

use std::{collections::BTreeMap, sync::Arc};

use regex::Regex;
use serde_json::Value;

pub use decl::Decl;
pub use escape::escape;
pub use functions::authz::{AccessCheck, AccessDecision, Authorizer};
pub use program::{Activation, Environment, EvalError, Program};

use ast::Expr;
use eval::Evaluator;
use types::Type;
use value::Val;

/// Result type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// The type of a rule.
    Bool,
    /// The type of a message.
    String,
    /// Any other type.
    Other,
}

/// Error compiling or evaluating an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CelError {
    /// Syntax or type errors, each with its position on a line below.
    #[error("{0}")]
    Compile(String),
    /// Evaluation failed.
    #[error("{0}")]
    Evaluate(String),
    /// The cost limit was exceeded.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
}

/// A compiled expression over `self` and `oldSelf`.
///
/// ```
/// use kubewright_cel::{Decl, Expression, Output};
/// use serde_json::json;
///
/// let spec = Decl::from_schema(&json!({"type": "object", "properties": {"min": {"type": "integer"}}}), false).unwrap();
/// let rule = Expression::compile("self.min > 1", &spec, false)?;
/// assert_eq!(rule.output(), Output::Bool);
/// assert!(rule.evaluate_bool(&json!({"min": 2}), None, &mut 1000).unwrap());
///
/// let error = Expression::compile("self.max > 1", &spec, false).unwrap_err();
/// assert_eq!(error.to_string(), "ERROR: <input>:1:5: undefined field 'max'\n | self.max > 1\n | ....^");
/// # Ok::<(), kubewright_cel::CelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expression {
    expr: Expr,
    decl: Arc<Decl>,
    optional_old: bool,
    output: Output,
    uses_old: bool,
    cost: u64,
    /// Compiled literal patterns, by node.
    patterns: BTreeMap<usize, Regex>,
}

impl Expression {
    /// Parses and checks an expression and estimates its cost; with `optional_old` the old value is an
    /// optional.
    pub fn compile(text: &str, decl: &Arc<Decl>, optional_old: bool) -> Result<Self, CelError> {
        let show = |issues: Vec<lexer::Issue>| CelError::Compile(lexer::format_issues(text, &issues));
        let expr = parser::parse(text).map_err(|issue| show(vec![issue]))?;
        let checked = check::check(&expr, decl, optional_old).map_err(show)?;
        let output = match &checked.output {
            Type::Bool => Output::Bool,
            Type::String => Output::String,
            _ => Output::Other,
        };
        let cost = cost::estimate(&expr, &checked, decl);
        let patterns = patterns(&expr).map_err(|issue| show(vec![issue]))?;
        Ok(Self {
            patterns,
            expr,
            decl: decl.clone(),
            optional_old,
            output,
            uses_old: checked.uses_old,
            cost,
        })
    }

    /// Returns the result type.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Returns whether it is a transition rule, which uses the old value.
    pub fn uses_old_self(&self) -> bool {
        self.uses_old
    }

    /// Returns the maximum cost of one evaluation for the sizes that the schema allows.
    pub fn estimated_cost(&self) -> u64 {
        self.cost
    }

    /// Evaluates a rule; the cost is deducted from `budget`.
    pub fn evaluate_bool(
        &self,
        value: &Value,
        old: Option<&Value>,
        budget: &mut u64,
    ) -> Result<bool, CelError> {
        match self.evaluate(value, old, budget)? {
            Val::Bool(answer) => Ok(answer),
            other => Err(CelError::Evaluate(format!("expected bool, got {}", other.type_name()))),
        }
    }

    /// Evaluates a message; the cost is deducted from `budget`.
    pub fn evaluate_string(
        &self,
        value: &Value,
        old: Option<&Value>,
        budget: &mut u64,
    ) -> Result<String, CelError> {
        match self.evaluate(value, old, budget)? {
            Val::String(text) => Ok(text.to_string()),
            other => Err(CelError::Evaluate(format!("expected string, got {}", other.type_name()))),
        }
    }

    fn evaluate<'v>(
        &'v self,
        value: &'v Value,
        old: Option<&'v Value>,
        budget: &mut u64,
    ) -> Result<Val<'v>, CelError> {
        let this = value::from_json(value, &self.decl);
        let old = old.map(|old| value::from_json(old, &self.decl));
        let old = if self.optional_old { Some(Val::Optional(old.map(Box::new))) } else { old };
        Evaluator::new(budget, &self.patterns).run(&self.expr, this, old)
    }
}

/// Returns whether a word is reserved.
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || escape::RESERVED.contains(&word)
}

/// Compiles the literal patterns; an invalid one is reported with its position.
fn patterns(expr: &Expr) -> Result<BTreeMap<usize, Regex>, lexer::Issue> {
    let mut out = BTreeMap::new();
    let mut rest = vec![expr];
    while let Some(expr) = rest.pop() {
        rest.extend(expr.kind.children());
        if let ast::Kind::Call { function, target, args } = &expr.kind
            && let Some(pattern) = functions::pattern_of(function, args, target.is_some())
            && let ast::Kind::Literal(ast::Literal::String(text)) = &pattern.kind
        {
            let compiled = Regex::new(text).map_err(|_| {
                lexer::Issue::new(
                    pattern.at,
                    format!("invalid matches argument: error parsing regexp: `{text}`"),
                )
            })?;
            out.insert(pattern.id, compiled);
        }
    }
    Ok(out)
}
