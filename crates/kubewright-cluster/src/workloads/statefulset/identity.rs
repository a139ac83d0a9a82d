//! What makes a stateful pod the one it is: its name, its labels, its claims.

use std::ops::Range;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec},
    core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
};

use super::REVISION;
use crate::{objects, pod};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The ordinals that there should be.
pub(super) fn range(spec: &StatefulSetSpec) -> Range<i64> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).map_or(0, i64::from);
    start..start + i64::from(spec.replicas.unwrap_or(1).max(0))
}

/// The ordinal of a pod of this set.
pub(super) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i64> {
    let (parent, digits) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    (set.metadata.name.as_deref() == Some(parent) && plain).then(|| digits.parse().ok()).flatten()
}

/// The pod of an ordinal.
pub(super) fn pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &ControllerRevision,
    ordinal: i64,
) -> Pod {
    let mut pod = pod::from_template::<StatefulSet>(&set.metadata, template);
    let name = format!("{}-{ordinal}", set.metadata.name.as_deref().unwrap_or_default());
    pod.metadata.name = Some(name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), name.clone());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    labels.insert(REVISION.to_owned(), revision.metadata.name.clone().unwrap_or_default());
    let body = pod.spec.get_or_insert_default();
    body.hostname = Some(name);
    body.subdomain = spec.service_name.clone().filter(|service| !service.is_empty());
    mount(set, spec, &mut pod);
    pod
}

/// The claims of a pod, by the templates of the set.
pub(super) fn claims(set: &StatefulSet, spec: &StatefulSetSpec, pod: &Pod) -> Vec<PersistentVolumeClaim> {
    let Some(ordinal) = ordinal(set, pod) else { return Vec::new() };
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let mut claim = template.clone();
            claim.metadata.name = Some(claim_name(set, template, ordinal));
            claim.metadata.namespace.clone_from(&set.metadata.namespace);
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            claim.status = None;
            claim
        })
        .collect()
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i64) -> String {
    let (claim, set) = (template.metadata.name.as_deref(), set.metadata.name.as_deref());
    format!("{}-{}-{ordinal}", claim.unwrap_or_default(), set.unwrap_or_default())
}

/// Puts the claims among the volumes, in place of template volumes of the same names.
fn mount(set: &StatefulSet, spec: &StatefulSetSpec, pod: &mut Pod) {
    let Some(ordinal) = ordinal(set, pod) else { return };
    let templates: Vec<&PersistentVolumeClaim> = spec.volume_claim_templates.iter().flatten().collect();
    if templates.is_empty() {
        return;
    }
    let mut volumes: Vec<Volume> = templates
        .iter()
        .map(|template| Volume {
            name: template.metadata.name.clone().unwrap_or_default(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, template, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    let body = pod.spec.get_or_insert_default();
    let named = |volume: &Volume| templates.iter().any(|t| t.metadata.name.as_ref() == Some(&volume.name));
    volumes.extend(body.volumes.take().into_iter().flatten().filter(|volume| !named(volume)));
    body.volumes = Some(volumes);
}

/// The pod with the labels of its identity, when somebody took them off.
pub(super) fn mended(set: &StatefulSet, pod: &Pod) -> Option<Pod> {
    let ordinal = ordinal(set, pod)?;
    if objects::label(&pod.metadata, POD_NAME) == pod.metadata.name.as_deref() {
        return None;
    }
    let mut mended = pod.clone();
    let labels = mended.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), pod.metadata.name.clone()?);
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    Some(mended)
}
