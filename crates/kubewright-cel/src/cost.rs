//! Cost estimation from the sizes that the schema allows.

use std::collections::BTreeMap;

use super::{
    ast::{Expr, Kind, Literal, Macro},
    check::{Checked, namespaced},
    decl::{Decl, DeclKind},
    types::Type,
};

/// Returns the upper bound of the cost of one evaluation.
pub(super) fn estimate(expr: &Expr, checked: &Checked, root: &Decl) -> u64 {
    let mut estimator = CostEstimator { checked, root, locals: Vec::new(), known: BTreeMap::new() };
    estimator.expr(expr).cost
}

/// Estimate of a node: maximum cost, maximum number of elements, and its path in `self`.
#[derive(Debug, Clone, Default)]
struct Estimate {
    cost: u64,
    size: Option<u64>,
    /// Size of each element of a computed list or map.
    entry: Option<u64>,
    path: Option<Vec<String>>,
}

struct CostEstimator<'c> {
    checked: &'c Checked,
    root: &'c Decl,
    locals: Vec<(String, Estimate)>,
    known: BTreeMap<Vec<String>, u64>,
}

/// Returns the cost of traversing a string: a tenth of its size, rounded up.
fn traversal(size: u64) -> u64 {
    factor(size, 0.1)
}

fn factor(size: u64, by: f64) -> u64 {
    if size == u64::MAX {
        return u64::MAX;
    }
    #[expect(clippy::cast_precision_loss, reason = "as the estimate is made upstream")]
    let exact = (size as f64 * by).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is never negative"
    )]
    let whole = exact as u64;
    whole
}

impl CostEstimator<'_> {
    fn size_at(&mut self, path: &[String]) -> Option<u64> {
        if let Some(size) = self.known.get(path) {
            return Some(*size);
        }
        let mut at = self.root;
        for name in path.get(1..)? {
            at = match (&at.kind, &**name) {
                (DeclKind::List(elem, _), "@items") => elem,
                (DeclKind::Map(_), "@keys") => return Some(u64::MAX),
                (DeclKind::Map(value), _) => value,
                (DeclKind::Object(fields), name) => &fields.get(name)?.1,
                _ => return None,
            };
        }
        self.known.insert(path.to_vec(), at.max_elements);
        Some(at.max_elements)
    }

    /// Returns the size of the items of a list from `self`.
    fn item_size(&mut self, list: &Estimate) -> Option<u64> {
        let mut path = list.path.clone()?;
        path.push("@items".to_owned());
        self.size_at(&path)
    }

    fn size(&mut self, expr: &Expr, estimate: &Estimate) -> u64 {
        if let Some(size) = estimate.size {
            return size;
        }
        if let Some(size) =
            estimate.path.as_ref().filter(|path| !path.is_empty()).and_then(|path| self.size_at(path))
        {
            return size;
        }
        if self.checked.types.get(&expr.id).is_some_and(Type::is_scalar) { 1 } else { u64::MAX }
    }

    fn message(&mut self, fields: &[(String, Expr, bool)]) -> Estimate {
        let below = fields.iter().map(|(_, value, _)| self.expr(value).cost);
        Estimate { cost: below.fold(40, u64::saturating_add), ..Estimate::default() }
    }

    fn expr(&mut self, expr: &Expr) -> Estimate {
        match &expr.kind {
            Kind::Literal(literal) => Estimate {
                size: Some(match literal {
                    Literal::String(text) => text.chars().count() as u64,
                    Literal::Bytes(bytes) => bytes.len() as u64,
                    _ => 1,
                }),
                ..Estimate::default()
            },
            Kind::Ident(name) => match self.locals.iter().rev().find(|(known, _)| known == name) {
                Some((_, local)) => Estimate { cost: 1, ..local.clone() },
                None => Estimate { cost: 1, path: Some(vec![name.clone()]), ..Estimate::default() },
            },
            Kind::Select { operand, field, test, .. } => {
                let inner = self.expr(operand);
                if *test {
                    return Estimate { cost: inner.cost, size: Some(1), ..Estimate::default() };
                }
                let path = inner.path.map(|mut path| {
                    path.push(field.clone());
                    path
                });
                Estimate { cost: inner.cost.saturating_add(1), size: None, entry: None, path }
            }
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List(items) => {
                let mut out = Estimate { cost: 10, size: Some(items.len() as u64), ..Estimate::default() };
                for (item, _) in items {
                    let estimate = self.expr(item);
                    out.cost = out.cost.saturating_add(estimate.cost);
                    out.entry = Some(out.entry.unwrap_or_default().max(self.size(item, &estimate)));
                }
                out
            }
            Kind::Message { fields, .. } => self.message(fields),
            Kind::Map(entries) => {
                let mut out = Estimate { cost: 30, size: Some(entries.len() as u64), ..Estimate::default() };
                for (key, value, _) in entries {
                    let (key, estimate) = (self.expr(key), self.expr(value));
                    out.cost = out.cost.saturating_add(key.cost).saturating_add(estimate.cost);
                    out.entry = Some(out.entry.unwrap_or_default().max(self.size(value, &estimate)));
                }
                out
            }
            Kind::Comprehension(fold) => {
                let range = self.expr(&fold.range);
                let count = self.size(&fold.range, &range);
                let is_map = matches!(self.checked.types.get(&fold.range.id), Some(Type::Map(..)));
                let below = |name: &str| Estimate {
                    path: range.path.clone().map(|mut path| {
                        path.push(name.to_owned());
                        path
                    }),
                    size: range.entry,
                    ..Estimate::default()
                };
                let depth = self.locals.len();
                let key =
                    if is_map { below("@keys") } else { Estimate { size: Some(1), ..Estimate::default() } };
                match &fold.second {
                    Some(second) => {
                        self.locals.push((fold.first.clone(), key));
                        self.locals.push((second.clone(), below(if is_map { "@values" } else { "@items" })));
                    }
                    None => {
                        self.locals.push((fold.first.clone(), if is_map { key } else { below("@items") }));
                    }
                }
                let filter = fold.filter.as_ref().map(|filter| self.expr(filter)).unwrap_or_default();
                let body = self.expr(&fold.body);
                let body_size = self.size(&fold.body, &body);
                self.locals.truncate(depth);
                let step = body.cost.saturating_add(filter.cost);
                let (init, step, result) = match fold.kind {
                    Macro::All | Macro::Exists => (0, step.saturating_add(3), 1),
                    Macro::ExistsOne => (0, step.saturating_add(2), 2),
                    _ => (10, step.saturating_add(12), 1),
                };
                let cost =
                    range.cost.saturating_add(init + result).saturating_add(count.saturating_mul(step));
                let makes_list = init > 0;
                Estimate {
                    cost,
                    size: Some(if makes_list { count } else { 1 }),
                    entry: match fold.kind {
                        Macro::Filter => range.entry,
                        _ if makes_list => Some(body_size),
                        _ => None,
                    },
                    path: range.path.filter(|_| fold.kind == Macro::Filter),
                }
            }
            Kind::OptionalMap { target, name, body, .. } => {
                let inner = self.expr(target);
                self.locals.push((name.clone(), Estimate { cost: 1, ..inner.clone() }));
                let body = self.expr(body);
                self.locals.pop();
                Estimate { cost: inner.cost.saturating_add(body.cost).saturating_add(2), ..body }
            }
        }
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate {
        let target = target.filter(|target| namespaced(target, function).is_none());
        let nodes: Vec<&Expr> = target.into_iter().chain(args).collect();
        let estimates: Vec<Estimate> = nodes.iter().map(|node| self.expr(node)).collect();
        let sizes: Vec<u64> =
            nodes.iter().zip(&estimates).map(|(node, estimate)| self.size(node, estimate)).collect();
        let sum = estimates.iter().fold(0_u64, |sum, estimate| sum.saturating_add(estimate.cost));
        let size = |i: usize| sizes.get(i).copied().unwrap_or(u64::MAX);
        let of = |i: usize| nodes.get(i).and_then(|node| self.checked.types.get(&node.id));
        let is_text = |i: usize| matches!(of(i), Some(Type::String | Type::Bytes | Type::Dyn));
        let mut out = Estimate { cost: 1, ..Estimate::default() };
        match function {
            "_&&_" | "_||_" => out.cost = 0,
            "_?_:_" => {
                let [condition, yes, no] = &estimates[..] else { return out };
                out.size = Some(size(1).max(size(2)));
                out.cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                return out;
            }
            "_[_]" | "_[?_]" => {
                let name = if matches!(of(0), Some(Type::Map(..))) { "@values" } else { "@items" };
                out.size = estimates[0].entry;
                out.path = estimates[0].path.clone().map(|mut path| {
                    path.push(name.to_owned());
                    path
                });
            }
            "dyn" => {
                out = estimates[0].clone();
                out.cost = out.cost.saturating_add(1);
                return out;
            }
            "_==_" | "_!=_" => out.cost = traversal(size(0).min(size(1))),
            "_<_" | "_<=_" | "_>_" | "_>=_" if is_text(0) => out.cost = traversal(size(0).min(size(1))),
            "_+_" if is_text(0) || matches!(of(0), Some(Type::List(_))) => {
                let total = size(0).saturating_add(size(1));
                out.size = Some(total);
                out.entry = estimates[0].entry.max(estimates[1].entry);
                out.cost = if is_text(0) { traversal(total) } else { 1 };
            }
            "@in" if matches!(of(1), Some(Type::List(_) | Type::Dyn)) => out.cost = size(1),
            "startsWith" | "endsWith" => out.cost = traversal(size(1)),
            "contains" => out.cost = traversal(size(0)).saturating_mul(traversal(size(1))),
            "matches" | "find" | "findAll" => {
                out.cost = traversal(size(0).saturating_add(1)).saturating_mul(factor(size(1), 0.25));
                out.size = if function == "matches" { Some(1) } else { Some(size(0)) };
            }
            "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" => {
                out.cost = traversal(size(0));
                out.size = Some(size(0));
            }
            "replace" => {
                out.cost = factor(size(0), 0.2);
                out.size = Some(size(0).saturating_add(1).saturating_mul(size(2).max(1)));
            }
            "split" => {
                out.cost = factor(size(0), 0.2);
                out.size = Some(size(0));
                out.entry = Some(size(0));
            }
            "join" => {
                let entry = estimates[0].entry.or_else(|| self.item_size(&estimates[0]));
                let between = if sizes.len() > 1 { size(1) } else { 0 };
                let separators = between.saturating_mul(size(0).saturating_sub(1));
                let total = size(0).saturating_mul(entry.unwrap_or(u64::MAX)).saturating_add(separators);
                out.cost = traversal(total);
                out.size = Some(total);
            }
            "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" | "includes"
                if matches!(of(0), Some(Type::List(_))) =>
            {
                let entry = self.item_size(&estimates[0]);
                let text = matches!(self.checked.types.get(&nodes[0].id), Some(Type::List(of)) if **of == Type::String);
                let each = if text { entry.map_or(1, |entry| traversal(entry).saturating_add(1)) } else { 1 };
                out.cost = size(0).saturating_mul(each);
            }
            "quantity" | "isQuantity" | "semver" | "isSemver" | "cidr" | "isIP" | "isCIDR" | "bytes" => {
                out.cost = traversal(size(0));
                out.size = Some(size(0).saturating_mul(4));
            }
            "ip" if target.is_none() => out.cost = traversal(size(0)),
            "isCanonical" => out.cost = factor(size(0), 0.2),
            "validate" => out.cost = traversal(size(1)).saturating_mul(32),
            "format" => out.cost = traversal(size(0)),
            "string" if matches!(of(0), Some(Type::Bytes)) => {
                out.cost = traversal(size(0));
                out.size = Some(size(0));
            }
            _ => {}
        }
        if out.size.is_none()
            && out.path.is_none()
            && self.checked.types.get(&expr.id).is_some_and(Type::is_scalar)
        {
            out.size = Some(1);
        }
        out.cost = out.cost.saturating_add(sum);
        out
    }
}
