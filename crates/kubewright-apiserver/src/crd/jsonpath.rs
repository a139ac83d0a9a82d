//! `JSONPath` of printer columns, selectable fields and `kubectl -o jsonpath`: `.spec.list[?(@.k=="y")].v`.
//!
//! Supports fields, quoted fields, indices (negative ones count from the end), slices, `*`, `..` and filters
//! that compare with a literal. A missing key gives no values and is not an error.

use serde_json::Value;

/// Error parsing a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "path {path:?} cannot be read at {rest:?}: write .field, ['field'], [0], [1:3], [*] or [?(@.field==\"x\")]"
)]
pub struct JsonPathError {
    /// The path.
    pub path: String,
    /// The unparsed rest of the path.
    pub rest: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    All,
    Below,
    Filter(Vec<Step>, Option<(Comparison, Value)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Parsed path.
///
/// ```
/// use kubewright_apiserver::crd::jsonpath::JsonPath;
/// use serde_json::json;
///
/// let object = json!({"spec": {"l": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}});
/// let path = JsonPath::parse(".spec.l[?(@.k==\"y\")].v")?;
/// assert_eq!(path.find(&object), [&json!(2)]);
/// # Ok::<(), kubewright_apiserver::crd::jsonpath::JsonPathError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Parses a path.
    pub fn parse(path: &str) -> Result<Self, JsonPathError> {
        let mut rest = path.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let steps = steps(&mut rest).filter(|_| rest.is_empty());
        steps.map(Self).ok_or_else(|| JsonPathError { path: path.to_owned(), rest: rest.to_owned() })
    }

    /// Returns all values that the path selects.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        follow(&self.0, vec![value])
    }
}

fn steps(rest: &mut &str) -> Option<Vec<Step>> {
    let mut out = Vec::new();
    loop {
        if let Some(tail) = rest.strip_prefix("..") {
            out.push(Step::Below);
            *rest = tail;
            if !rest.starts_with('[') {
                out.push(name(rest)?);
            }
        } else if let Some(tail) = rest.strip_prefix('.') {
            *rest = tail;
            if rest.is_empty() || rest.starts_with('[') {
                continue;
            }
            out.push(name(rest)?);
        } else if let Some(tail) = rest.strip_prefix('[') {
            *rest = tail;
            out.push(bracket(rest)?);
        } else {
            return Some(out);
        }
    }
}

fn name(rest: &mut &str) -> Option<Step> {
    if let Some(tail) = rest.strip_prefix('*') {
        *rest = tail;
        return Some(Step::All);
    }
    let mut text = String::new();
    let mut chars = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' | ']' | ')' | '=' | '!' | '<' | '>' | ' ' => {
                end = at;
                break;
            }
            c => text.push(c),
        }
    }
    *rest = &rest[end..];
    (!text.is_empty()).then_some(Step::Field(text))
}

fn bracket(rest: &mut &str) -> Option<Step> {
    if let Some(tail) = rest.strip_prefix("?(") {
        *rest = tail.trim_start().strip_prefix('@')?;
        let left = steps(rest)?;
        let compared = comparison(rest);
        let condition = match compared {
            Some(compared) => Some((compared, literal(rest)?)),
            None => None,
        };
        *rest = rest.trim_start().strip_prefix(")]")?;
        return Some(Step::Filter(left, condition));
    }
    let inner_end = match rest.chars().next()? {
        quote @ ('\'' | '"') => {
            let end = rest[1..].find(quote)? + 1;
            let field = rest[1..end].to_owned();
            *rest = rest[end + 1..].strip_prefix(']')?;
            return Some(Step::Field(field));
        }
        _ => rest.find(']')?,
    };
    let inner = &rest[..inner_end];
    *rest = &rest[inner_end + 1..];
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    match inner.split_once(':') {
        _ if inner == "*" => Some(Step::All),
        Some((from, to)) => Some(Step::Slice(number(from)?, number(to)?)),
        None => inner.parse().ok().map(Step::Index),
    }
}

fn comparison(rest: &mut &str) -> Option<Comparison> {
    let text = rest.trim_start();
    let (found, width) = match text.as_bytes() {
        [b'=', b'=', ..] => (Comparison::Equal, 2),
        [b'!', b'=', ..] => (Comparison::NotEqual, 2),
        [b'<', b'=', ..] => (Comparison::LessOrEqual, 2),
        [b'>', b'=', ..] => (Comparison::GreaterOrEqual, 2),
        [b'<', ..] => (Comparison::Less, 1),
        [b'>', ..] => (Comparison::Greater, 1),
        _ => return None,
    };
    *rest = text[width..].trim_start();
    Some(found)
}

fn literal(rest: &mut &str) -> Option<Value> {
    if let quote @ ('\'' | '"') = rest.chars().next()? {
        let end = rest[1..].find(quote)? + 1;
        let text = rest[1..end].to_owned();
        *rest = &rest[end + 1..];
        return Some(text.into());
    }
    let end = rest.find([')', ' '])?;
    let (text, tail) = rest.split_at(end);
    *rest = tail;
    serde_json::from_str(text).ok()
}

fn follow<'v>(steps: &[Step], mut at: Vec<&'v Value>) -> Vec<&'v Value> {
    for step in steps {
        let mut next = Vec::new();
        for value in at {
            take(step, value, &mut next);
        }
        at = next;
    }
    at
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn take<'v>(step: &Step, value: &'v Value, out: &mut Vec<&'v Value>) {
    let place = |at: i64, length: usize| {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        usize::try_from(if at < 0 { at + length } else { at }).ok()
    };
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => out.extend(map.get(name)),
        (Step::Index(at), Value::Array(items)) => {
            out.extend(place(*at, items.len()).and_then(|at| items.get(at)));
        }
        (Step::Slice(from, to), Value::Array(items)) => {
            let from = from.and_then(|at| place(at, items.len())).unwrap_or(0);
            let to = to.and_then(|at| place(at, items.len())).unwrap_or(items.len()).min(items.len());
            out.extend(items.get(from..to).into_iter().flatten());
        }
        (Step::All, value) => out.extend(children(value)),
        (Step::Below, value) => {
            out.push(value);
            for child in children(value) {
                take(step, child, out);
            }
        }
        (Step::Filter(left, condition), value) => {
            out.extend(children(value).into_iter().filter(|item| {
                let found = follow(left, vec![item]);
                match condition {
                    None => !found.is_empty(),
                    Some((comparison, wanted)) => {
                        found.first().is_some_and(|found| holds(*comparison, found, wanted))
                    }
                }
            }));
        }
        _ => {}
    }
}

fn holds(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => a.partial_cmp(b),
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
        (a, b) => (a == b).then_some(std::cmp::Ordering::Equal),
    };
    match comparison {
        Comparison::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
        Comparison::NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
        Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_step_selects_its_values() {
        let object =
            json!({"a": {"b.c": 1, "l": [1, 2, 3], "m": {"x": 5, "y": 6}, "o": [{"n": 1}, {"n": 7}, {}]}});
        let find = |path: &str| {
            JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(find(".a['b.c']"), [json!(1)]);
        assert_eq!(find(".a.b\\.c"), [json!(1)]);
        assert_eq!(find(".a.l[-1]"), [json!(3)]);
        assert_eq!(find(".a.l[1:]"), [json!(2), json!(3)]);
        assert_eq!(find(".a.m.*"), [json!(5), json!(6)]);
        assert_eq!(find("..n"), [json!(1), json!(7)]);
        assert_eq!(find(".a.o[?(@.n>3)].n"), [json!(7)]);
        assert_eq!(find(".a.o[?(@.n)].n").len(), 2);
        assert!(find(".a.absent.x").is_empty() && find(".a.l[9]").is_empty());
        for bad in ["a", ".a[", ".a[x]", ".a[?(@.n==)]", ".a]"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }
}
