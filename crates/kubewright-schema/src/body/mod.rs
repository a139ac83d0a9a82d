//! From a request body to a value, with everything that field validation has to say about it.
//!
//! A body decodes even where it repeats keys or has unknown fields; those are reported beside the value, in the
//! order in which they stand in the body, and the caller refuses (`Strict`), warns (`Warn`) or stays silent
//! (`Ignore`). A body with a value of the wrong type does not decode at all.
//!
//! Custom resources are decoded without a schema: their unknown fields are what
//! [`prune`](super::prune::prune) takes away.

mod json;
mod seed;
mod types;
mod yaml;

use serde_json::Value;

use super::{Node, go};

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`, and the body of an apply.
    Yaml,
}

/// The largest body that is read: 3 MiB, as upstream has it.
pub const MAX_BYTES: usize = 3 << 20;

/// How deep objects and lists may nest, wherever a body, a patch or a stored object is read. CRDs nest deeper than the
/// 128 levels of `serde_json`; much deeper, and the stack of a thread is too small to drop what was read.
pub const MAX_DEPTH: usize = 250;

/// What a body may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its size.
    pub bytes: usize,
    /// How deep objects and lists may nest.
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
    /// What it says. Of repeated keys the last one counts.
    pub value: Value,
    /// What strict field validation objects to: `unknown field "spec.foo"`, `duplicate field "data.a"`.
    pub findings: Vec<String>,
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Larger than [`Limits::bytes`].
    #[error("Request entity too large: limit is {limit}")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Not JSON or not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A field holds a value that its type cannot.
    #[error("{0}")]
    Type(String),
}

/// Decodes a body. `schema` is the built-in type it must fit, with its kind; `None` takes any JSON object apart
/// only for repeated keys.
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

/// The same for a value that is already decoded, such as the result of a patch.
pub fn check(value: &Value, schema: Option<(&Node, &str)>, limits: &Limits) -> Result<Decoded, BodyError> {
    let mut context = seed::Context::new(limits.depth);
    let value = context.run(value, schema).map_err(|_| seed::Context::depth_error())?;
    context.finish(value)
}

/// The message of a refusal under strict field validation.
pub fn strict_error(findings: &[String]) -> String {
    format!("strict decoding error: {}", findings.join(", "))
}

/// The texts of the warnings for findings; those of YAML come several to one finding.
pub fn warnings(findings: &[String]) -> Vec<String> {
    findings
        .iter()
        .flat_map(|finding| match finding.strip_prefix(yaml::UNMARSHAL_ERRORS) {
            Some(lines) => lines.lines().map(|line| line.trim().to_owned()).collect(),
            None => vec![finding.clone()],
        })
        .collect()
}

/// The value of a `patch` field error: how Go prints the patched object.
pub fn printed(value: &Value) -> String {
    go::plain(value)
}
