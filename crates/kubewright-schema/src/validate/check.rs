//! Validation of a value against compiled rules.
//!
//! The order of the checks and the number of passed ones determine which errors of an `anyOf` are reported,
//! so both follow kube-openapi.

use serde_json::{Map, Number, Value};

use super::{
    combine::combine,
    compile::{Additional, Rules},
};
use crate::{
    field::{ErrorKind, FieldError},
    go,
};

/// Path of a value in the notation of kube-openapi.
pub(super) struct Path(pub(super) String);

impl Path {
    pub(super) fn root() -> Self {
        Self(String::new())
    }

    fn field(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { self.dotted(name) }
    }

    fn dotted(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    fn index(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0))
    }
}

/// Result of a check: its distinct errors and the number of passed checks.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    errors: Vec<FieldError>,
    pub(super) passed: usize,
}

impl Outcome {
    pub(super) fn merge(&mut self, other: Self) {
        for error in other.errors {
            if !self.errors.iter().any(|e| e.detail == error.detail && e.field == error.field) {
                self.errors.push(error);
            }
        }
        self.passed += other.passed;
    }

    fn add(&mut self, error: FieldError) {
        self.merge(Self { errors: vec![error], passed: 0 });
    }

    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }

    /// Adds an error that concerns no particular field.
    pub(super) fn add_general(&mut self, detail: String) {
        self.add(FieldError::new(ErrorKind::Invalid, "", "", detail));
    }

    fn add_at(&mut self, kind: ErrorKind, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(FieldError::new(kind, path.0.trim_start_matches('.'), value, detail));
    }
}

/// Checks a value. `old` is the correlated old value, if any: errors of an unchanged value are dropped
/// (ratcheting).
pub(super) fn check_value(rules: &Rules, value: Option<&Value>, old: Option<&Value>, path: &Path) -> Outcome {
    let value = value.unwrap_or(&Value::Null);
    let outcome = check_unratcheted(rules, value, old, path);
    if !outcome.is_valid() && old == Some(value) {
        return Outcome { errors: Vec::new(), passed: outcome.passed };
    }
    outcome
}

pub(super) fn check_unratcheted(rules: &Rules, value: &Value, old: Option<&Value>, path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    if rules.types.is_empty() && rules.format_name.is_empty() {
        // Nothing to say about the type.
    } else {
        outcome.merge(check_type(rules, value, path));
        outcome.passed += 1;
    }
    if value.is_null() {
        outcome.merge(check_allowed(rules, value, path));
        return outcome;
    }
    outcome.merge(combine(rules, value, old, path));
    outcome.passed += 1;
    match value {
        Value::String(text) => {
            outcome.merge(check_string(rules, text, path));
            outcome.passed += 1;
            if let Some(format) = rules.format {
                if !format.accepts(text) {
                    let detail = format!(
                        "{} in body must be of type {}: {}",
                        path.0,
                        rules.format_name,
                        go::quote(text)
                    );
                    outcome.add_at(ErrorKind::TypeInvalid, path, text.clone(), detail);
                }
                outcome.passed += 1;
            }
        }
        Value::Number(number) => {
            outcome.merge(check_number(rules, number, path));
            outcome.passed += 1;
        }
        Value::Array(items) => {
            outcome.merge(check_list(rules, items, old, path));
            outcome.passed += 1;
        }
        _ => {}
    }
    outcome.merge(check_allowed(rules, value, path));
    outcome.passed += 1;
    if let Value::Object(map) = value {
        outcome.merge(check_object(rules, map, old, path));
        outcome.passed += 1;
    }
    outcome.passed += 1;
    outcome
}

fn json_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(n) if n.is_i64() => ("integer", "int64"),
        // Numbers beyond 64 bits are decoded as floats.
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(rules: &Rules, value: &Value, path: &Path) -> Outcome {
    let mut outcome = Outcome { errors: Vec::new(), passed: 1 };
    let (found, format) = json_type(value);
    let wrong = |wanted: &str, found: &str| {
        let detail = format!("{} in body must be of type {wanted}: {}", path.0, go::quote(found));
        let mut outcome = Outcome::default();
        outcome.add_at(ErrorKind::TypeInvalid, path, found, detail);
        outcome
    };
    let types = rules.types.join(",");
    if value.is_null() {
        let refused = !rules.types.is_empty() && !rules.nullable;
        return if refused { wrong(&types, "null") } else { outcome };
    }
    // Floats are exact for integers below 2^53 only.
    let whole = value.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 9_007_199_254_740_992.0);
    let fits = rules.allows_type(found)
        || (found == "number" && whole && rules.allows_type("integer"))
        || (found == "integer" && rules.allows_type("number"));
    let is_text = value.is_string() || value.is_array();
    if !rules.format_name.is_empty() {
        if !(is_text || fits || format == rules.format_name) {
            return wrong(&rules.format_name, format);
        }
        if is_text && !(rules.allows_type("number") || rules.allows_type("integer")) {
            return outcome;
        }
    }
    if !fits {
        return wrong(&types, found);
    }
    outcome.passed = 1;
    outcome
}

fn check_string(rules: &Rules, text: &str, path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let length = text.chars().count() as u64;
    if let Some(max) = rules.max_length.filter(|max| length > *max) {
        let bytes = if max == 1 { "byte" } else { "bytes" };
        outcome.add_at(ErrorKind::TooLong, path, Value::Null, format!("may not be more than {max} {bytes}"));
    } else if let Some(min) = rules.min_length.filter(|min| length < *min) {
        let detail = format!("{} in body should be at least {min} chars long", path.0);
        outcome.add_at(ErrorKind::Invalid, path, text, detail);
    } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        let detail = format!("{} in body should match '{pattern}'", path.0);
        outcome.add_at(ErrorKind::Invalid, path, text, detail);
    }
    outcome
}

/// First float too large for a signed 64-bit integer.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn check_number(rules: &Rules, number: &Number, path: &Path) -> Outcome {
    let mut outcome = Outcome { errors: Vec::new(), passed: 1 };
    let (integer, float) = (number.as_i64(), number.as_f64().unwrap_or_default());
    let is_integer_type = rules.types.len() == 1 && rules.allows_type("integer");
    let in_range = |float: f64, integer: Option<i64>| {
        !is_integer_type
            || match &*rules.format_name {
                "int32" => integer.is_some_and(|n| i32::try_from(n).is_ok()),
                _ => integer.is_some() || (float.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&float)),
            }
    };
    let mut check_range = |what: &str, ok: bool| {
        if !ok {
            let format = match &*rules.format_name {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            outcome.add_general(format!("{what} value must be of type integer {format} in {}", path.0));
        }
        ok
    };
    #[expect(clippy::cast_possible_truncation, reason = "as Go converts the bound")]
    let truncated = |bound: f64| bound as i64;
    check_range("Checked", in_range(float, integer));
    // Integers are compared with integer bounds as integers.
    let mut bound = |what: &str, bound: f64| {
        let ok = check_range(what, in_range(bound, Some(truncated(bound)).filter(|_| bound.fract() == 0.0)));
        integer.filter(|_| ok).map(|n| (n, truncated(bound)))
    };
    let mut found = Vec::new();
    if let Some(factor) = rules.multiple_of {
        let (ok, shown) = match bound("MultipleOf", factor) {
            Some((n, factor)) if factor > 0 => (n % factor == 0, factor.to_string()),
            _ if factor <= 0.0 => (false, go::float(factor)),
            _ => {
                let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
                ((quotient - quotient.round()).abs() < 1e-9 * quotient.abs().max(1.0), go::float(factor))
            }
        };
        if !ok {
            found.push(format!("{} in body should be a multiple of {shown}", path.0));
        }
    }
    if let Some(limit) = rules.minimum {
        let (broken, shown) = match bound("Minimum boundary", limit.value) {
            Some((n, min)) => (n < min || (limit.exclusive && n == min), min.to_string()),
            None => (below(float, limit.value, limit.exclusive), go::float(limit.value)),
        };
        if broken {
            let words = if limit.exclusive { "greater than" } else { "greater than or equal to" };
            found.push(format!("{} in body should be {words} {shown}", path.0));
        }
    }
    if let Some(limit) = rules.maximum {
        let (broken, shown) = match bound("Maximum boundary", limit.value) {
            Some((n, max)) => (n > max || (limit.exclusive && n == max), max.to_string()),
            None => (below(-float, -limit.value, limit.exclusive), go::float(limit.value)),
        };
        if broken {
            let words = if limit.exclusive { "less than" } else { "less than or equal to" };
            found.push(format!("{} in body should be {words} {shown}", path.0));
        }
    }
    for detail in found {
        outcome.add_at(ErrorKind::Invalid, path, Value::Number(number.clone()), detail);
    }
    outcome
}

fn below(value: f64, bound: f64, exclusive: bool) -> bool {
    value < bound || (exclusive && value <= bound)
}

fn check_list(rules: &Rules, items: &[Value], old: Option<&Value>, path: &Path) -> Outcome {
    let mut outcome = Outcome { errors: Vec::new(), passed: 1 };
    if let Some(item_rules) = &rules.items {
        for (i, item) in items.iter().enumerate() {
            outcome.merge(check_value(item_rules, Some(item), old_item(rules, item, old), &path.index(i)));
        }
    }
    let size = items.len() as u64;
    if let Some(min) = rules.min_items.filter(|min| size < *min) {
        outcome.add_at(
            ErrorKind::Invalid,
            path,
            size,
            format!("{} in body should have at least {min} items", path.0),
        );
    }
    if let Some(max) = rules.max_items.filter(|max| size > *max) {
        outcome.add_at(ErrorKind::TooMany, path, size, too_many(max));
    }
    if rules.unique_items && items.iter().enumerate().any(|(i, item)| items[..i].contains(item)) {
        outcome.add_at(
            ErrorKind::Invalid,
            path,
            "",
            format!("{} in body shouldn't contain duplicates", path.0),
        );
    }
    outcome
}

fn too_many(max: u64) -> String {
    format!("must have at most {max} {}", if max == 1 { "item" } else { "items" })
}

/// Returns the old item with the same list map keys; items of other lists cannot be correlated.
fn old_item<'o>(rules: &Rules, item: &Value, old: Option<&'o Value>) -> Option<&'o Value> {
    if rules.list_keys.is_empty() {
        return None;
    }
    let same = |candidate: &&Value| rules.list_keys.iter().all(|key| candidate.get(key) == item.get(key));
    old?.as_array()?.iter().find(same)
}

fn check_object(rules: &Rules, map: &Map<String, Value>, old: Option<&Value>, path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let size = map.len() as u64;
    if let Some(min) = rules.min_properties.filter(|min| size < *min) {
        let detail = format!("{} in body should have at least {min} properties", path.0);
        outcome.add_at(ErrorKind::Invalid, path, size, detail);
    }
    if let Some(max) = rules.max_properties.filter(|max| size > *max) {
        outcome.add_at(ErrorKind::TooMany, path, size, too_many(max));
    }
    let old_of = |key: &str| old.and_then(|old| old.get(key));
    for (key, child) in map.iter().filter(|(key, _)| !rules.properties.contains_key(*key)) {
        match &rules.additional {
            Additional::Any => {}
            Additional::None => {
                let detail = format!("{}.{key} in body is a forbidden property", path.0);
                outcome.add_at(ErrorKind::Invalid, path, key.as_str(), detail);
            }
            Additional::Of(values) => {
                outcome.merge(check_value(values, Some(child), old_of(key), &path.dotted(key)));
            }
        }
    }
    for (name, property) in &rules.properties {
        if let Some(child) = map.get(name) {
            // The object's stored version is unknown here, so kind and apiVersion cannot be ratcheted.
            let is_type = path.0.is_empty() && matches!(&**name, "kind" | "apiVersion");
            let before = old_of(name).filter(|_| !is_type);
            outcome.merge(check_value(property, Some(child), before, &path.field(name)));
        }
    }
    for name in rules.required.iter().filter(|name| !map.contains_key(*name)) {
        outcome.add_at(ErrorKind::Required, &path.dotted(name), Value::Null, "");
    }
    outcome
}

fn check_allowed(rules: &Rules, value: &Value, path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let same = |allowed: &Value| {
        allowed == value
            || matches!((allowed.as_f64(), value.as_f64()), (Some(a), Some(b)) if (a - b).abs() == 0.0)
    };
    if rules.allowed.is_empty() || rules.allowed.iter().any(|allowed| same(allowed) && !allowed.is_null()) {
        return outcome;
    }
    let texts: Vec<_> = rules
        .allowed
        .iter()
        .map(|allowed| go::quote(&allowed.as_str().map_or_else(|| go::json(allowed), str::to_owned)))
        .collect();
    let detail = format!("supported values: {}", texts.join(", "));
    outcome.add_at(ErrorKind::NotSupported, path, value.clone(), detail);
    outcome
}
