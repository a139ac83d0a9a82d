//! What a `DaemonSet` says about itself.

use k8s_openapi::api::apps::v1::DaemonSetStatus;

use super::{super::step::Step, Pass, placement};
use crate::{objects::omit_zero, pod};

/// The write of the status, if it says anything new.
pub(super) fn step(pass: &Pass<'_>, collisions: i32, before: &DaemonSetStatus) -> Option<Step> {
    let status = status(pass, collisions, before);
    (status != *before || pass.set.status.is_none()).then(|| {
        let mut set = pass.set.clone();
        set.status = Some(status);
        Step::Status(set.into())
    })
}

fn status(pass: &Pass<'_>, collisions: i32, before: &DaemonSetStatus) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: pass.set.metadata.generation,
        collision_count: omit_zero(collisions),
        conditions: before.conditions.clone(),
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    for node in pass.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let here = pass.by_node.get(name).map(Vec::as_slice).unwrap_or_default();
        if !placement::decide(&pass.spec, node).0 {
            status.number_misscheduled += i32::from(!here.is_empty());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(first) = here.first() else { continue };
        status.current_number_scheduled += 1;
        if pod::is_ready(first) {
            status.number_ready += 1;
            available += i32::from(pass.is_available(first));
        }
        updated += i32::from(pass.is_updated(first));
    }
    status.number_available = omit_zero(available);
    status.updated_number_scheduled = omit_zero(updated);
    status.number_unavailable = omit_zero(status.desired_number_scheduled - available);
    status
}
