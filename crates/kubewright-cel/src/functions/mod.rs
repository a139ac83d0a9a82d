//! Functions of the language and of the Kubernetes library.

pub(super) mod authz;
mod formats;
mod lists;
pub(super) mod net;
pub(super) mod numbers;
mod operators;
mod strings;
pub(super) mod time;

use regex::Regex;

use super::{
    CelError,
    eval::{EvalResult, fail},
    value::Val,
};

/// Returns the type with a name that can be used as a value.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"]
        .into_iter()
        .find(|known| *known == name)
}

/// Returns the cost of a call: the sizes to be traversed.
pub(super) fn cost(function: &str, args: &[Val<'_>]) -> usize {
    let size = |i: usize| args.get(i).and_then(Val::size).unwrap_or(1);
    let tenth = |size: usize| size.div_ceil(10);
    match function {
        // The results of these can be larger than their arguments.
        "range" => match args.first() {
            Some(Val::Int(to)) => usize::try_from(*to).unwrap_or_default().max(1),
            _ => 1,
        },
        "replace" => tenth(size(0).saturating_add(1).saturating_mul(size(2).max(1))).max(1),
        "join" => size(0).saturating_mul(size(1)).max(1),
        "_==_" | "_!=_" => tenth(size(0).min(size(1))).max(1),
        "@in" if matches!(args.get(1), Some(Val::List(_) | Val::JsonList(..))) => size(1).max(1),
        "contains" => tenth(size(0)).max(1) * tenth(size(1)).max(1),
        "matches" | "find" | "findAll" => tenth(size(0) + 1) * size(1).div_ceil(4).max(1),
        "_+_" | "split" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "format" => {
            tenth(size(0) + size(1)).max(1)
        }
        "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" | "includes" | "sort" | "distinct"
        | "flatten" => size(0).max(1),
        // Upstream's constant: two checks fit into the budget of an expression, a third does not.
        "check" if matches!(args.first(), Some(Val::Authz(_))) => 350_000,
        "equivalent" | "intersects" => size(0).max(1) * size(1).max(1),
        _ => 1,
    }
}

/// Returns the pattern argument of a call that has one.
pub(super) fn pattern_of<'c>(
    function: &str,
    args: &'c [super::ast::Expr],
    member: bool,
) -> Option<&'c super::ast::Expr> {
    let at = usize::from(!member);
    args.get(at).filter(|_| matches!(function, "matches" | "find" | "findAll"))
}

/// Calls a function by name; the target, if any, is the first argument.
///
/// `pattern` is the precompiled regular expression if the pattern is a literal.
pub(super) fn call<'v>(function: &str, args: &[Val<'v>], pattern: Option<&Regex>) -> EvalResult<'v> {
    if let (Some(pattern), [Val::String(text), _, rest @ ..]) = (pattern, args) {
        return strings::search(function, pattern, text, rest);
    }
    let found = operators::call(function, args)
        .or_else(|| strings::call(function, args))
        .or_else(|| lists::call(function, args))
        .or_else(|| time::call(function, args))
        .or_else(|| net::call(function, args))
        .or_else(|| numbers::call(function, args))
        .or_else(|| formats::call(function, args))
        .or_else(|| authz::call(function, args));
    found.unwrap_or_else(|| fail("no such overload"))
}
