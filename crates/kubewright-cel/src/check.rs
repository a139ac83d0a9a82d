//! Type checker: resolves fields, functions and operand types.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    decl::{Decl, DeclKind},
    lexer::Issue,
    signatures,
    types::{Bindings, Type},
};

/// Result of type checking.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) output: Type,
    pub(super) types: BTreeMap<usize, Type>,
    pub(super) uses_old: bool,
}

pub(super) fn check(expr: &Expr, decl: &Arc<Decl>, optional_old: bool) -> Result<Checked, Vec<Issue>> {
    let this = Type::of(decl);
    let old = if optional_old { this.clone().optional() } else { this.clone() };
    check_in(expr, vec![("self".to_owned(), this), ("oldSelf".to_owned(), old)], false)
}

/// Checks with the given variables; `patches` allows object construction (`Object{…}`, `JSONPatch{…}`).
pub(super) fn check_in(
    expr: &Expr,
    scope: Vec<(String, Type)>,
    patches: bool,
) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker { scope, types: BTreeMap::new(), issues: Vec::new(), uses_old: false, patches };
    let output = checker.expr(expr);
    if checker.issues.is_empty() {
        Ok(Checked { output, types: checker.types, uses_old: checker.uses_old })
    } else {
        checker.issues.sort_by_key(|issue| issue.at);
        Err(checker.issues)
    }
}

/// Returns the dotted name of a chain of identifiers.
pub(super) fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.clone()),
        Kind::Select { operand, field, test: false, optional: false } => {
            Some(format!("{}.{field}", dotted(operand)?))
        }
        _ => None,
    }
}

/// Returns the name of a namespaced function (`sets.contains`), if the call is one.
pub(super) fn namespaced(target: &Expr, function: &str) -> Option<String> {
    let name = format!("{}.{function}", dotted(target)?);
    let known = signatures::lookup(&name);
    (!known.is_empty()).then_some(name)
}

struct Checker {
    scope: Vec<(String, Type)>,
    types: BTreeMap<usize, Type>,
    issues: Vec<Issue>,
    uses_old: bool,
    patches: bool,
}

impl Checker {
    fn fail(&mut self, at: usize, message: impl Into<String>) -> Type {
        self.issues.push(Issue::new(at, message));
        Type::Dyn
    }

    fn expr(&mut self, expr: &Expr) -> Type {
        let found = match &expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Ident(name) => self.ident(name, expr.at),
            Kind::Select { operand, field, test, optional } => {
                self.select(expr.at, operand, field, *test, *optional)
            }
            Kind::Call { function, target, args } => self.call(expr.at, function, target.as_deref(), args),
            Kind::List(items) => {
                let items: Vec<_> =
                    items.iter().map(|(item, optional)| self.element(item, *optional)).collect();
                Type::List(Box::new(self.common(&items)))
            }
            Kind::Map(entries) => {
                let keys: Vec<_> = entries.iter().map(|(key, ..)| (key.at, self.expr(key))).collect();
                let values: Vec<_> =
                    entries.iter().map(|(_, value, optional)| self.element(value, *optional)).collect();
                Type::Map(Box::new(self.common(&keys)), Box::new(self.common(&values)))
            }
            Kind::Comprehension(fold) => self.fold(expr.at, fold),
            Kind::Message { name, fields } => self.message(expr.at, name, fields),
            Kind::OptionalMap { target, name, body, flat } => {
                let inner = match self.expr(target) {
                    Type::Optional(inner) => *inner,
                    Type::Dyn => Type::Dyn,
                    other => {
                        let message =
                            format!("found no matching overload for 'hasValue' applied to '{other}.()'");
                        self.fail(expr.at, message)
                    }
                };
                self.scope.push((name.clone(), inner));
                let result = self.expr(body);
                self.scope.pop();
                if *flat { result } else { result.optional() }
            }
        };
        self.types.insert(expr.id, found.clone());
        found
    }

    fn element(&mut self, expr: &Expr, optional: bool) -> (usize, Type) {
        let found = self.expr(expr);
        let found = match found {
            Type::Optional(inner) if optional => *inner,
            other => other,
        };
        (expr.at, found)
    }

    /// Returns the common type of all elements.
    fn common(&mut self, types: &[(usize, Type)]) -> Type {
        let mut out = Type::Dyn;
        for (at, found) in types {
            if out == Type::Dyn {
                out = found.clone();
            } else if !Bindings::default().accept(&out, found) {
                self.fail(*at, format!("expected type '{out}' but found '{found}'"));
            }
        }
        out
    }

    fn ident(&mut self, name: &str, at: usize) -> Type {
        if let Some((_, found)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            self.uses_old |= name == "oldSelf";
            return found.clone();
        }
        match name {
            "int" | "uint" | "double" | "bool" | "string" | "bytes" | "list" | "map" | "null_type"
            | "type" => Type::Kind,
            _ => self.fail(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    /// Checks an object construction: the types that mutations produce.
    fn message(&mut self, at: usize, name: &str, fields: &[(String, Expr, bool)]) -> Type {
        let is_object = name == "Object" || name.starts_with("Object.");
        if !self.patches || !(is_object || name == "JSONPatch") {
            return self.fail(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        for (field, value, _) in fields {
            let found = self.expr(value);
            if is_object {
                continue;
            }
            match (field.as_str(), found) {
                ("op" | "path" | "from", Type::String | Type::Dyn) | ("value", _) => {}
                ("op" | "path" | "from", other) => {
                    let message = format!(
                        "expected type of field '{field}' is 'string' but provided type is '{other}'"
                    );
                    self.fail(value.at, message);
                }
                _ => {
                    self.fail(value.at, format!("undefined field '{field}'"));
                }
            }
        }
        Type::Message(name.to_owned())
    }

    fn select(&mut self, at: usize, operand: &Expr, field: &str, test: bool, optional: bool) -> Type {
        // The name of a variable may contain a dot.
        if let Kind::Ident(root) = &operand.kind
            && let Some((_, found)) = self.scope.iter().rev().find(|(known, _)| {
                known.strip_prefix(root.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(field)
            })
        {
            return found.clone();
        }
        let operand = self.expr(operand);
        let (inner, was_optional) = match operand {
            Type::Optional(inner) => (*inner, true),
            other => (other, false),
        };
        let found = match &inner {
            Type::Dyn | Type::Message(_) => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Fields(fields) => match fields.get(field) {
                Some(found) => found.clone(),
                None => return self.fail(at, format!("undefined field '{field}'")),
            },
            Type::Object(decl) => match &decl.kind {
                DeclKind::Object(fields) => match fields.get(field) {
                    Some((_, decl)) => Type::of(decl),
                    None => return self.fail(at, format!("undefined field '{field}'")),
                },
                _ => Type::Dyn,
            },
            other => return self.fail(at, format!("type '{other}' does not support field selection")),
        };
        match found {
            _ if test => Type::Bool,
            found if optional || was_optional => found.optional(),
            found => found,
        }
    }

    fn call(&mut self, at: usize, function: &str, target: Option<&Expr>, args: &[Expr]) -> Type {
        let in_scope = |scope: &[(String, Type)], expr: &Expr| {
            let root = dotted(expr).map(|name| name.split('.').next().unwrap_or_default().to_owned());
            root.is_some_and(|root| scope.iter().any(|(known, _)| *known == root))
        };
        let (name, target) = match target {
            Some(target) => match namespaced(target, function).filter(|_| !in_scope(&self.scope, target)) {
                Some(name) => (name, None),
                None => (function.to_owned(), Some(target)),
            },
            None => (function.to_owned(), None),
        };
        let member = target.is_some();
        let types: Vec<Type> = target.into_iter().chain(args).map(|arg| self.expr(arg)).collect();
        let candidates = signatures::lookup(&name);
        if candidates.is_empty() {
            return self.fail(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        let mut result: Option<Type> = None;
        for signature in candidates.iter().filter(|s| s.member == member && s.args.len() == types.len()) {
            let mut bindings = Bindings::default();
            if signature.args.iter().zip(&types).all(|(formal, actual)| bindings.accept(formal, actual)) {
                let found = signature.result.bound(&bindings);
                result = Some(match result {
                    Some(before) if before != found => Type::Dyn,
                    _ => found,
                });
            }
        }
        result.unwrap_or_else(|| {
            let shown: Vec<_> = types.iter().map(ToString::to_string).collect();
            let shown = match shown.split_first() {
                Some((target, args)) if member => format!("{target}.({})", args.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.fail(at, format!("found no matching overload for '{name}' applied to '{shown}'"))
        })
    }

    fn fold(&mut self, at: usize, fold: &Comprehension) -> Type {
        let (key, value) = match self.expr(&fold.range) {
            Type::List(of) => (Type::Int, *of),
            Type::Map(key, value) if fold.second.is_some() => (*key, *value),
            Type::Map(key, _) => (Type::Dyn, *key),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                (Type::Dyn, self.fail(fold.range.at, message))
            }
        };
        let depth = self.scope.len();
        match &fold.second {
            Some(second) => {
                self.scope.push((fold.first.clone(), key.clone()));
                self.scope.push((second.clone(), value.clone()));
            }
            None => self.scope.push((fold.first.clone(), value.clone())),
        }
        if let Some(filter) = &fold.filter {
            self.condition(at, filter, "_?_:_");
        }
        let result = match fold.kind {
            Macro::All => self.condition(at, &fold.body, "_&&_"),
            Macro::Exists => self.condition(at, &fold.body, "_||_"),
            Macro::ExistsOne => self.condition(at, &fold.body, "_?_:_"),
            Macro::Filter => {
                self.condition(at, &fold.body, "_?_:_");
                Type::List(Box::new(value))
            }
            Macro::Map | Macro::TransformList => Type::List(Box::new(self.expr(&fold.body))),
            Macro::TransformMap => Type::Map(Box::new(key), Box::new(self.expr(&fold.body))),
            Macro::TransformMapEntry => self.expr(&fold.body),
        };
        self.scope.truncate(depth);
        result
    }

    fn condition(&mut self, at: usize, body: &Expr, operator: &str) -> Type {
        match self.expr(body) {
            Type::Bool | Type::Dyn => Type::Bool,
            other => {
                let applied = if operator == "_?_:_" {
                    format!("({other}, dyn, dyn)")
                } else {
                    format!("(bool, {other})")
                };
                self.fail(at, format!("found no matching overload for '{operator}' applied to '{applied}'"));
                Type::Bool
            }
        }
    }
}

fn of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
