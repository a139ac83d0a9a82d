//! Formats, patches and field managers: the terms in which the verbs use [`schematic`](super::schematic).

use std::borrow::Cow;

use super::descriptor::Json;

/// How bodies and answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// What to do about unknown and duplicate fields (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn: the default.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// The media types of patches.
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

/// Who writes, for `managedFields`.
#[derive(Debug, Clone)]
pub(crate) struct Manager<'a> {
    /// The field manager's name.
    pub(crate) name: Cow<'a, str>,
    /// The subresource it writes through; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The moment, as `metadata` writes it.
    pub(crate) now: &'a str,
}

/// A request body as an object, and what the client should be told about it.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The object, without unknown fields.
    pub(crate) object: Json,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// A patch to apply.
#[derive(Debug)]
pub(crate) struct Patch<'a> {
    /// Which form it has.
    pub(crate) kind: PatchKind,
    /// Its bytes, as sent.
    pub(crate) body: &'a [u8],
    /// What to do about unknown fields.
    pub(crate) validation: FieldValidation,
    /// Who applies it.
    pub(crate) manager: Manager<'a>,
    /// Take fields over from other appliers.
    pub(crate) force: bool,
}
