//! The vocabulary of validation: field errors as upstream words and classifies them, and the checks that many types
//! share.

pub use kubewright_schema::names;

pub mod at;
pub mod field;

use serde_json::{Value, json};

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    reason: &'static str,
    field: String,
    message: String,
}

/// The errors of one object, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors(Vec<FieldError>);

/// A value as Go's `%q`/`%v` print it in field errors.
fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    }
}

impl Errors {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many errors there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.0.push(FieldError { reason, field: field.into(), message });
    }

    /// A value that must be there is not.
    pub fn required(&mut self, field: impl Into<String>, why: &str) {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        self.add("FieldValueRequired", field, message);
    }

    /// A value of the right type that cannot be used.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, why: &str) {
        let message = format!("Invalid value: {}: {why}", shown(&value.into()));
        self.add("FieldValueInvalid", field, message);
    }

    /// Something that cannot be used as a whole; its value is not worth showing.
    pub fn unusable(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {why}"));
    }

    /// A value of the wrong type.
    pub fn type_invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, why: &str) {
        let message = format!("Invalid value: {}: {why}", shown(&value.into()));
        self.add("FieldValueTypeInvalid", field, message);
    }

    /// A value outside a fixed list.
    pub fn not_supported(&mut self, field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(&value.into()), list.join(", "));
        self.add("FieldValueNotSupported", field, message);
    }

    /// A field that may not be set (here, now, like this).
    pub fn forbidden(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {why}"));
    }

    /// A value that may appear only once.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        let message = format!("Duplicate value: {}", shown(&value.into()));
        self.add("FieldValueDuplicate", field, message);
    }

    /// Text over its limit.
    pub fn too_long(&mut self, field: impl Into<String>, limit: usize) {
        self.add("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"));
    }

    /// A list or map over its limit.
    pub fn too_many(&mut self, field: impl Into<String>, actual: usize, limit: usize) {
        let message = format!("Too many: {actual}: must have at most {limit} items");
        self.add("FieldValueTooMany", field, message);
    }

    /// A reference to something that is not there.
    pub fn not_found(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.add("FieldValueNotFound", field, format!("Not found: {}", shown(&value.into())));
    }

    /// Takes over what the checks by schema found.
    pub fn adopt(&mut self, errors: &[crate::schema::field::FieldError]) {
        for error in errors {
            self.add(error.kind.reason(), error.field.as_str(), error.message());
        }
    }

    /// Takes over the errors of a part.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The text after "is invalid: ", as Go's error aggregates print it.
    pub fn summary(&self) -> String {
        let mut seen: Vec<String> = Vec::with_capacity(self.0.len());
        for error in &self.0 {
            let text = format!("{}: {}", error.field, error.message);
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        match seen.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }
    }

    /// `details.causes`.
    pub fn causes(&self) -> Vec<Value> {
        self.0.iter().map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_stands_alone_and_several_in_brackets() {
        let mut errors = Errors::default();
        errors.required("spec.a", "");
        assert_eq!(errors.summary(), "spec.a: Required value");
        errors.invalid("spec.b", 3, "too odd");
        errors.not_supported("spec.c", "x", &["A", "B"]);
        assert_eq!(
            errors.summary(),
            "[spec.a: Required value, spec.b: Invalid value: 3: too odd, \
             spec.c: Unsupported value: \"x\": supported values: \"A\", \"B\"]"
        );
    }
}
