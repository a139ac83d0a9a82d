//! What is in use stays: finalizers on claims that pods use and on volumes that claims use.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod, Volume},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};

use crate::pod;

/// The finalizer of claims.
pub const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
/// The finalizer of volumes.
pub const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// The claim with the finalizer that it should have or lose, given the pods of its namespace; `None` when it is right.
pub fn claim(claim: &PersistentVolumeClaim, pods: &[&Pod]) -> Option<PersistentVolumeClaim> {
    // A kubelet does not start a pod whose claim is being deleted, so only pods that have a node can hold it.
    let used = || pods.iter().any(|pod| pod::node(pod).is_some() && uses(pod, claim, !shut_down(pod)));
    let mut changed = claim.clone();
    toggle(&mut changed.metadata, CLAIM_FINALIZER, used).then_some(changed)
}

/// The volume with the finalizer that it should have or lose; `None` when it is right.
pub fn volume(volume: &PersistentVolume) -> Option<PersistentVolume> {
    let bound = || volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    let mut changed = volume.clone();
    toggle(&mut changed.metadata, VOLUME_FINALIZER, bound).then_some(changed)
}

/// Adds a finalizer to a living object, takes it from a dying one that is not used; says whether anything changed.
fn toggle(meta: &mut ObjectMeta, finalizer: &str, used: impl FnOnce() -> bool) -> bool {
    let held = meta.finalizers.as_ref().is_some_and(|list| list.iter().any(|f| f == finalizer));
    match (meta.deletion_timestamp.is_some(), held) {
        (false, false) => meta.finalizers.get_or_insert_default().push(finalizer.to_owned()),
        (true, true) if !used() => {
            meta.finalizers.get_or_insert_default().retain(|held| held != finalizer);
        }
        _ => return false,
    }
    true
}

/// The claim with a true `Unused` condition; `None` when it has one. Only bound claims have the condition.
pub fn unused(claim: &PersistentVolumeClaim, pods: &[&Pod], now: Timestamp) -> Option<PersistentVolumeClaim> {
    let status = claim.status.as_ref()?;
    if claim.metadata.deletion_timestamp.is_some() || status.phase.as_deref() != Some("Bound") {
        return None;
    }
    let used = pods.iter().any(|pod| !pod::is_terminal(pod) && uses(pod, claim, true));
    let (state, reason, message) = if used {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    } else {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    };
    let held = status.conditions.iter().flatten().find(|condition| condition.type_ == "Unused");
    if held.is_some_and(|condition| condition.status == state) {
        return None;
    }
    let wanted = PersistentVolumeClaimCondition {
        last_probe_time: None,
        last_transition_time: Some(Time(now)),
        message: Some(message.to_owned()),
        reason: Some(reason.to_owned()),
        status: state.to_owned(),
        type_: "Unused".to_owned(),
    };
    let mut changed = claim.clone();
    let conditions = changed.status.get_or_insert_default().conditions.get_or_insert_default();
    match conditions.iter_mut().find(|condition| condition.type_ == "Unused") {
        Some(condition) => *condition = wanted,
        None => conditions.push(wanted),
    }
    Some(changed)
}

/// The claims that a pod names, by name.
pub fn claims_of(pod: &Pod) -> impl Iterator<Item = String> + '_ {
    let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
    volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(ephemeral_claim(pod, volume)),
        (None, None) => None,
    })
}

fn uses(pod: &Pod, claim: &PersistentVolumeClaim, ephemeral_too: bool) -> bool {
    let Some(name) = &claim.metadata.name else { return false };
    let mut volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
    pod.metadata.namespace == claim.metadata.namespace
        && volumes.any(|volume| match &volume.persistent_volume_claim {
            Some(source) => source.claim_name == *name,
            // An ephemeral claim belongs to its pod; one of that name that does not is somebody else's.
            None => {
                ephemeral_too
                    && volume.ephemeral.is_some()
                    && ephemeral_claim(pod, volume) == *name
                    && claim
                        .metadata
                        .owner_references
                        .iter()
                        .flatten()
                        .any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref())
            }
        })
}

fn ephemeral_claim(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", pod.metadata.name.as_deref().unwrap_or_default(), volume.name)
}

/// A pod that its kubelet is done with, or that was deleted by force.
fn shut_down(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-08-01T00:00:00Z".parse().unwrap()
    }

    fn held(meta: &Value) -> PersistentVolumeClaim {
        let mut value = json!({"metadata": {"name": "c", "namespace": "ns"}, "status": {"phase": "Bound"}});
        for (key, member) in meta.as_object().unwrap() {
            value["metadata"][key] = member.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn pod(node: Option<&str>, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {
                "nodeName": node, "containers": [],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            },
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn a_claim_that_is_used_keeps_its_finalizer() {
        let dying = held(
            &json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [CLAIM_FINALIZER, "x/y"]}),
        );
        assert_eq!(claim(&dying, &[&pod(Some("n"), "Running")]), None);
        let freed = claim(&dying, &[&pod(None, "Pending")]).unwrap();
        assert_eq!(freed.metadata.finalizers.unwrap(), ["x/y"]);
        let new = claim(&held(&json!({})), &[]).unwrap();
        assert_eq!(new.metadata.finalizers.unwrap(), [CLAIM_FINALIZER]);
    }

    #[test]
    fn a_bound_volume_keeps_its_finalizer() {
        let of = |phase: &str| -> PersistentVolume {
            serde_json::from_value(json!({
                "metadata": {
                    "name": "pv", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [VOLUME_FINALIZER],
                },
                "status": {"phase": phase},
            }))
            .unwrap()
        };
        assert_eq!(volume(&of("Bound")), None);
        assert_eq!(volume(&of("Released")).unwrap().metadata.finalizers.unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_bound_claim_says_whether_a_pod_refers_to_it() {
        let free = unused(&held(&json!({})), &[&pod(None, "Succeeded")], now()).unwrap();
        let condition = free.status.clone().unwrap().conditions.unwrap().remove(0);
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_deref()),
            ("True", Some("NoPodsUsingPVC"))
        );
        assert_eq!(unused(&free, &[], now()), None);
        let used = unused(&free, &[&pod(None, "Pending")], now()).unwrap();
        let conditions = used.status.unwrap().conditions.unwrap();
        assert_eq!((conditions.len(), conditions[0].status.as_str()), (1, "False"));
        let mut pending = held(&json!({}));
        pending.status.as_mut().unwrap().phase = Some("Pending".into());
        assert_eq!(unused(&pending, &[], now()), None);
    }

    #[test]
    fn an_ephemeral_claim_is_used_by_its_own_pod_only() {
        let mut owner = pod(Some("n"), "Running");
        owner.spec.as_mut().unwrap().volumes =
            serde_json::from_value(json!([{"name": "v", "ephemeral": {}}])).unwrap();
        assert_eq!(claims_of(&owner).collect::<Vec<_>>(), ["p-v"]);
        let mut claimed = held(&json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
        ]}));
        claimed.metadata.name = Some("p-v".into());
        assert!(uses(&owner, &claimed, true));
        claimed.metadata.owner_references = None;
        assert!(!uses(&owner, &claimed, true));
    }
}
