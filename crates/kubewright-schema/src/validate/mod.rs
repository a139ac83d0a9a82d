//! Validation of custom resources by the value rules of their `openAPIV3Schema`.
//!
//! All keywords that a CRD may use are supported, with the messages of kube-openapi. CEL rules, list types
//! ([`lists`](super::lists)) and metadata are validated elsewhere. Compile a [`Validator`] once per CRD
//! version and share it.

mod check;
mod combine;
mod compile;
mod formats;

use serde_json::Value;

use super::{SchemaError, field::FieldError};
use check::{Outcome, Path};
use compile::Rules;

/// Compiled value rules of a schema.
///
/// ```
/// use kubewright_schema::validate::Validator;
/// use serde_json::json;
///
/// let validator = Validator::new(&json!({
///     "type": "object",
///     "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
/// }))?;
/// let errors = validator.validate(&json!({"spec": {"n": 0}}));
/// assert_eq!(
///     errors[0].to_string(),
///     "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"
/// );
/// # Ok::<(), kubewright_schema::SchemaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Validator {
    rules: Rules,
}

impl Validator {
    /// Compiles a schema, patterns included.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { rules: Rules::compile(schema, &mut String::from("openAPIV3Schema"))? })
    }

    /// Validates a new object.
    pub fn validate(&self, value: &Value) -> Vec<FieldError> {
        let mut outcome = Outcome::default();
        outcome.merge(check::check_value(&self.rules, Some(value), None, &Path::root()));
        outcome.into_errors()
    }

    /// Validates an update. Errors of unchanged values are dropped (ratcheting), so that a schema can be
    /// tightened without breaking existing objects.
    pub fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut outcome = Outcome::default();
        outcome.merge(check::check_value(&self.rules, Some(new), Some(old), &Path::root()));
        outcome.into_errors()
    }
}
