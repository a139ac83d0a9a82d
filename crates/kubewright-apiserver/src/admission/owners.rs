//! `OwnerReferencesPermissionEnforcement`: changing owner references requires permission to delete the object, and blocking
//! the deletion of an owner that to update its finalizers.
//!
//! Off unless told to. Operators meet it on clusters that are stricter than most: one that sets `blockOwnerDeletion` needs
//! the right to update the finalizers of the owner.

use serde_json::Value;

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    authz::Access,
    registry::{
        descriptor::Json,
        json::{list, meta, text},
    },
    status::Status,
};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnerReferences;

fn owners(object: &Json) -> &[Value] {
    list(meta(object), "ownerReferences")
}

fn blocks(owner: &Value) -> bool {
    owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or_default()
}

impl OwnerReferences {
    fn may(context: &Context<'_>, attributes: &Attributes<'_>, access: &Access<'_>) -> Result<(), String> {
        let decision = context.authorize(attributes.call.user, access);
        if decision.allowed { Ok(()) } else { Err(format!("{}, <nil>", decision.reason)) }
    }

    /// Returns whether the user may update the finalizers of an owner.
    fn may_block(context: &Context<'_>, attributes: &Attributes<'_>, owner: &Json) -> Result<(), String> {
        let (version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
        let types = context.objects.types();
        let ty = types.all().iter().find(|ty| ty.kind == kind && ty.api_version() == version);
        let ty = ty.ok_or_else(|| {
            format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} Kind \
                 {kind}: no matches for kind {kind:?} in version {version:?}"
            )
        })?;
        let access = Access {
            verb: "update",
            group: &ty.group,
            version: &ty.version,
            resource: &ty.plural,
            subresource: "finalizers",
            namespace: if ty.namespaced() { attributes.namespace() } else { "" },
            name: text(owner, "name"),
            ..Access::default()
        };
        Self::may(context, attributes, &access).map_err(|why| {
            format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {why}"
            )
        })
    }
}

impl Plugin for OwnerReferences {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let ty = attributes.ty();
        let is_pod_status =
            ty.group.is_empty() && ty.plural == "pods" && attributes.call.subresource == "status";
        let (new, old) = (owners(&attributes.object), attributes.old.map_or(&[][..], owners));
        if is_pod_status || attributes.object.is_empty() || new == old {
            return Ok(());
        }
        if attributes.operation != Operation::Create {
            let access = Access {
                verb: "delete",
                group: &ty.group,
                version: &ty.version,
                resource: &ty.plural,
                subresource: attributes.call.subresource,
                namespace: attributes.namespace(),
                name: attributes.name(),
                ..Access::default()
            };
            Self::may(context, attributes, &access).map_err(|why| {
                attributes.forbid(&format!("cannot set an ownerRef on a resource you can't delete: {why}"))
            })?;
        }
        let blocked_before =
            |owner: &Value| old.iter().any(|other| other.get("uid") == owner.get("uid") && blocks(other));
        let blocking = new.iter().filter(|owner| blocks(owner) && !blocked_before(owner));
        for owner in blocking.filter_map(Value::as_object) {
            Self::may_block(context, attributes, owner).map_err(|why| attributes.forbid(&why))?;
        }
        Ok(())
    }
}
