//! Field errors with upstream's types and messages, and validation functions shared by many types.

pub use kubewright_schema::names;

pub mod at;
pub mod field;

use serde_json::{Value, json};

/// Error about a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    reason: &'static str,
    field: String,
    message: String,
}

/// Errors of one object, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors(Vec<FieldError>);

/// Formats a value like Go's `%q` and `%v` in field errors.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    }
}

impl Errors {
    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of errors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.0.push(FieldError { reason, field: field.into(), message });
    }

    /// Adds an error about a missing required value.
    pub fn required(&mut self, field: impl Into<String>, why: &str) {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        self.add("FieldValueRequired", field, message);
    }

    /// Adds an error about an invalid value.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, why: &str) {
        let message = format!("Invalid value: {}: {why}", format_value(&value.into()));
        self.add("FieldValueInvalid", field, message);
    }

    /// Adds an error about an invalid value without showing it.
    pub fn invalid_without_value(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {why}"));
    }

    /// Adds an error about a value of the wrong type.
    pub fn type_invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, why: &str) {
        let message = format!("Invalid value: {}: {why}", format_value(&value.into()));
        self.add("FieldValueTypeInvalid", field, message);
    }

    /// Adds an error about a value outside of a fixed list.
    pub fn not_supported(&mut self, field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            format_value(&value.into()),
            list.join(", ")
        );
        self.add("FieldValueNotSupported", field, message);
    }

    /// Adds an error about a field that must not be set.
    pub fn forbidden(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {why}"));
    }

    /// Adds an error about a duplicate value.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        let message = format!("Duplicate value: {}", format_value(&value.into()));
        self.add("FieldValueDuplicate", field, message);
    }

    /// Adds an error about a string over its limit.
    pub fn too_long(&mut self, field: impl Into<String>, limit: usize) {
        self.add("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"));
    }

    /// Adds an error about a list or map over its limit.
    pub fn too_many(&mut self, field: impl Into<String>, actual: usize, limit: usize) {
        let message = format!("Too many: {actual}: must have at most {limit} items");
        self.add("FieldValueTooMany", field, message);
    }

    /// Adds an error about a missing referenced value.
    pub fn not_found(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.add("FieldValueNotFound", field, format!("Not found: {}", format_value(&value.into())));
    }

    /// Adds the errors of schema validation.
    pub fn extend_from_schema(&mut self, errors: &[crate::schema::field::FieldError]) {
        for error in errors {
            self.add(error.kind.reason(), error.field.as_str(), error.message());
        }
    }

    /// Adds the errors of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the text after "is invalid: ", as Go's error aggregates format it.
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

    /// Returns `details.causes`.
    pub fn causes(&self) -> Vec<Value> {
        self.0.iter().map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_errors_are_joined_in_brackets() {
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
