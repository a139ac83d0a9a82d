//! What a `StatefulSet` says about itself.

use k8s_openapi::api::{apps::v1::StatefulSetStatus, core::v1::Pod};

use super::{
    super::step::{Object, Step},
    Pass, REVISION,
};
use crate::{
    objects::{self, count, omit_zero},
    pod,
};

/// The write of the status, if it says anything new.
pub(super) fn step(
    pass: &Pass<'_>,
    all: &[Pod],
    collisions: i32,
    before: &StatefulSetStatus,
) -> Option<Step> {
    let status = status(pass, all, collisions, before);
    (status != *before).then(|| {
        let mut set = pass.set.clone();
        set.status = Some(status);
        Step::Status(set.into())
    })
}

fn status(pass: &Pass<'_>, all: &[Pod], collisions: i32, before: &StatefulSetStatus) -> StatefulSetStatus {
    let created: Vec<&Pod> = all.iter().filter(|pod| !pod::phase(pod).is_empty()).collect();
    let ready = count(created.iter().filter(|pod| pod::phase(pod) == "Running" && pod::is_ready(pod)));
    let available =
        count(created.iter().filter(|pod| {
            pod::phase(pod) == "Running" && pod::is_available(pod, pass.min_ready(), pass.now)
        }));
    let leaving: Vec<&str> = pass.plan.steps.iter().filter_map(deleted_pod).collect();
    let of = |revision: &Option<String>| {
        let stays = |pod: &&&Pod| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            !pod::is_terminating(pod) && !leaving.contains(&name)
        };
        let same = |pod: &&&Pod| objects::label(&pod.metadata, REVISION) == revision.as_deref();
        count(created.iter().filter(stays).filter(same))
    };
    let mut status = StatefulSetStatus {
        observed_generation: pass.set.metadata.generation,
        replicas: count(&created),
        ready_replicas: omit_zero(ready),
        available_replicas: Some(available),
        current_replicas: omit_zero(of(&pass.current.metadata.name)),
        updated_replicas: omit_zero(of(&pass.update.metadata.name)),
        current_revision: pass.current.metadata.name.clone(),
        update_revision: pass.update.metadata.name.clone(),
        collision_count: Some(collisions),
        conditions: before.conditions.clone(),
    };
    let desired = pass.spec.replicas.unwrap_or(1);
    if status.updated_replicas.unwrap_or(0) == desired && ready == desired && status.replicas == desired {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}

fn deleted_pod(step: &Step) -> Option<&str> {
    match step {
        Step::Delete(object @ Object::Pod(_)) => Some(object.name()),
        _ => None,
    }
}
