//! Binding: a claim and a volume point to each other, in four writes that may be interrupted anywhere.
//!
//! The volume is written first (its `claimRef`, then its phase), then the claim (its `volumeName`, then its status). Who
//! finds a half-made binding finishes it: [`bind`] gives the writes that are still missing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
};

use super::matching;
use crate::events::Note;

/// The annotation of a claim whose binding has been completed once.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The annotation of whatever side the controller, not a user, has bound.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The annotation with the node that a scheduler chose for a claim's first consumer.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation of a provisioned volume.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// What a claim is waiting for, as far as its storage class decides it.
#[derive(Debug, Clone, Default)]
pub struct Consumer {
    /// The class binds only when a consumer is known.
    pub delayed: bool,
    /// A scheduler has chosen a node, or a pod that uses the claim runs already.
    pub chosen: bool,
    /// The node of that consumer, when it exists.
    pub node: Option<Node>,
    /// Pods that use the claim and are not scheduled.
    pub unscheduled: Vec<String>,
}

/// What is to be done for a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimStep {
    /// Bind it to the volume of this name.
    Bind(String),
    /// Make a volume for it.
    Provision,
    /// It waits: its phase is `Pending`.
    Wait(Option<Note>),
    /// Its volume is gone or another's: its phase is `Lost`. The note is for the moment of the loss.
    Lost(Note),
}

/// Plans the next step for a claim.
pub fn claim_step<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl IntoIterator<Item = &'a PersistentVolume> + Clone,
    consumer: &Consumer,
) -> ClaimStep {
    let named =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
    let find = |name: &str| volumes.clone().into_iter().find(|v| v.metadata.name.as_deref() == Some(name));
    if annotated(claim.metadata.annotations.as_ref(), BIND_COMPLETED) {
        return bound_step(claim, named.map(|name| (name, find(name))));
    }
    let Some(name) = named else {
        let delayed = consumer.delayed && !consumer.chosen;
        return match matching::best(claim, volumes, consumer.node.as_ref(), delayed) {
            Some(volume) => ClaimStep::Bind(volume.metadata.name.clone().unwrap_or_default()),
            None if delayed => ClaimStep::Wait(Some(waiting(&consumer.unscheduled))),
            None if !matching::claim_class(claim).is_empty() => ClaimStep::Provision,
            None => ClaimStep::Wait(Some(Note::normal(
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set",
            ))),
        };
    };
    let Some(volume) = find(name) else { return ClaimStep::Wait(None) };
    let taken = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some());
    if matching::is_for(volume, claim) {
        ClaimStep::Bind(name.to_owned())
    } else if taken {
        let text = format!("volume {name:?} already bound to a different claim.");
        ClaimStep::Wait(Some(Note::warning("FailedBinding", text)))
    } else if let Some(why) = matching::mismatch(volume, claim) {
        let text = format!("Cannot bind to requested volume {name:?}: {why}");
        ClaimStep::Wait(Some(Note::warning("VolumeMismatch", text)))
    } else {
        ClaimStep::Bind(name.to_owned())
    }
}

/// A claim that was bound once is bound again or lost, never rebound elsewhere.
fn bound_step(claim: &PersistentVolumeClaim, named: Option<(&str, Option<&PersistentVolume>)>) -> ClaimStep {
    let lost = |text: &str| ClaimStep::Lost(Note::warning("ClaimLost", text));
    let Some((name, volume)) = named else {
        return lost("Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    };
    let Some(volume) = volume else {
        return lost("Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    };
    let holder = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    if holder.is_none_or(|holder| holder.uid == claim.metadata.uid) {
        return ClaimStep::Bind(name.to_owned());
    }
    let text = "Two claims are bound to the same volume, this one is bound incorrectly";
    ClaimStep::Lost(Note::warning("ClaimMisbound", text))
}

fn waiting(pods: &[String]) -> Note {
    match pods {
        [] => Note::normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        [only] => Note::normal("WaitForPodScheduled", format!("waiting for pod {only} to be scheduled")),
        all => {
            let text = format!("waiting for pods {} to be scheduled", all.join(","));
            Note::normal("WaitForPodScheduled", text)
        }
    }
}

/// The writes that complete a binding, in their order. What is `None` is right already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// The volume with its `claimRef`.
    pub volume: Option<PersistentVolume>,
    /// The volume with its phase.
    pub volume_status: Option<PersistentVolume>,
    /// The claim with its `volumeName`.
    pub claim: Option<PersistentVolumeClaim>,
    /// The claim with its phase, capacity and modes.
    pub claim_status: Option<PersistentVolumeClaim>,
}

/// The writes that bind a volume and a claim to each other.
pub fn bind(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Writes {
    let mut writes = Writes::default();
    let mut bound = volume.clone();
    let spec = bound.spec.get_or_insert_default();
    let reference = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    };
    if !matching::is_for(volume, claim) {
        annotate(&mut bound.metadata.annotations, BOUND_BY_CONTROLLER);
    }
    if spec.claim_ref.as_ref().is_none_or(|held| held.uid != claim.metadata.uid) {
        spec.claim_ref = Some(reference);
        writes.volume = Some(bound.clone());
    }
    writes.volume_status = with_phase(&bound, "Bound");

    let mut bound_claim = claim.clone();
    let claim_spec = bound_claim.spec.get_or_insert_default();
    if claim_spec.volume_name.as_ref().is_none_or(String::is_empty) {
        claim_spec.volume_name.clone_from(&volume.metadata.name);
        annotate(&mut bound_claim.metadata.annotations, BOUND_BY_CONTROLLER);
    }
    annotate(&mut bound_claim.metadata.annotations, BIND_COMPLETED);
    if bound_claim != *claim {
        writes.claim = Some(bound_claim.clone());
    }
    writes.claim_status = bound_status(&bound_claim, volume);
    writes
}

/// The volume in another phase; `None` when it is in that phase.
pub fn with_phase(volume: &PersistentVolume, phase: &str) -> Option<PersistentVolume> {
    let held = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if held == Some(phase) {
        return None;
    }
    let mut changed = volume.clone();
    let status = changed.status.get_or_insert_with(PersistentVolumeStatus::default);
    status.phase = Some(phase.to_owned());
    status.message = None;
    Some(changed)
}

fn bound_status(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<PersistentVolumeClaim> {
    let offered = volume.spec.clone().unwrap_or_default();
    let mut changed = claim.clone();
    let status = changed.status.get_or_insert_with(PersistentVolumeClaimStatus::default);
    status.access_modes = offered.access_modes;
    // A claim that is bound keeps the capacity that a resize has given it.
    if status.phase.as_deref() != Some("Bound") {
        status.capacity = offered.capacity;
        status.current_volume_attributes_class_name = offered.volume_attributes_class_name;
        status.phase = Some("Bound".to_owned());
    }
    (changed.status != claim.status).then_some(changed)
}

/// The claim without a volume, in some phase; `None` when it is like that.
pub fn unbound_status(claim: &PersistentVolumeClaim, phase: &str) -> Option<PersistentVolumeClaim> {
    let mut changed = claim.clone();
    let status = changed.status.get_or_insert_with(PersistentVolumeClaimStatus::default);
    status.phase = Some(phase.to_owned());
    status.access_modes = None;
    status.capacity = None;
    status.current_volume_attributes_class_name = None;
    (changed.status != claim.status).then_some(changed)
}

/// What is to be done for a volume.
#[derive(Debug, Clone, PartialEq)]
pub enum VolumeStep {
    /// It is in this phase, and that is all.
    Phase(&'static str),
    /// Its claim is gone and it is deleted with it.
    Delete,
    /// Its claim is gone and it is emptied for the next.
    Recycle,
    /// It waits for a claim that went elsewhere: written like this, it is free again or waits for its user's claim.
    Unbind(Box<PersistentVolume>),
    /// Its claim has yet to answer.
    Leave,
}

/// Plans the next step for a volume; `claim` is the claim of the name in its `claimRef`.
pub fn volume_step(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> VolumeStep {
    let Some(spec) = &volume.spec else { return VolumeStep::Leave };
    let Some(wanted) = &spec.claim_ref else { return VolumeStep::Phase("Available") };
    let Some(uid) = wanted.uid.as_ref().filter(|uid| !uid.is_empty()) else {
        return VolumeStep::Phase("Available");
    };
    let policy = spec.persistent_volume_reclaim_policy.as_deref().unwrap_or("Retain");
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(uid)) else {
        return match policy {
            "Delete" => VolumeStep::Delete,
            "Recycle" => VolumeStep::Recycle,
            _ => VolumeStep::Phase("Released"),
        };
    };
    match claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()).filter(|name| !name.is_empty()) {
        None => VolumeStep::Leave,
        Some(name) if Some(name) == volume.metadata.name.as_ref() => VolumeStep::Phase("Bound"),
        Some(_) if policy == "Delete" && annotated(volume.metadata.annotations.as_ref(), PROVISIONED_BY) => {
            VolumeStep::Delete
        }
        Some(_) => VolumeStep::Unbind(Box::new(unbind(volume))),
    }
}

/// The volume without the claim that the controller gave it, or without the identity of the claim that its user named.
pub fn unbind(volume: &PersistentVolume) -> PersistentVolume {
    let mut free = volume.clone();
    let by_controller = free.metadata.annotations.as_mut().and_then(|map| map.remove(BOUND_BY_CONTROLLER));
    let spec = free.spec.get_or_insert_default();
    if by_controller.is_some() {
        spec.claim_ref = None;
    } else if let Some(reference) = &mut spec.claim_ref {
        reference.uid = None;
        reference.resource_version = None;
    }
    free
}

fn annotated(annotations: Option<&BTreeMap<String, String>>, key: &str) -> bool {
    annotations.is_some_and(|map| map.contains_key(key))
}

fn annotate(annotations: &mut Option<BTreeMap<String, String>>, key: &str) {
    annotations.get_or_insert_default().insert(key.to_owned(), "yes".to_owned());
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
