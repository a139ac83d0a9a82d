//! JSON patch, JSON merge patch and strategic merge patch, as functions on values.
//!
//! | Content-Type | use | for |
//! |---|---|---|
//! | `application/json-patch+json` | [`json::apply`] | everything |
//! | `application/merge-patch+json` | [`merge::apply`] | everything |
//! | `application/strategic-merge-patch+json` | [`strategic::apply`] | built-in types; custom resources answer 415 |
//!
//! Patches are applied to the stored object; decoding, defaulting and validating the result is up to the
//! caller. Errors have the messages and status codes of kube-apiserver, and its deviations from the RFCs are
//! kept: a JSON patch may `replace` a missing key.

mod error;
pub mod json;
pub mod merge;
pub mod strategic;

pub use error::PatchError;

use crate::body::{self, BodyError, Decoded, Format, Limits};

/// Decodes the body of a JSON patch, a merge patch or a strategic merge patch, with the repeated keys as
/// findings. A body that is not JSON is rejected before any other check.
pub fn decode(body: &[u8], limits: &Limits) -> Result<Decoded, PatchError> {
    body::decode(body, Format::Json, None, limits).map_err(|error| match error {
        BodyError::TooLarge { .. } => PatchError::TooLarge(error.to_string()),
        _ => PatchError::BadRequest("invalid JSON patch".to_owned()),
    })
}
