//! The verb patch, in its four forms.

use std::sync::Arc;

use super::update::Writer;
use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        json::{meta, meta_mut, text},
        schematic,
        semantics::{Manager, Patch, PatchKind},
    },
    status::Status,
};

impl Registry {
    /// Patches an object. An apply of a missing object creates it.
    pub(crate) async fn patch(
        &self,
        call: &Call<'_>,
        kind: PatchKind,
        body: &[u8],
    ) -> Result<Answer, Status> {
        let now = self.now();
        let patch = Patch {
            kind,
            body,
            validation: call.options.field_validation,
            manager: Manager {
                name: call.options.field_manager.as_str().into(),
                subresource: call.subresource,
                now: &now,
            },
            force: call.options.force.unwrap_or(false),
        };
        let exists = self.storage.get(&call.ty.storage, &call.key(call.name)).is_some();
        if !exists && kind == PatchKind::Apply && call.subresource.is_empty() {
            let decoded = schematic::patch(call.ty, None, &patch)?;
            for warning in decoded.warnings {
                call.warn(warning);
            }
            let mut object = decoded.object;
            super::check_target(call, &mut object)?;
            super::check_name(call, text(meta(&object), "name"))?;
            let object = self.create_object(call, object, Writer::Apply).await?;
            return Ok(Answer::Stored { code: 201, ty: Arc::clone(call.ty), object });
        }
        let object = self
            .change(
                call,
                &mut |current| {
                    let decoded = schematic::patch(call.ty, Some(current), &patch)?;
                    for warning in decoded.warnings {
                        call.warn(warning);
                    }
                    let mut object = decoded.object;
                    // A patch that leaves the version alone does not check it.
                    if text(meta(&object), "resourceVersion") == text(meta(current), "resourceVersion") {
                        meta_mut(&mut object).remove("resourceVersion");
                    }
                    super::check_target(call, &mut object)?;
                    super::check_name(call, text(meta(&object), "name"))?;
                    Ok(object)
                },
                if kind == PatchKind::Apply { Writer::Apply } else { Writer::Patch },
            )
            .await?;
        Ok(Answer::Stored { code: 200, ty: Arc::clone(call.ty), object })
    }
}
