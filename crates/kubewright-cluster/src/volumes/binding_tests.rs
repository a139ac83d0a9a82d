use serde_json::{Value, json};

use super::*;

fn volume(more: &Value) -> PersistentVolume {
    let mut value = json!({
        "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"},
        "status": {"phase": "Available"},
    });
    for (key, member) in more.as_object().unwrap() {
        value["spec"][key] = member.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn claim(spec: &Value) -> PersistentVolumeClaim {
    let mut value = json!({
        "metadata": {"name": "claim", "namespace": "ns", "uid": "u"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "c",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    });
    for (key, member) in spec.as_object().unwrap() {
        value["spec"][key] = member.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn reason(step: &ClaimStep) -> Option<&str> {
    match step {
        ClaimStep::Wait(Some(note)) | ClaimStep::Lost(note) => Some(note.reason.as_str()),
        _ => None,
    }
}

#[test]
fn binding_writes_both_sides_and_then_nothing_more() {
    let (volume, claim) = (volume(&json!({})), claim(&json!({})));
    assert_eq!(claim_step(&claim, [&volume], &Consumer::default()), ClaimStep::Bind("pv".into()));
    let writes = bind(&volume, &claim);
    let written = writes.volume.clone().unwrap();
    assert_eq!(written.spec.as_ref().unwrap().claim_ref.as_ref().unwrap().uid.as_deref(), Some("u"));
    assert!(annotated(written.metadata.annotations.as_ref(), BOUND_BY_CONTROLLER));
    let volume = writes.volume_status.unwrap();
    let claim = writes.claim_status.unwrap();
    let status = claim.status.clone().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Bound"));
    assert_eq!(status.capacity.unwrap()["storage"].0, "2Gi");
    assert_eq!(bind(&volume, &claim), Writes::default(), "a finished binding needs nothing");
    assert_eq!(volume_step(&volume, Some(&claim)), VolumeStep::Phase("Bound"));
}

#[test]
fn a_binding_that_was_interrupted_is_finished() {
    let claim = claim(&json!({}));
    let half = bind(&volume(&json!({})), &claim).volume.unwrap();
    assert_eq!(volume_step(&half, Some(&claim)), VolumeStep::Leave);
    let step = claim_step(&claim, [&half], &Consumer::default());
    assert_eq!(step, ClaimStep::Bind("pv".into()));
    let rest = bind(&half, &claim);
    assert_eq!(rest.volume, None);
    assert!(rest.volume_status.is_some() && rest.claim.is_some() && rest.claim_status.is_some());
}

#[test]
fn a_claim_without_a_volume_waits_for_what_can_help() {
    let none: [&PersistentVolume; 0] = [];
    assert_eq!(claim_step(&claim(&json!({})), none, &Consumer::default()), ClaimStep::Provision);
    let classless = claim(&json!({"storageClassName": ""}));
    assert_eq!(reason(&claim_step(&classless, none, &Consumer::default())), Some("FailedBinding"));
    let mut consumer = Consumer { delayed: true, ..Consumer::default() };
    let step = claim_step(&claim(&json!({})), none, &consumer);
    assert_eq!(reason(&step), Some("WaitForFirstConsumer"));
    consumer.unscheduled = vec!["p".into()];
    let ClaimStep::Wait(Some(note)) = claim_step(&claim(&json!({})), none, &consumer) else {
        panic!("waits")
    };
    assert_eq!(
        (note.reason.as_str(), note.message.as_str()),
        ("WaitForPodScheduled", "waiting for pod p to be scheduled")
    );
    consumer.chosen = true;
    assert_eq!(claim_step(&claim(&json!({})), none, &consumer), ClaimStep::Provision);
}

#[test]
fn a_volume_asked_for_by_name_is_bound_if_it_fits_and_is_free() {
    let named = claim(&json!({"volumeName": "pv"}));
    let step = |volume: &PersistentVolume| claim_step(&named, [volume], &Consumer::default());
    assert_eq!(step(&volume(&json!({}))), ClaimStep::Bind("pv".into()));
    assert_eq!(reason(&step(&volume(&json!({"capacity": {"storage": "1Mi"}})))), Some("VolumeMismatch"));
    let taken = volume(&json!({"claimRef": {"namespace": "ns", "name": "other", "uid": "o"}}));
    assert_eq!(reason(&step(&taken)), Some("FailedBinding"));
    let missing: [&PersistentVolume; 0] = [];
    assert_eq!(claim_step(&named, missing, &Consumer::default()), ClaimStep::Wait(None));
}

#[test]
fn a_bound_claim_is_lost_with_its_volume() {
    let mut bound = claim(&json!({"volumeName": "pv"}));
    annotate(&mut bound.metadata.annotations, BIND_COMPLETED);
    let missing: [&PersistentVolume; 0] = [];
    assert_eq!(reason(&claim_step(&bound, missing, &Consumer::default())), Some("ClaimLost"));
    let other = volume(&json!({"claimRef": {"namespace": "ns", "name": "claim", "uid": "x"}}));
    assert_eq!(reason(&claim_step(&bound, [&other], &Consumer::default())), Some("ClaimMisbound"));
    let lost = unbound_status(&bound, "Lost").unwrap();
    assert_eq!(lost.status.unwrap().phase.as_deref(), Some("Lost"));
}

#[test]
fn a_volume_whose_claim_is_gone_follows_its_policy() {
    let reference = json!({"namespace": "ns", "name": "claim", "uid": "u"});
    let of = |policy: &str| volume(&json!({"claimRef": reference, "persistentVolumeReclaimPolicy": policy}));
    assert_eq!(volume_step(&of("Retain"), None), VolumeStep::Phase("Released"));
    assert_eq!(volume_step(&of("Delete"), None), VolumeStep::Delete);
    assert_eq!(volume_step(&of("Recycle"), None), VolumeStep::Recycle);
    let mut successor = claim(&json!({"volumeName": "pv"}));
    successor.metadata.uid = Some("another".into());
    assert_eq!(volume_step(&of("Retain"), Some(&successor)), VolumeStep::Phase("Released"));
    assert_eq!(volume_step(&volume(&json!({})), None), VolumeStep::Phase("Available"));
}

#[test]
fn a_volume_whose_claim_went_elsewhere_is_free_again() {
    let elsewhere = claim(&json!({"volumeName": "other"}));
    let held = bind(&volume(&json!({})), &claim(&json!({}))).volume.unwrap();
    let VolumeStep::Unbind(free) = volume_step(&held, Some(&elsewhere)) else { panic!("unbinds") };
    assert_eq!(free.spec.unwrap().claim_ref, None);
    let by_user = volume(&json!({"claimRef": {"namespace": "ns", "name": "claim", "uid": "u"}}));
    let VolumeStep::Unbind(kept) = volume_step(&by_user, Some(&elsewhere)) else { panic!("unbinds") };
    let reference = kept.spec.unwrap().claim_ref.unwrap();
    assert_eq!((reference.name.as_deref(), reference.uid), (Some("claim"), None));
}
