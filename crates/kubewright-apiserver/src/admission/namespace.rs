//! `NamespaceLifecycle`: nothing new where there is no namespace, or where it is going away.

use kubewright_core::ObjectKey;
use serde_json::json;

use super::{Attributes, Operation, Plugin};
use crate::{
    registry::Registry,
    status::{About, Status},
};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.ty().namespaced() {
            return Ok(());
        }
        let namespace = attributes.call.namespace;
        let Some(found) = registry.storage.get("namespaces", &ObjectKey::cluster(namespace)) else {
            return Err(Status::not_found(About { group: "", kind: "namespaces", name: namespace }));
        };
        if found.meta.deletion.is_none() {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(attributes.forbid(&why).causes(vec![json!({
            "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        })]))
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation == Operation::Delete
            && attributes.is("", "namespaces")
            && IMMORTAL.contains(&attributes.call.name)
        {
            return Err(attributes.forbid("this namespace may not be deleted"));
        }
        Ok(())
    }
}
