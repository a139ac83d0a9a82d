//! Functions on strings.

use std::fmt::Write;

use regex::Regex;

use super::{super::eval::fail, CelError, EvalResult, operators::display};
use crate::value::Val;
use kubewright_schema::go;

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    if let ("join", [list, rest @ ..]) = (function, args) {
        let between = rest.first().map(display).unwrap_or_default();
        let items: Vec<_> = list.items()?.iter().map(display).collect();
        return Some(Ok(Val::text(items.join(&between))));
    }
    let [Val::String(text), rest @ ..] = args else { return None };
    let text: &str = text;
    Some(match (function, rest) {
        ("contains", [Val::String(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::String(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::String(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches" | "find" | "findAll", [Val::String(pattern), rest @ ..]) => {
            compiled(pattern).and_then(|pattern| search(function, &pattern, text, rest))
        }
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim())),
        ("strings.quote", []) => Ok(Val::text(go::quote(text))),
        ("charAt", [Val::Int(at)]) => char_at(text, *at),
        ("indexOf", [Val::String(part)]) => Ok(index_of(text, part, 0)),
        ("indexOf", [Val::String(part), Val::Int(from)]) => match in_range(text, *from) {
            Ok(from) => Ok(index_of(text, part, from)),
            Err(error) => Err(error),
        },
        ("lastIndexOf", [Val::String(part)]) => Ok(last_index_of(text, part, usize::MAX)),
        ("lastIndexOf", [Val::String(part), Val::Int(from)]) => {
            in_range(text, *from).map(|from| last_index_of(text, part, from))
        }
        ("replace", [Val::String(old), Val::String(new)]) => Ok(Val::text(text.replace(&**old, new))),
        ("replace", [Val::String(old), Val::String(new), Val::Int(limit)]) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            Ok(Val::text(text.replacen(&**old, new, limit)))
        }
        ("split", [Val::String(by)]) => Ok(split(text, by, usize::MAX)),
        ("split", [Val::String(by), Val::Int(limit)]) => {
            Ok(split(text, by, usize::try_from(*limit).unwrap_or(usize::MAX)))
        }
        ("substring", [Val::Int(from)]) => {
            substring(text, *from, i64::try_from(text.chars().count()).unwrap_or(i64::MAX))
        }
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, *to),
        ("format", [args]) => format(text, &args.items()?),
        _ => return None,
    })
}

/// Implements `matches`, `find` and `findAll`.
pub(super) fn search<'v>(function: &str, pattern: &Regex, text: &str, rest: &[Val<'v>]) -> EvalResult<'v> {
    let found = |found: regex::Match<'_>| Val::text(found.as_str());
    match (function, rest) {
        ("matches", []) => Ok(Val::Bool(pattern.is_match(text))),
        ("find", []) => Ok(pattern.find(text).map_or_else(|| Val::text(""), found)),
        ("findAll", []) => Ok(Val::list(pattern.find_iter(text).map(found).collect())),
        ("findAll", [Val::Int(limit)]) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            Ok(Val::list(pattern.find_iter(text).take(limit).map(found).collect()))
        }
        _ => fail("no such overload"),
    }
}

fn compiled(pattern: &str) -> Result<Regex, CelError> {
    Regex::new(pattern).or_else(|_| fail(format!("error parsing regexp: {}", go::quote(pattern))))
}

fn in_range(text: &str, at: i64) -> Result<usize, CelError> {
    match usize::try_from(at).ok().filter(|at| *at <= text.chars().count()) {
        Some(at) => Ok(at),
        None => fail(format!("index out of range: {at}")),
    }
}

fn char_at<'v>(text: &str, at: i64) -> EvalResult<'v> {
    let at = in_range(text, at)?;
    Ok(Val::text(text.chars().nth(at).map(String::from).unwrap_or_default()))
}

fn position(found: Option<usize>) -> Val<'static> {
    Val::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn index_of<'v>(text: &str, part: &str, from: usize) -> Val<'v> {
    let start = text.char_indices().nth(from).map_or(text.len(), |(at, _)| at);
    position(text[start..].find(part).map(|at| text[..start + at].chars().count()))
}

fn last_index_of<'v>(text: &str, part: &str, from: usize) -> Val<'v> {
    let places = text.char_indices().map(|(at, _)| at).chain([text.len()]).enumerate();
    position(places.filter(|(i, at)| *i <= from && text[*at..].starts_with(part)).map(|(i, _)| i).last())
}

fn split<'v>(text: &str, by: &str, limit: usize) -> Val<'v> {
    if limit == 0 {
        return Val::list(Vec::new());
    }
    if by.is_empty() {
        let count = text.chars().count();
        let whole = count.min(limit.saturating_sub(1));
        let mut parts: Vec<String> = text.chars().take(whole).map(String::from).collect();
        let rest: String = text.chars().skip(whole).collect();
        if !rest.is_empty() {
            parts.push(rest);
        }
        return Val::list(parts.into_iter().map(Val::text).collect());
    }
    Val::list(text.splitn(limit, by).map(Val::text).collect())
}

fn substring<'v>(text: &str, from: i64, to: i64) -> EvalResult<'v> {
    let (start, end) = (in_range(text, from)?, in_range(text, to)?);
    if start > end {
        return fail(format!("invalid substring range. start: {from}, end: {to}"));
    }
    Ok(Val::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

/// Implements `'%s is %d'.format([…])`.
fn format<'v>(template: &str, args: &[Val<'v>]) -> EvalResult<'v> {
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    let mut next = args.iter();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut digits = String::new();
            while let Some(digit) = chars.peek().filter(|c| c.is_ascii_digit()) {
                digits.push(*digit);
                chars.next();
            }
            precision = digits.parse::<usize>().ok();
        }
        let verb = chars.next();
        let Some(arg) = next.next() else {
            return fail(format!("index {} out of range", args.len()));
        };
        let bad =
            || fail(format!("could not parse formatting clause: unrecognized formatting clause {verb:?}"));
        match (verb, arg) {
            (Some('s'), arg) => out.push_str(&literal(arg)),
            (Some('d'), Val::Int(_) | Val::Uint(_)) => out.push_str(&display(arg)),
            (Some('f'), arg) => match number(arg) {
                Some(f) => drop(write!(out, "{f:.*}", precision.unwrap_or(6))),
                None => return bad(),
            },
            (Some('e'), arg) => match number(arg) {
                Some(f) => {
                    let text = format!("{f:.*e}", precision.unwrap_or(6));
                    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
                    let (sign, digits) = power.strip_prefix('-').map_or(("+", power), |digits| ("-", digits));
                    out.extend([mantissa, "e", sign, &format!("{digits:0>2}")]);
                }
                None => return bad(),
            },
            (Some('b'), Val::Int(n)) => out.push_str(&signed(*n, |n| format!("{n:b}"))),
            (Some('b'), Val::Bool(flag)) => out.push(if *flag { '1' } else { '0' }),
            (Some('o'), Val::Int(n)) => out.push_str(&signed(*n, |n| format!("{n:o}"))),
            (Some('x'), Val::Int(n)) => out.push_str(&signed(*n, |n| format!("{n:x}"))),
            (Some('X'), Val::Int(n)) => out.push_str(&signed(*n, |n| format!("{n:X}"))),
            (Some('x'), Val::String(text)) => out.extend(text.bytes().map(|byte| format!("{byte:02x}"))),
            (Some('X'), Val::String(text)) => out.extend(text.bytes().map(|byte| format!("{byte:02X}"))),
            _ => return bad(),
        }
    }
    Ok(Val::text(out))
}

fn signed(n: i64, show: impl Fn(u64) -> String) -> String {
    format!("{}{}", if n < 0 { "-" } else { "" }, show(n.unsigned_abs()))
}

#[expect(clippy::cast_precision_loss, reason = "as the language converts")]
fn number(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(f) => Some(*f),
        Val::Int(n) => Some(*n as f64),
        Val::Uint(n) => Some(*n as f64),
        _ => None,
    }
}

fn literal(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        value => match (value.items(), value.entries()) {
            (Some(items), _) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
            (_, Some(entries)) => {
                let pairs: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", literal(key), literal(value)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            _ => display(value),
        },
    }
}
