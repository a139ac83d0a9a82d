//! To whom the volume claims of a stateful pod belong, by the set's retention policy.
//!
//! A claim that is to go with the set is owned by the set; one that is to go when its pod is scaled away is owned by
//! that pod, from the moment it is condemned. The garbage collector does the rest.

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::{
    super::step::{Note, Step},
    Pass, identity,
};
use crate::objects::controller_reference;

/// Who should own the claims of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Set,
    Pod,
}

/// What the policy says goes: with the set, and with scaling down.
fn policy(pass: &Pass<'_>) -> (bool, bool) {
    let policy = pass.spec.persistent_volume_claim_retention_policy.clone().unwrap_or_default();
    let deletes = |word: Option<String>| word.as_deref() == Some("Delete");
    (deletes(policy.when_deleted), deletes(policy.when_scaled))
}

fn owner(pass: &Pass<'_>, pod: &Pod) -> Owner {
    let wanted = identity::ordinal(pass.set, pod)
        .is_some_and(|ordinal| identity::range(&pass.spec).contains(&ordinal));
    match policy(pass) {
        (_, true) if !wanted => Owner::Pod,
        (true, _) => Owner::Set,
        _ => Owner::Nobody,
    }
}

/// A claim that is about to be created for a pod that is wanted.
pub(super) fn owned_from_birth(pass: &Pass<'_>, mut claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
    if policy(pass).0 {
        let reference = controller_reference::<StatefulSet>(&pass.set.metadata);
        claim.metadata.owner_references.get_or_insert_default().push(reference);
    }
    claim
}

fn refers<K: k8s_openapi::Resource>(reference: &OwnerReference, object: &ObjectMeta) -> bool {
    reference.api_version == K::API_VERSION
        && reference.kind == K::KIND
        && Some(&reference.name) == object.name.as_ref()
}

/// Whether a claim that a new pod would use still belongs to an earlier pod of the same name.
pub(super) fn are_anothers(pass: &Pass<'_>, pod: &Pod) -> bool {
    if !policy(pass).1 {
        return false;
    }
    let named = identity::claims(pass.set, &pass.spec, pod);
    named.iter().filter_map(|claim| pass.claims.get(claim.metadata.name.as_deref()?)).any(|claim| {
        claim
            .metadata
            .owner_references
            .iter()
            .flatten()
            .any(|owner| refers::<Pod>(owner, &pod.metadata) && Some(&owner.uid) != pod.metadata.uid.as_ref())
    })
}

/// The updates that make the claims of a pod belong to whom they should.
pub(super) fn settle(pass: &Pass<'_>, pod: &Pod) -> Vec<Step> {
    let wanted = owner(pass, pod);
    let mut steps = Vec::new();
    for named in identity::claims(pass.set, &pass.spec, pod) {
        let name = named.metadata.name.unwrap_or_default();
        if let Some(claim) = pass.claims.get(name.as_str()) {
            steps.extend(settle_one(pass.set, pod, claim, wanted));
        }
    }
    steps
}

fn settle_one(set: &StatefulSet, pod: &Pod, claim: &PersistentVolumeClaim, wanted: Owner) -> Vec<Step> {
    let known: Vec<OwnerReference> = claim.metadata.owner_references.clone().unwrap_or_default();
    let of_set = |owner: &OwnerReference| refers::<StatefulSet>(owner, &set.metadata);
    let of_pod = |owner: &OwnerReference| refers::<Pod>(owner, &pod.metadata);
    let stale = |owner: &OwnerReference| {
        (of_set(owner) && Some(&owner.uid) != set.metadata.uid.as_ref())
            || (of_pod(owner) && Some(&owner.uid) != pod.metadata.uid.as_ref())
    };
    // The garbage collector is about to take it; nobody should keep it from doing so.
    if known.iter().any(stale) {
        return Vec::new();
    }
    let mut owners: Vec<OwnerReference> =
        known.iter().filter(|owner| !of_set(owner) && !of_pod(owner)).cloned().collect();
    let foreign = owners.iter().any(|owner| owner.controller == Some(true));
    let mut steps = Vec::new();
    if foreign && wanted != Owner::Nobody {
        let message = format!(
            "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, the retention \
             policy is ignored for this claim",
            claim.metadata.name.as_deref().unwrap_or_default()
        );
        steps.push(Step::Say(Note::warning("ConflictingController", message)));
    } else {
        match wanted {
            Owner::Nobody => {}
            Owner::Set => owners.push(controller_reference::<StatefulSet>(&set.metadata)),
            Owner::Pod => owners.push(controller_reference::<Pod>(&pod.metadata)),
        }
    }
    if owners == known {
        // A conflict that changes nothing is not worth an event in every pass.
        return Vec::new();
    }
    let mut claim = claim.clone();
    claim.metadata.owner_references = (!owners.is_empty()).then_some(owners);
    steps.push(Step::Update(claim.into()));
    steps
}
