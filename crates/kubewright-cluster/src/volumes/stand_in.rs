//! The provisioner by itself, for clusters whose claims are bound by somebody else's controllers.
//!
//! The control plane of such a cluster names a claim's provisioner on the claim and waits for it to make a volume; and it
//! leaves a volume that is to be deleted to the provisioner that made it. Both are done here, for every provisioner.

use k8s_openapi::api::{
    core::v1::{Node, PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kubewright::{
    Error, ObjectKey,
    controller::{Action, Context, Controller},
    manager::ManagerBuilder,
};

use super::{
    binding::{PROVISIONED_BY, SELECTED_NODE},
    matching, provisioner,
};
use crate::{objects::annotation, writes::ignore_already_exists};

/// Adds the controllers that make volumes for claims, and delete those whose claim is gone, to a manager.
pub fn register(manager: ManagerBuilder) -> ManagerBuilder {
    manager
        .controller(Controller::of::<PersistentVolumeClaim>().named("provisioner").reconcile(provide))
        .controller(Controller::of::<PersistentVolume>().named("volume-deleter").reconcile(reclaim))
}

async fn provide(cx: Context<PersistentVolumeClaim>) -> Result<Action, Error> {
    let Some(claim) = cx.object()? else { return Ok(Action::done()) };
    let announced = annotation(&claim.metadata, provisioner::STORAGE_PROVISIONER[0]);
    let bound = claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_some());
    let wanted = announced.is_some_and(|name| name != provisioner::NO_PROVISIONER);
    if !wanted || bound || claim.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let class = ObjectKey::cluster(matching::claim_class(&claim));
    let Some(class) = cx.get::<StorageClass>(&class).await? else { return Ok(Action::done()) };
    let node = match annotation(&claim.metadata, SELECTED_NODE) {
        Some(name) => cx.get::<Node>(&ObjectKey::cluster(name)).await?,
        None if provisioner::waits_for_consumer(&class) => return Ok(Action::done()),
        None => None,
    };
    ignore_already_exists(cx.client().create(&provisioner::volume(&claim, &class, node.as_deref())).await)?;
    Ok(Action::done())
}

async fn reclaim(cx: Context<PersistentVolume>) -> Result<Action, Error> {
    let Some(volume) = cx.object()? else { return Ok(Action::done()) };
    let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let ours = annotation(&volume.metadata, PROVISIONED_BY).is_some();
    if released && ours && policy == Some("Delete") && volume.metadata.deletion_timestamp.is_none() {
        cx.delete(&*volume).await?;
    }
    Ok(Action::done())
}
