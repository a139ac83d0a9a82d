//! Evaluator with a cost budget.

use std::{collections::BTreeMap, sync::Arc};

use regex::Regex;

use super::{
    CelError,
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    check::{dotted, namespaced},
    functions,
    program::Activation,
    value::Val,
};

pub(super) struct Evaluator<'b, 'v> {
    budget: &'b mut u64,
    /// Values of names that no macro has bound.
    activation: Option<&'b Activation<'v>>,
    patterns: &'v BTreeMap<usize, Regex>,
    scope: Vec<(String, Val<'v>)>,
}

/// Result of evaluating an expression.
pub(super) type EvalResult<'v> = Result<Val<'v>, CelError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, CelError> {
    Err(CelError::Evaluate(message.into()))
}

impl<'b, 'v> Evaluator<'b, 'v> {
    pub(super) fn new(budget: &'b mut u64, patterns: &'v BTreeMap<usize, Regex>) -> Self {
        Self { budget, activation: None, patterns, scope: Vec::new() }
    }

    /// Evaluates with the values of an activation.
    pub(super) fn run_in(mut self, expr: &'v Expr, activation: &'b Activation<'v>) -> EvalResult<'v> {
        self.activation = Some(activation);
        self.expr(expr)
    }

    pub(super) fn run(mut self, expr: &'v Expr, this: Val<'v>, old: Option<Val<'v>>) -> EvalResult<'v> {
        self.scope.push(("self".to_owned(), this));
        self.scope.extend(old.map(|old| ("oldSelf".to_owned(), old)));
        self.expr(expr)
    }

    fn charge(&mut self, cost: usize) -> Result<(), CelError> {
        let left = self.budget.checked_sub(cost as u64);
        *self.budget = left.unwrap_or_default();
        left.map(drop).ok_or(CelError::CostLimit)
    }

    fn find(&self, name: &str) -> Option<Val<'v>> {
        let bound = self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        bound.or_else(|| self.activation?.find(name))
    }

    fn is_bound(&self, name: &str) -> bool {
        self.scope.iter().any(|(known, _)| known == name)
            || self.activation.is_some_and(|activation| activation.find(name).is_some())
    }

    /// Returns a value whose name contains a dot.
    fn dotted_name(&self, operand: &Expr, field: &str) -> Option<Val<'v>> {
        match &operand.kind {
            Kind::Ident(root) => self.activation?.find_dotted(root, field),
            _ => None,
        }
    }

    fn expr(&mut self, expr: &'v Expr) -> EvalResult<'v> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(of_literal(literal)),
            Kind::Ident(name) => {
                self.charge(1)?;
                match self.find(name) {
                    Some(value) => Ok(value),
                    None => functions::type_named(name).map_or_else(
                        || fail(format!("no such attribute(s): {name}")),
                        |name| Ok(Val::Type(name)),
                    ),
                }
            }
            Kind::Select { operand, field, test, optional } => {
                if let Some(value) = self.dotted_name(operand, field) {
                    self.charge(1)?;
                    return Ok(value);
                }
                let operand = self.expr(operand)?;
                self.charge(1)?;
                if let (Val::Variables, Some(activation)) = (&operand, self.activation) {
                    if *test {
                        return Ok(Val::Bool(activation.has_variable(field)));
                    }
                    let found = activation.variable(field)?;
                    return Ok(if *optional { Val::some(found) } else { found });
                }
                select(&operand, field, *test, *optional)
            }
            Kind::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let mut out = Vec::with_capacity(items.len());
                self.charge(10)?;
                for (item, optional) in items {
                    match (self.expr(item)?, optional) {
                        (Val::Optional(value), true) => out.extend(value.map(|value| *value)),
                        (value, _) => out.push(value),
                    }
                }
                Ok(Val::list(out))
            }
            Kind::Map(entries) => {
                let mut out = Vec::with_capacity(entries.len());
                self.charge(30)?;
                for (key, value, optional) in entries {
                    let key = self.expr(key)?;
                    match (self.expr(value)?, optional) {
                        (Val::Optional(value), true) => out.extend(value.map(|value| (key, *value))),
                        (value, _) => out.push((key, value)),
                    }
                }
                Ok(Val::Map(Arc::new(out)))
            }
            Kind::Message { fields, .. } => {
                let mut out = Vec::with_capacity(fields.len());
                self.charge(40)?;
                for (field, value, optional) in fields {
                    let field = Val::text(field.as_str());
                    match (self.expr(value)?, optional) {
                        (Val::Optional(value), true) => out.extend(value.map(|value| (field, *value))),
                        (value, _) => out.push((field, value)),
                    }
                }
                Ok(Val::Map(Arc::new(out)))
            }
            Kind::Comprehension(fold) => self.fold(fold),
            Kind::OptionalMap { target, name, body, flat } => match self.expr(target)? {
                Val::Optional(None) => Ok(Val::Optional(None)),
                Val::Optional(Some(value)) => {
                    self.scope.push((name.clone(), *value));
                    let result = self.expr(body);
                    self.scope.pop();
                    let result = result?;
                    Ok(if *flat { result } else { Val::some(result) })
                }
                other => fail(format!("no such overload: {}.optMap", other.type_name())),
            },
        }
    }

    fn call(&mut self, function: &'v str, target: Option<&'v Expr>, args: &'v [Expr]) -> EvalResult<'v> {
        match (function, args) {
            ("_&&_" | "_||_", [left, right]) => return self.either(left, right, function == "_||_"),
            ("_?_:_", [condition, yes, no]) => {
                return match self.expr(condition)? {
                    Val::Bool(true) => self.expr(yes),
                    Val::Bool(false) => self.expr(no),
                    _ => fail("no such overload"),
                };
            }
            _ => {}
        }
        let scoped = |target: &Expr| {
            let root = dotted(target).and_then(|name| name.split('.').next().map(str::to_owned));
            root.is_some_and(|root| self.is_bound(&root))
        };
        let name = target.filter(|target| !scoped(target)).and_then(|target| namespaced(target, function));
        let mut values = Vec::with_capacity(args.len() + 1);
        if let (Some(target), None) = (target, &name) {
            values.push(self.expr(target)?);
        }
        for arg in args {
            values.push(self.expr(arg)?);
        }
        let cost = functions::cost(function, &values);
        self.charge(cost)?;
        let pattern = functions::pattern_of(function, args, target.is_some());
        let pattern = pattern.and_then(|pattern| self.patterns.get(&pattern.id));
        functions::call(name.as_deref().unwrap_or(function), &values, pattern)
    }

    /// Evaluates `&&` and `||`: a decisive operand wins over an error of the other.
    fn either(&mut self, left: &'v Expr, right: &'v Expr, decisive: bool) -> EvalResult<'v> {
        let left = self.expr(left);
        match left {
            Ok(Val::Bool(answer)) if answer == decisive => return Ok(Val::Bool(answer)),
            Err(CelError::CostLimit) => return left,
            _ => {}
        }
        match (left, self.expr(right)) {
            (_, Ok(Val::Bool(answer))) if answer == decisive => Ok(Val::Bool(answer)),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decisive)),
            _ => fail("no such overload"),
        }
    }

    fn fold(&mut self, fold: &'v Comprehension) -> EvalResult<'v> {
        let range = self.expr(&fold.range)?;
        let pairs: Vec<(Val<'v>, Val<'v>)> = if let Some(items) = range.items() {
            let items = items.into_owned();
            (0_i64..).zip(items).map(|(i, item)| (Val::Int(i), item)).collect()
        } else if let Some(entries) = range.entries() {
            let two = fold.second.is_some();
            entries
                .into_iter()
                .map(|(key, value)| if two { (key, value) } else { (Val::Null, key) })
                .collect()
        } else {
            return fail("no such overload");
        };
        let depth = self.scope.len();
        let result = self.steps(fold, pairs, depth);
        self.scope.truncate(depth);
        result
    }

    fn steps(
        &mut self,
        fold: &'v Comprehension,
        pairs: Vec<(Val<'v>, Val<'v>)>,
        depth: usize,
    ) -> EvalResult<'v> {
        let (mut found, mut error) = (0_usize, None);
        let (mut list, mut map) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            self.charge(2)?;
            self.scope.truncate(depth);
            match &fold.second {
                Some(second) => {
                    self.scope.push((fold.first.clone(), key.clone()));
                    self.scope.push((second.clone(), value.clone()));
                }
                None => self.scope.push((fold.first.clone(), value.clone())),
            }
            if let Some(filter) = &fold.filter
                && !self.condition(filter)?
            {
                continue;
            }
            match fold.kind {
                Macro::All | Macro::Exists => match self.condition(&fold.body) {
                    Ok(answer) if answer == (fold.kind == Macro::Exists) => return Ok(Val::Bool(answer)),
                    Ok(_) => {}
                    Err(CelError::CostLimit) => return Err(CelError::CostLimit),
                    Err(why) => error = error.or(Some(why)),
                },
                Macro::ExistsOne => found += usize::from(self.condition(&fold.body)?),
                Macro::Filter => {
                    if self.condition(&fold.body)? {
                        list.push(value);
                    }
                }
                Macro::Map | Macro::TransformList => list.push(self.expr(&fold.body)?),
                Macro::TransformMap => map.push((key, self.expr(&fold.body)?)),
                Macro::TransformMapEntry => {
                    let entry = self.expr(&fold.body)?;
                    map.extend(entry.entries().unwrap_or_default());
                }
            }
        }
        match (fold.kind, error) {
            (Macro::All | Macro::Exists, Some(error)) => Err(error),
            (Macro::All, None) => Ok(Val::Bool(true)),
            (Macro::Exists, None) => Ok(Val::Bool(false)),
            (Macro::ExistsOne, _) => Ok(Val::Bool(found == 1)),
            (Macro::Map | Macro::Filter | Macro::TransformList, _) => Ok(Val::list(list)),
            (Macro::TransformMap | Macro::TransformMapEntry, _) => Ok(Val::Map(Arc::new(map))),
        }
    }

    fn condition(&mut self, expr: &'v Expr) -> Result<bool, CelError> {
        match self.expr(expr)? {
            Val::Bool(answer) => Ok(answer),
            _ => fail("no such overload"),
        }
    }
}

fn select<'v>(operand: &Val<'v>, field: &str, test: bool, optional: bool) -> EvalResult<'v> {
    match operand {
        Val::Optional(None) => Ok(if test { Val::Bool(false) } else { Val::Optional(None) }),
        Val::Optional(Some(inner)) => {
            let found = inner.field(field);
            Ok(if test { Val::Bool(found.is_some()) } else { Val::Optional(found.map(Box::new)) })
        }
        operand => match operand.field(field) {
            found if test => Ok(Val::Bool(found.is_some())),
            found if optional => Ok(Val::Optional(found.map(Box::new))),
            Some(found) => Ok(found),
            None if matches!(operand, Val::JsonObject(..) | Val::JsonMap(..) | Val::Map(_)) => {
                fail(format!("no such key: {field}"))
            }
            None => fail("no such overload"),
        },
    }
}

fn of_literal(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(flag) => Val::Bool(*flag),
        Literal::Int(n) => Val::Int(*n),
        Literal::Uint(n) => Val::Uint(*n),
        Literal::Double(f) => Val::Double(*f),
        Literal::String(text) => Val::String(text.into()),
        Literal::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
    }
}
