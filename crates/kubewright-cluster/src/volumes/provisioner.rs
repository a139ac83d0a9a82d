//! Volumes out of nothing.
//!
//! A simulated cluster has no storage system, so one stand-in answers for every provisioner that a `StorageClass` names:
//! it makes the volume that the claim asks for, at once. Classes of `kubernetes.io/no-provisioner` are left alone, as
//! their volumes are made by hand.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        core::v1::{
            CSIPersistentVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
            ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
            VolumeNodeAffinity,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::binding::PROVISIONED_BY;

/// The annotations of a claim that a provisioner is to serve; the second is what older provisioners look for.
pub const STORAGE_PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// The provisioner of classes whose volumes are made by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// The annotation of the class that claims get which name none.
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Whether a class waits for the first pod that uses a claim.
pub fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// The name of the default class.
pub(crate) const STANDARD: &str = "standard";

/// The class that a cluster with simulated nodes begins with, as clusters for development do.
pub fn standard_class() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some(STANDARD.to_owned()),
            annotations: Some(BTreeMap::from([(DEFAULT_CLASS[0].to_owned(), "true".to_owned())])),
            ..ObjectMeta::default()
        },
        provisioner: "storage.sim.kubewright.dev".to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        ..StorageClass::default()
    }
}

/// The class of claims that name none: the newest of those that are marked as the default.
pub fn default_class<'a>(classes: impl IntoIterator<Item = &'a StorageClass>) -> Option<&'a StorageClass> {
    let marked = |class: &&StorageClass| {
        let annotations = class.metadata.annotations.as_ref();
        DEFAULT_CLASS.iter().any(|key| annotations.and_then(|map| map.get(*key)).is_some_and(|v| v == "true"))
    };
    classes.into_iter().filter(marked).max_by(|a, b| {
        let created = |class: &StorageClass| class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        created(a).cmp(&created(b)).then_with(|| b.metadata.name.cmp(&a.metadata.name))
    })
}

/// The claim with its provisioner's name; `None` when it has it.
pub fn announced(claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<PersistentVolumeClaim> {
    let mut changed = claim.clone();
    let annotations = changed.metadata.annotations.get_or_insert_default();
    for key in STORAGE_PROVISIONER {
        annotations.insert(key.to_owned(), class.provisioner.clone());
    }
    (changed != *claim).then_some(changed)
}

/// The name of a claim's provisioned volume.
pub fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// The volume that a claim asks for. A class that waits for consumers makes volumes for the consumer's node.
pub fn volume(claim: &PersistentVolumeClaim, class: &StorageClass, node: Option<&Node>) -> PersistentVolume {
    let asked = claim.spec.clone().unwrap_or_default();
    let storage = asked.resources.and_then(|resources| resources.requests?.remove("storage"));
    let reference = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    };
    let name = volume_name(claim);
    let annotation = (PROVISIONED_BY.to_owned(), class.provisioner.clone());
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(BTreeMap::from([annotation])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: asked.access_modes,
            capacity: storage.map(|size| BTreeMap::from([("storage".to_owned(), size)])),
            claim_ref: Some(reference),
            csi: Some(CSIPersistentVolumeSource {
                // A driver has a host's name, a provisioner may have a path too.
                driver: class.provisioner.replace('/', ".").to_lowercase(),
                volume_handle: name,
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            node_affinity: node.filter(|_| waits_for_consumer(class)).and_then(only_on),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".to_owned())),
            storage_class_name: class.metadata.name.clone(),
            volume_attributes_class_name: asked.volume_attributes_class_name,
            volume_mode: asked.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

fn only_on(node: &Node) -> Option<VolumeNodeAffinity> {
    let key = "kubernetes.io/hostname";
    let host = node.metadata.labels.as_ref()?.get(key)?;
    let requirement = NodeSelectorRequirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![host.clone()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    Some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(name: &str, more: &Value) -> StorageClass {
        let mut value = json!({"metadata": {"name": name}, "provisioner": "example.com/disk"});
        for (key, member) in more.as_object().unwrap() {
            value[key] = member.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn claim() -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "data", "namespace": "ns", "uid": "1-2"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}},
        }))
        .unwrap()
    }

    #[test]
    fn a_volume_is_what_the_claim_asks_for_and_already_its_own() {
        let made = volume(&claim(), &class("gold", &json!({"reclaimPolicy": "Retain"})), None);
        assert_eq!(made.metadata.name.as_deref(), Some("pvc-1-2"));
        assert!(super::super::matching::is_for(&made, &claim()));
        let spec = made.spec.unwrap();
        assert_eq!(spec.capacity.unwrap()["storage"].0, "3Gi");
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
        assert_eq!(spec.storage_class_name.as_deref(), Some("gold"));
    }

    #[test]
    fn a_class_that_waits_makes_volumes_for_one_node() {
        let waits = class("local", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
        let node: Node = serde_json::from_value(
            json!({"metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}}}),
        )
        .unwrap();
        let made = volume(&claim(), &waits, Some(&node));
        assert!(super::super::matching::reaches(&made, &node));
        assert!(made.spec.unwrap().node_affinity.is_some());
    }

    #[test]
    fn the_newest_default_class_is_the_default() {
        let marked = |name: &str, created: &str| {
            class(
                name,
                &json!({"metadata": {
                    "name": name, "creationTimestamp": created,
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                }}),
            )
        };
        let classes = [
            marked("old", "2026-01-01T00:00:00Z"),
            marked("new", "2026-02-01T00:00:00Z"),
            class("x", &json!({})),
        ];
        assert_eq!(default_class(&classes).unwrap().metadata.name.as_deref(), Some("new"));
        assert!(default_class(&classes[2..]).is_none());
    }
}
