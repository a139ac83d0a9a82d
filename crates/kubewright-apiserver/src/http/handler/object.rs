//! Request bodies as objects.

use std::borrow::Cow;

use super::{
    super::{
        decode,
        negotiate::{self, Format},
    },
    HandledRequest,
};
use crate::{
    registry::{
        actions::scale_type,
        call::Call,
        descriptor::{Descriptor, Json},
        schematic,
    },
    schema::{Gvk, Schemas},
    status::Status,
};

impl HandledRequest<'_> {
    /// Decodes the body into an object of the kind that the request takes.
    pub(super) fn object(&self, call: &Call<'_>) -> Result<Json, Status> {
        let (kind, version) = body_kind(call.ty, call.subresource);
        let (body, format) = self.text(&kind, &version, is_builtin(call.ty))?;
        let check_first = || {
            let said = decode::type_meta(&kind, &body, format)?;
            decode::check_kind(call.ty, &kind, &version, &said)
        };
        let own = call.ty.has_verb("get")
            && matches!(
                call.subresource,
                "" | "status" | "ephemeralcontainers" | "resize" | "approval" | "finalize"
            );
        let typed = match call.subresource {
            "scale" => Some(Cow::Owned(scale_type(call.ty)?)),
            _ => own.then(|| Cow::Borrowed(&**call.ty)),
        };
        let mut object = if let Some(ty) = typed {
            let decode = || schematic::decode(&ty, &body, format, call.options.field_validation);
            // A body of a built-in type is decoded once, and its kind checked afterwards. A body that cannot be
            // decoded may be of another type, which is then the error to report.
            let decoded = if ty.custom.is_none() && ty.kind == kind {
                match decode() {
                    Ok(decoded) => {
                        let said = decode::TypeMeta::of(&decoded.object);
                        decode::check_kind(call.ty, &kind, &version, &said)?;
                        decoded
                    }
                    Err(refusal) => return check_first().and(Err(refusal)),
                }
            } else {
                check_first()?;
                decode()?
            };
            for warning in decoded.warnings {
                call.warn(warning);
            }
            decoded.object
        } else {
            check_first()?;
            decode::plain(&kind, &body, format)?
        };
        decode::check_metadata(&kind, &object)?;
        // A custom resource keeps the kind of the body, for validation to report.
        let own = call.ty.custom.is_some() && call.subresource != "scale";
        if !own || !object.contains_key("kind") {
            object.insert("kind".into(), kind.into());
        }
        object.insert("apiVersion".into(), version.into());
        Ok(object)
    }

    /// Returns the body as text and its format; protobuf is converted to JSON.
    pub(super) fn text(
        &self,
        kind: &str,
        api_version: &str,
        protobuf: bool,
    ) -> Result<(Cow<'_, [u8]>, Format), Status> {
        if protobuf && negotiate::is_protobuf(self.content_type()) {
            return Ok((Cow::Owned(decode::protobuf(kind, api_version, self.body)?), Format::Json));
        }
        Ok((Cow::Borrowed(self.body), negotiate::body_format(self.content_type())?))
    }
}

/// Returns whether a type has a Go type, and with it a protobuf form.
pub(super) fn is_builtin(ty: &Descriptor) -> bool {
    let gvk = Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref());
    Schemas::builtin().definition_of(&gvk).is_some()
}

/// Returns kind and API version that a body must have.
fn body_kind(ty: &Descriptor, subresource: &str) -> (String, String) {
    match ty.subresource(subresource) {
        Some(sub) if !sub.group.is_empty() => {
            (sub.kind.to_string(), format!("{}/{}", sub.group, sub.version))
        }
        Some(sub) => (sub.kind.to_string(), ty.api_version()),
        None => (ty.kind.to_string(), ty.api_version()),
    }
}
