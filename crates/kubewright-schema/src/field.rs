//! Errors about a field, as a 422 answer lists them.

use std::fmt;

use serde_json::Value;

use super::go;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The value breaks a rule.
    Invalid,
    /// The value is of another JSON type.
    TypeInvalid,
    /// The field must be there.
    Required,
    /// The value is not one of those allowed.
    NotSupported,
    /// The value must be unique and is not.
    Duplicate,
    /// The text is too long.
    TooLong,
    /// The list or map has too many items.
    TooMany,
    /// The field may not be set.
    Forbidden,
}

impl ErrorKind {
    /// The reason of the cause.
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

    fn words(self) -> &'static str {
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

/// One error about one field.
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
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where; `<nil>` when it is about no field in particular.
    pub field: String,
    /// The value in question.
    pub value: Value,
    /// More words, or empty.
    pub detail: String,
    shown: Shown,
}

/// How the value of an error is printed.
#[derive(Debug, Clone, PartialEq)]
enum Shown {
    Value,
    Nothing,
    Text(String),
}

impl FieldError {
    /// Puts an error together; an empty field means no field in particular.
    pub fn new(
        kind: ErrorKind,
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let field =
            Some(field.into()).filter(|field| !field.is_empty()).unwrap_or_else(|| "<nil>".to_owned());
        Self { kind, field, value: value.into(), detail: detail.into(), shown: Shown::Value }
    }

    /// Leaves the value out of the message, as for rules about a whole object.
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
        Self { shown: Shown::Nothing, ..self }
    }

    /// Prints this text in place of the value: a Go struct has its own order of fields.
    #[must_use]
    pub fn shown_as(self, text: impl Into<String>) -> Self {
        Self { shown: Shown::Text(text.into()), ..self }
    }

    /// The message of the cause: everything but the field.
    pub fn message(&self) -> String {
        let words = self.kind.words();
        let value = match (self.kind, &self.shown, &self.value) {
            (ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong, ..)
            | (_, Shown::Nothing, _) => String::new(),
            (_, Shown::Text(text), _) => format!(": {text}"),
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

/// All errors in one text, as the message of an answer has them: alone, or in brackets.
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
