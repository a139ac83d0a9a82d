//! Formats, patches and field managers: the terms in which the verbs use [`schematic`](super::schematic).

use std::borrow::Cow;

use super::descriptor::Json;

/// Encoding of bodies and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// Handling of unknown and duplicate fields (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them and warns: the default.
    #[default]
    Warn,
    /// Rejects the request.
    Strict,
}

/// Patch types, by media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/apply-patch+yaml` (and `+json`, `+cbor` where known)
    Apply,
}

/// Field manager of a write.
#[derive(Debug, Clone)]
pub(crate) struct Manager<'a> {
    /// The field manager's name.
    pub(crate) name: Cow<'a, str>,
    /// The subresource of the write; empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The time of the write, in RFC 3339.
    pub(crate) now: &'a str,
}

/// Decoded request body with its warnings.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The object, without unknown fields.
    pub(crate) object: Json,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// Patch request.
#[derive(Debug)]
pub(crate) struct Patch<'a> {
    /// The patch type.
    pub(crate) kind: PatchKind,
    /// The request body.
    pub(crate) body: &'a [u8],
    /// The handling of unknown fields.
    pub(crate) validation: FieldValidation,
    /// The field manager.
    pub(crate) manager: Manager<'a>,
    /// Whether to take fields over from other appliers.
    pub(crate) force: bool,
}
