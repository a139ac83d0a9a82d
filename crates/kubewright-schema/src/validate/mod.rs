//! Checks a custom resource against the value rules of its `openAPIV3Schema`.
//!
//! Every keyword that a CRD may use is understood, in the words of kube-openapi; CEL rules are not part of it, nor
//! are list types ([`lists`](super::lists)) and metadata. Compile a [`Validator`] once per CRD version and share it.

mod check;
mod combine;
mod compile;
mod formats;

use serde_json::Value;

use super::{SchemaError, field::FieldError};
use check::{Outcome, Path};
use compile::Rules;

/// The compiled value rules of a schema.
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

    /// The errors of a new object.
    pub fn validate(&self, value: &Value) -> Vec<FieldError> {
        let mut outcome = Outcome::default();
        outcome.merge(check::value(&self.rules, Some(value), None, &Path::root()));
        outcome.into_errors()
    }

    /// The errors of an update. What was wrong before and has not changed is let pass (ratcheting), so that a schema
    /// can be tightened without breaking the objects that exist.
    pub fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut outcome = Outcome::default();
        outcome.merge(check::value(&self.rules, Some(new), Some(old), &Path::root()));
        outcome.into_errors()
    }
}
