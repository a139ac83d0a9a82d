//! Where the meaning of fields plugs in: schemas, patches, server-side apply.
//!
//! The verbs know objects as JSON. Whatever needs the schema of a type, which fields exist, how lists merge, who owns
//! what, is behind [`Semantics`], so that the registry can be read without it. [`Schematic`](super::schematic::Schematic)
//! is what a server uses unless told otherwise.

use std::borrow::Cow;

use super::descriptor::{Descriptor, Json};
use crate::status::Status;

/// How bodies and answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
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
pub enum PatchKind {
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
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: Cow<'a, str>,
    /// The subresource it writes through; empty for the object itself.
    pub subresource: &'a str,
    /// The moment, as `metadata` writes it.
    pub now: &'a str,
}

/// A request body as an object, and what the client should be told about it.
#[derive(Debug)]
pub struct Decoded {
    /// The object, without unknown fields.
    pub object: Json,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// A patch to apply.
#[derive(Debug)]
pub struct Patch<'a> {
    /// Which form it has.
    pub kind: PatchKind,
    /// Its bytes, as sent.
    pub body: &'a [u8],
    /// What to do about unknown fields.
    pub validation: FieldValidation,
    /// Who applies it.
    pub manager: Manager<'a>,
    /// Take fields over from other appliers.
    pub force: bool,
}

/// What the registry asks of whoever knows schemas.
///
/// All functions are pure: no storage, no clock, no randomness.
pub trait Semantics: Send + Sync + 'static {
    /// Turns a body into an object of the type: checks types, drops unknown fields, complains about duplicates. The
    /// body's `kind` and `apiVersion` have been checked already.
    fn decode(
        &self,
        ty: &Descriptor,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded, Status>;

    /// Brings an object into the form in which Go's structs print it: no nulls, no empty lists where they mean nothing,
    /// and fields that are printed even when nothing was said.
    fn canonicalise(&self, ty: &Descriptor, object: &mut Json);

    /// Drops what does not survive storage: of an empty list nothing is left.
    fn at_rest(&self, ty: &Descriptor, object: &mut Json);

    /// The object of a type that says nothing, without metadata: what bookmarks carry.
    fn empty(&self, ty: &Descriptor) -> Json;

    /// The object that a patch makes of `current` (`None` when an apply creates). `current` has `kind` and
    /// `apiVersion`, and so must the result.
    fn patch(&self, ty: &Descriptor, current: Option<&Json>, patch: &Patch<'_>) -> Result<Decoded, Status>;

    /// Records in `managedFields` what a create or update changed. `before` is the stored object; an unchanged object
    /// must stay unchanged.
    fn track(&self, ty: &Descriptor, before: Option<&Json>, after: &mut Json, manager: &Manager<'_>);

    /// What [`Self::track`] would write into a new object, as the text of its `managedFields`, where that is found without
    /// making a tree of it; the object is only looked at. `None` where it is not: then the object has to be tracked.
    fn track_created(&self, ty: &Descriptor, object: &mut Json, manager: &Manager<'_>) -> Option<String> {
        let _ = (ty, object, manager);
        None
    }

    /// Makes a write whose only effect would be new times in `managedFields` no write at all.
    fn keep_times(&self, before: &Json, after: &mut Json);
}
