//! Field errors, as listed in the causes of a 422 response.

use std::fmt;

use serde_json::Value;

use super::go;

/// Type of a field error; upstream `field.ErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The value breaks a rule.
    Invalid,
    /// The value has another JSON type.
    TypeInvalid,
    /// The field is missing.
    Required,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value is not unique.
    Duplicate,
    /// The string is too long.
    TooLong,
    /// The list or map has too many items.
    TooMany,
    /// The field must not be set.
    Forbidden,
}

impl ErrorKind {
    /// Returns the reason of the status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Forbidden => "Forbidden",
        }
    }
}

/// Error about one field.
///
/// ```
/// use kubewright_schema::field::{ErrorKind, FieldError};
///
/// let error = FieldError::new(ErrorKind::Invalid, "spec.a", 0, "must be positive");
/// assert_eq!(error.message(), "Invalid value: 0: must be positive");
/// assert_eq!(error.to_string(), "spec.a: Invalid value: 0: must be positive");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The type of error.
    pub kind: ErrorKind,
    /// The path; `<nil>` if the error concerns no particular field.
    pub field: String,
    /// The rejected value.
    pub value: Value,
    /// The explanation, possibly empty.
    pub detail: String,
    shown: ValueDisplay,
}

/// Display of the value in the message.
#[derive(Debug, Clone, PartialEq)]
enum ValueDisplay {
    Value,
    Nothing,
    Text(String),
}

impl FieldError {
    /// Creates an error; an empty field means no particular field.
    pub fn new(
        kind: ErrorKind,
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let field =
            Some(field.into()).filter(|field| !field.is_empty()).unwrap_or_else(|| "<nil>".to_owned());
        Self { kind, field, value: value.into(), detail: detail.into(), shown: ValueDisplay::Value }
    }

    /// Omits the value from the message, as for rules about a whole object.
    ///
    /// ```
    /// use kubewright_schema::field::{ErrorKind, FieldError};
    /// use serde_json::Value;
    ///
    /// let error = FieldError::new(ErrorKind::Invalid, "spec", Value::Null, "min exceeds max").without_value();
    /// assert_eq!(error.message(), "Invalid value: min exceeds max");
    /// ```
    #[must_use]
    pub fn without_value(self) -> Self {
        Self { shown: ValueDisplay::Nothing, ..self }
    }

    /// Displays this text instead of the value: a Go struct has its own field order.
    #[must_use]
    pub fn with_displayed_value(self, text: impl Into<String>) -> Self {
        Self { shown: ValueDisplay::Text(text.into()), ..self }
    }

    /// Returns the message of the status cause: the error without the field.
    pub fn message(&self) -> String {
        let words = self.kind.as_str();
        let value = match (self.kind, &self.shown, &self.value) {
            (ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong, ..)
            | (_, ValueDisplay::Nothing, _) => String::new(),
            (_, ValueDisplay::Text(text), _) => format!(": {text}"),
            (_, _, Value::String(text)) => format!(": {}", go::quote(text)),
            (_, _, Value::Number(number)) => format!(": {}", go::number(number)),
            (_, _, other) => format!(": {}", go::json(other)),
        };
        let colon = if self.detail.is_empty() { "" } else { ": " };
        format!("{words}{value}{colon}{}", self.detail)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

/// Joins errors into the message of a response: one error alone, several in brackets.
pub fn join(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match &*texts {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
