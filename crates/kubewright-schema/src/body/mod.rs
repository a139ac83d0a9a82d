//! Decoding of request bodies into values, with the findings of field validation.
//!
//! A body decodes even if it repeats keys or has unknown fields. Those are reported beside the value, in
//! document order, and the caller rejects the request (`Strict`), warns (`Warn`) or drops them (`Ignore`). A
//! body with a value of the wrong type does not decode at all.
//!
//! Custom resources are decoded without a schema; [`prune`](super::prune::prune) removes their unknown
//! fields.

mod json;
mod seed;
mod types;
mod yaml;

use serde_json::Value;

use super::{Node, go};

/// Encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`, and the body of an apply.
    Yaml,
}

/// Maximum size of a request body: 3 MiB, as in kube-apiserver.
pub const MAX_BYTES: usize = 3 << 20;

/// Maximum nesting of objects and lists in a body, a patch or a stored object. CRDs nest deeper than the 128
/// levels of `serde_json`; much deeper values overflow the stack of a thread when they are dropped.
pub const MAX_DEPTH: usize = 250;

/// Limits of size and nesting while decoding a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size in bytes.
    pub bytes: usize,
    /// Maximum nesting of objects and lists.
    pub depth: usize,
}

impl Default for Limits {
    /// [`MAX_BYTES`] and [`MAX_DEPTH`].
    fn default() -> Self {
        Self { bytes: MAX_BYTES, depth: MAX_DEPTH }
    }
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The decoded value. The last one of repeated keys wins.
    pub value: Value,
    /// Errors of strict field validation: `unknown field "spec.foo"`, `duplicate field "data.a"`.
    pub findings: Vec<String>,
}

/// Error decoding a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Larger than [`Limits::bytes`].
    #[error("Request entity too large: limit is {limit}")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The body is not JSON or not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A field has a value of the wrong type.
    #[error("{0}")]
    Type(String),
}

/// Decodes a body. `schema` is the built-in type of the body with its kind; with `None` any JSON object is
/// accepted and only repeated keys are reported.
///
/// ```
/// use kubewright_schema::{Gvk, Schemas, body::{self, Format, Limits}};
///
/// let gvk = Gvk::new("", "v1", "ConfigMap");
/// let schema = Schemas::builtin().lookup(&gvk).unwrap();
/// let text = br#"{"kind": "ConfigMap", "data": {"a": "1", "a": "2"}, "foo": 1}"#;
/// let decoded = body::decode(text, Format::Json, Some((&schema, &gvk.kind)), &Limits::default())?;
/// assert_eq!(decoded.findings, [r#"duplicate field "data.a""#, r#"unknown field "foo""#]);
///
/// let wrong = br#"{"data": {"a": 1}}"#;
/// let refused = body::decode(wrong, Format::Json, Some((&schema, &gvk.kind)), &Limits::default()).unwrap_err();
/// assert_eq!(refused.to_string(), "json: cannot unmarshal number into Go struct field ConfigMap.data of type string");
/// # Ok::<(), body::BodyError>(())
/// ```
pub fn decode(
    body: &[u8],
    format: Format,
    schema: Option<(&Node, &str)>,
    limits: &Limits,
) -> Result<Decoded, BodyError> {
    if body.len() > limits.bytes {
        return Err(BodyError::TooLarge { limit: limits.bytes });
    }
    match format {
        Format::Json => json::decode(body, schema, limits),
        Format::Yaml => {
            let (value, duplicates) = yaml::decode(body, limits)?;
            let checked = check(&value, schema, limits)?;
            let findings = duplicates.into_iter().chain(checked.findings).collect();
            Ok(Decoded { value: checked.value, findings })
        }
    }
}

/// Checks a value that is already decoded, such as the result of a patch, like [`decode`] does.
pub fn check(value: &Value, schema: Option<(&Node, &str)>, limits: &Limits) -> Result<Decoded, BodyError> {
    let mut context = seed::Context::new(limits.depth);
    let value = context.run(value, schema).map_err(|_| seed::Context::depth_error())?;
    context.finish(value)
}

/// Returns the error message for findings under strict field validation.
pub fn strict_error(findings: &[String]) -> String {
    format!("strict decoding error: {}", findings.join(", "))
}

/// Returns the warnings for findings. One finding about YAML can contain several of them.
pub fn warnings(findings: &[String]) -> Vec<String> {
    findings
        .iter()
        .flat_map(|finding| match finding.strip_prefix(yaml::UNMARSHAL_ERRORS) {
            Some(lines) => lines.lines().map(|line| line.trim().to_owned()).collect(),
            None => vec![finding.clone()],
        })
        .collect()
}

/// Formats the patched object as Go prints it, for the value of a `patch` field error.
pub fn go_string(value: &Value) -> String {
    go::plain(value)
}
