//! Interface of schema-dependent operations: decoding, patches, server-side apply.
//!
//! The verbs handle objects as JSON. Operations that need the schema of a type (known fields, merging of
//! lists, field managers) are behind [`Semantics`], so that the registry does not depend on them.
//! [`Schematic`](super::schematic::Schematic) is the default of a server.

use std::borrow::Cow;

use super::descriptor::{Descriptor, Json};
use crate::status::Status;

/// Encoding of bodies and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
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

/// Field manager of a write.
#[derive(Debug, Clone)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: Cow<'a, str>,
    /// The subresource of the write; empty for the main resource.
    pub subresource: &'a str,
    /// The time of the write, in RFC 3339.
    pub now: &'a str,
}

/// Decoded request body with its warnings.
#[derive(Debug)]
pub struct Decoded {
    /// The object, without unknown fields.
    pub object: Json,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Patch request.
#[derive(Debug)]
pub struct Patch<'a> {
    /// The patch type.
    pub kind: PatchKind,
    /// The request body.
    pub body: &'a [u8],
    /// The handling of unknown fields.
    pub validation: FieldValidation,
    /// The field manager.
    pub manager: Manager<'a>,
    /// Whether to take fields over from other appliers.
    pub force: bool,
}

/// Schema-dependent operations of the registry.
///
/// All functions are pure: no storage, no clock, no randomness.
pub trait Semantics: Send + Sync + 'static {
    /// Decodes a body as an object of the type: checks types, drops unknown fields, reports duplicates. The
    /// body's `kind` and `apiVersion` were checked before.
    fn decode(
        &self,
        ty: &Descriptor,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded, Status>;

    /// Canonicalises an object: no nulls, no empty lists unless significant, and the fields that Go always
    /// encodes.
    fn canonicalise(&self, ty: &Descriptor, object: &mut Json);

    /// Drops values that do not survive storage: empty lists become null.
    fn at_rest(&self, ty: &Descriptor, object: &mut Json);

    /// Returns the empty object of a type, without metadata, as in bookmarks.
    fn empty(&self, ty: &Descriptor) -> Json;

    /// Applies a patch to `current` (`None` if an apply creates). `current` has `kind` and `apiVersion`, and
    /// so must the result.
    fn patch(&self, ty: &Descriptor, current: Option<&Json>, patch: &Patch<'_>) -> Result<Decoded, Status>;

    /// Records the changes of a create or update in `managedFields`. `before` is the stored object; an
    /// unchanged object must stay unchanged.
    fn track(&self, ty: &Descriptor, before: Option<&Json>, after: &mut Json, manager: &Manager<'_>);

    /// Returns the `managedFields` that [`Self::track`] would write to a new object, as JSON text, if that is
    /// possible without building a tree; the object is not changed. `None` if it has to be tracked.
    fn track_created(&self, ty: &Descriptor, object: &mut Json, manager: &Manager<'_>) -> Option<String> {
        let _ = (ty, object, manager);
        None
    }

    /// Turns a write into a no-op if its only effect would be new times in `managedFields`.
    fn keep_times(&self, before: &Json, after: &mut Json);
}
