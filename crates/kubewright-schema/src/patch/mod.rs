//! The patch types other than apply: values in, value out.
//!
//! | Content-Type | use | for |
//! |---|---|---|
//! | `application/json-patch+json` | [`json::apply`] | everything |
//! | `application/merge-patch+json` | [`merge::apply`] | everything |
//! | `application/strategic-merge-patch+json` | [`strategic::apply`] | built-in types; custom resources answer 415 |
//!
//! Patches are merged into the object as it is stored; decoding, defaulting and validation of the result are the
//! caller's. Errors carry the words and the status of the real API server, oddities included: a JSON patch may
//! `replace` a key that is not there.

mod error;
pub mod json;
pub mod merge;
pub mod strategic;

pub use error::PatchError;

use crate::body::{self, BodyError, Decoded, Format, Limits};

/// Reads the body of a JSON patch, a merge patch or a strategic merge patch, with the repeated keys that field
/// validation objects to. What is no JSON is refused before anything else is looked at.
pub fn decode(body: &[u8], limits: &Limits) -> Result<Decoded, PatchError> {
    body::decode(body, Format::Json, None, limits).map_err(|error| match error {
        BodyError::TooLarge { .. } => PatchError::TooLarge(error.to_string()),
        _ => PatchError::BadRequest("invalid JSON patch".to_owned()),
    })
}
