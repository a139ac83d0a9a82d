//! Programs: expressions over several variables, as in admission policies and match conditions.
//!
//! An [`Environment`] declares the variables, a [`Program`] is one expression in it, an [`Activation`] has
//! the values of one request. Variables of a policy are programs too: they are evaluated once, on first use.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use regex::Regex;
use serde_json::Value;

use super::{
    CelError, Decl,
    ast::Expr,
    check,
    decl::DeclKind,
    eval::{Evaluator, fail},
    functions::authz::{AccessCheck, Authorizer, Authz},
    lexer, parser, patterns,
    signatures::{AUTHORIZER, RESOURCE_CHECK},
    types::Type,
    value::{Val, from_json},
};

/// Maximum cost of one evaluation.
pub(super) const CALL_COST_LIMIT: u64 = 1_000_000;
const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// Declaration of arbitrary JSON.
static ANYTHING: LazyLock<Arc<Decl>> =
    LazyLock::new(|| Arc::new(Decl { kind: DeclKind::Dyn, max_elements: u64::MAX, min_size: 1 }));

/// Variables that expressions may use.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    scope: Vec<(String, Type)>,
    variables: Option<BTreeMap<String, Type>>,
    patches: bool,
}

impl Environment {
    /// Adds a variable of dynamic type.
    #[must_use]
    pub fn with_dynamic(mut self, name: &str) -> Self {
        self.scope.push((name.to_owned(), Type::Dyn));
        self
    }

    /// Adds a variable of a declared type.
    #[must_use]
    pub fn with_typed(mut self, name: &str, decl: &Arc<Decl>) -> Self {
        self.scope.push((name.to_owned(), Type::of(decl)));
        self
    }

    /// Adds `authorizer` and `authorizer.requestResource`.
    #[must_use]
    pub fn with_authorizer(mut self) -> Self {
        self.scope.push(("authorizer".to_owned(), Type::Opaque(AUTHORIZER)));
        self.scope.push((REQUEST_RESOURCE.to_owned(), Type::Opaque(RESOURCE_CHECK)));
        self
    }

    /// Allows object construction: `Object{…}` and `JSONPatch{…}`.
    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    /// Adds `variables`, initially empty.
    #[must_use]
    pub fn with_variables(mut self) -> Self {
        self.variables.get_or_insert_default();
        self
    }

    /// Shares the `variables` of another environment.
    #[must_use]
    pub fn with_variables_of(mut self, other: &Self) -> Self {
        self.variables.clone_from(&other.variables);
        self
    }

    /// Adds one of the `variables`; one that does not compile has dynamic type.
    pub fn add_variable<E>(&mut self, name: &str, program: &Result<Program, E>) {
        let found = program.as_ref().map_or(Type::Dyn, |program| program.output.clone());
        self.variables.get_or_insert_default().insert(name.to_owned(), found);
    }

    fn scope(&self) -> Vec<(String, Type)> {
        let mut scope = self.scope.clone();
        if let Some(variables) = &self.variables {
            scope.push(("variables".to_owned(), Type::Fields(Arc::new(variables.clone()))));
        }
        scope
    }
}

/// Compiled expression in an [`Environment`].
///
/// ```
/// use kubewright_cel::{Activation, Environment, Program};
/// use serde_json::json;
///
/// let names = Environment::default().with_dynamic("object");
/// let program = Program::compile("object.spec.replicas <= 5", &names)?;
/// assert_eq!(program.output(), "bool");
/// let object = json!({"spec": {"replicas": 6}});
/// let values = Activation::new(&[]).with_value("object", &object);
/// assert_eq!(program.evaluate(&values, &mut 10_000).unwrap(), json!(false));
/// # Ok::<(), kubewright_cel::CelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    expr: Expr,
    output: Type,
    patterns: BTreeMap<usize, Regex>,
}

/// Error evaluating a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The budget of all expressions together is spent: evaluation must stop.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    OutOfBudget,
    /// This expression failed.
    #[error("{0}")]
    Error(String),
    /// The value cannot be converted to JSON; the text is the name of its type.
    #[error("unsupported return type: {0}")]
    Opaque(&'static str),
}

impl Program {
    /// Parses and checks an expression.
    pub fn compile(text: &str, environment: &Environment) -> Result<Self, CelError> {
        let show = |issues: Vec<lexer::Issue>| CelError::Compile(lexer::format_issues(text, &issues));
        let expr = parser::parse(text).map_err(|issue| show(vec![issue]))?;
        let checked = check::check_in(&expr, environment.scope(), environment.patches).map_err(show)?;
        let patterns = patterns(&expr).map_err(|issue| show(vec![issue]))?;
        Ok(Self { expr, output: checked.output, patterns })
    }

    /// Returns the result type as messages write it.
    pub fn output(&self) -> String {
        if self.output == Type::Null { "null_type".to_owned() } else { self.output.to_string() }
    }

    /// Evaluates; the cost, including variables, is deducted from `budget`.
    pub fn evaluate<'v>(&'v self, activation: &Activation<'v>, budget: &mut u64) -> Result<Value, EvalError> {
        let (found, cost) = self.run(activation);
        let spent = cost.saturating_add(activation.spent.take());
        *budget = budget.checked_sub(spent).ok_or(EvalError::OutOfBudget)?;
        let found = found.map_err(|error| EvalError::Error(error.to_string()))?;
        found.to_json().ok_or(EvalError::Opaque(found.type_name()))
    }

    fn run<'v>(&'v self, activation: &Activation<'v>) -> (Result<Val<'v>, CelError>, u64) {
        let mut left = CALL_COST_LIMIT;
        let found = Evaluator::new(&mut left, &self.patterns).run_in(&self.expr, activation);
        (found, CALL_COST_LIMIT - left)
    }
}

/// Values of the variables of one request.
#[derive(Debug)]
pub struct Activation<'v> {
    values: Vec<(&'static str, Val<'v>)>,
    variables: &'v [(String, Result<Program, String>)],
    evaluated: RefCell<BTreeMap<String, Result<Val<'v>, CelError>>>,
    spent: Cell<u64>,
}

impl<'v> Activation<'v> {
    /// Creates an activation with only the policy's `variables`, ordered so that each refers to earlier ones.
    pub fn new(variables: &'v [(String, Result<Program, String>)]) -> Self {
        Self { values: Vec::new(), variables, evaluated: RefCell::default(), spent: Cell::new(0) }
    }

    /// Adds a value.
    #[must_use]
    pub fn with_value(mut self, name: &'static str, value: &'v Value) -> Self {
        self.values.push((name, from_json(value, &ANYTHING)));
        self
    }

    /// Adds `authorizer`, and `authorizer.requestResource` for the resource of the request.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: &'v dyn Authorizer, request: AccessCheck) -> Self {
        self.values.push(("authorizer", Val::Authz(Arc::new(Authz::root(authorizer)))));
        self.values.push((REQUEST_RESOURCE, Val::Authz(Arc::new(Authz::request(authorizer, request)))));
        self
    }

    pub(super) fn find(&self, name: &str) -> Option<Val<'v>> {
        if name == "variables" && !self.variables.is_empty() {
            return Some(Val::Variables);
        }
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    pub(super) fn find_dotted(&self, root: &str, field: &str) -> Option<Val<'v>> {
        let is =
            |known: &str| known.strip_prefix(root).and_then(|rest| rest.strip_prefix('.')) == Some(field);
        self.values.iter().find(|(known, _)| is(known)).map(|(_, value)| value.clone())
    }

    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    /// Evaluates a variable of the policy once. It can refer only to earlier ones, so this terminates.
    pub(super) fn variable(&self, name: &str) -> Result<Val<'v>, CelError> {
        if let Some(known) = self.evaluated.borrow().get(name) {
            return known.clone();
        }
        // The later of two variables with one name wins, and could refer to itself.
        let endless = fail(format!("composited variable {name:?} refers to itself"));
        self.evaluated.borrow_mut().insert(name.to_owned(), endless);
        let found = match self.variables.iter().rev().find(|(known, _)| known == name) {
            None => fail(format!("no such key: {name}")),
            Some((_, Err(why))) => fail(format!("composited variable {name:?} fails to compile: {why}")),
            Some((_, Ok(program))) => {
                let (found, cost) = program.run(self);
                self.spent.set(self.spent.get().saturating_add(cost));
                found.map_err(|error| {
                    CelError::Evaluate(format!("composited variable {name:?} fails to evaluate: {error}"))
                })
            }
        };
        self.evaluated.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }
}
