//! Functions on lists and on lists as sets.

use std::cmp::Ordering;

use super::{super::eval::fail, EvalResult, operators};
use crate::value::Val;

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    if let ("lists.range", [Val::Int(to)]) = (function, args) {
        return Some(Ok(Val::list((0..*to).map(Val::Int).collect())));
    }
    let items = args.first()?.items()?;
    let has = |of: &[Val<'v>], item: &Val<'v>| of.iter().any(|known| known.equals(item));
    let place = |at: Option<usize>| Ok(Val::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)));
    if let Some(name) = function.strip_prefix("sets.") {
        let others = args.get(1)?.items()?;
        return Some(Ok(Val::Bool(match name {
            "contains" => others.iter().all(|item| has(&items, item)),
            "equivalent" => {
                others.iter().all(|item| has(&items, item)) && items.iter().all(|item| has(&others, item))
            }
            _ => others.iter().any(|item| has(&items, item)),
        })));
    }
    Some(match (function, &args[1..]) {
        ("isSorted", []) => Ok(Val::Bool(
            items
                .windows(2)
                .all(|pair| pair[0].compare(&pair[1]).is_none_or(|order| order != Ordering::Greater)),
        )),
        ("sum", []) => {
            let mut rest = items.iter();
            let first = rest.next().cloned().unwrap_or(Val::Int(0));
            rest.try_fold(first, |sum, item| {
                operators::call("_+_", &[sum, item.clone()]).unwrap_or_else(|| fail("no such overload"))
            })
        }
        ("min" | "max", []) => {
            let wanted = if function == "min" { Ordering::Less } else { Ordering::Greater };
            let best = items
                .iter()
                .reduce(|best, item| if item.compare(best) == Some(wanted) { item } else { best });
            best.cloned().map_or_else(|| fail(format!("{function} called on empty list")), Ok)
        }
        ("indexOf", [item]) => place(items.iter().position(|known| known.equals(item))),
        ("lastIndexOf", [item]) => place(items.iter().rposition(|known| known.equals(item))),
        ("includes", [item]) => Ok(Val::Bool(has(&items, item))),
        ("slice", [Val::Int(from), Val::Int(to)]) => {
            let range = usize::try_from(*from).ok().zip(usize::try_from(*to).ok());
            match range.and_then(|(from, to)| items.get(from..to)) {
                Some(part) => Ok(Val::list(part.to_vec())),
                None => fail(format!("cannot slice({from}, {to}), list is length {}", items.len())),
            }
        }
        ("distinct", []) => {
            let mut out: Vec<Val<'v>> = Vec::new();
            for item in items.iter() {
                if !has(&out, item) {
                    out.push(item.clone());
                }
            }
            Ok(Val::list(out))
        }
        ("sort", []) => {
            let mut out = items.to_vec();
            out.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
            Ok(Val::list(out))
        }
        ("reverse", []) => Ok(Val::list(items.iter().rev().cloned().collect())),
        ("flatten", []) => Ok(Val::list(flatten(&items, 1))),
        ("flatten", [Val::Int(depth)]) => Ok(Val::list(flatten(&items, *depth))),
        ("first", []) => Ok(Val::Optional(items.first().cloned().map(Box::new))),
        ("last", []) => Ok(Val::Optional(items.last().cloned().map(Box::new))),
        _ => return None,
    })
}

fn flatten<'v>(items: &[Val<'v>], depth: i64) -> Vec<Val<'v>> {
    let mut out = Vec::new();
    for item in items {
        match item.items().filter(|_| depth > 0) {
            Some(inner) => out.extend(flatten(&inner, depth - 1)),
            None => out.push(item.clone()),
        }
    }
    out
}
