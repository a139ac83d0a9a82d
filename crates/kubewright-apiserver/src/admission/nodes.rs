//! `TaintNodesByCondition`: a new node is not ready until something says so.

use serde_json::json;

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    registry::json::{list, object_mut, objects, text},
    status::Status,
};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaintNodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Plugin for TaintNodes {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn admit(&self, _: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "nodes") {
            return Ok(());
        }
        let spec = object_mut(&mut attributes.object, "spec");
        if !objects(spec, "taints").any(|t| text(t, "key") == NOT_READY && text(t, "effect") == "NoSchedule")
        {
            let mut taints = list(spec, "taints").to_vec();
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            spec.insert("taints".into(), taints.into());
        }
        Ok(())
    }
}
