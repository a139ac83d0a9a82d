//! The volume that fits a claim best.

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim,
};

use crate::objects::{milli_value, selects};

/// The older place of a storage class's name.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The storage class that a claim asks for; empty when it asks for none.
pub fn claim_class(claim: &PersistentVolumeClaim) -> &str {
    let annotated = claim.metadata.annotations.as_ref().and_then(|map| map.get(CLASS_ANNOTATION));
    let named = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    annotated.or(named).map(String::as_str).unwrap_or_default()
}

/// The storage class of a volume; empty when it has none.
pub fn volume_class(volume: &PersistentVolume) -> &str {
    let annotated = volume.metadata.annotations.as_ref().and_then(|map| map.get(CLASS_ANNOTATION));
    let named = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    annotated.or(named).map(String::as_str).unwrap_or_default()
}

/// How much a claim asks for, in thousandths of a byte.
pub fn requested(claim: &PersistentVolumeClaim) -> i128 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    milli_value(requests.and_then(|requests| requests.get("storage")))
}

/// How much a volume holds, in thousandths of a byte.
pub fn capacity(volume: &PersistentVolume) -> i128 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    milli_value(capacity.and_then(|capacity| capacity.get("storage")))
}

/// Whether a volume is set aside for a claim: by name, and by identity where that is known.
pub fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(wanted) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    wanted.name == claim.metadata.name
        && wanted.namespace == claim.metadata.namespace
        && wanted.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
}

/// Why a volume that a claim asks for by name cannot serve it.
pub fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    if volume.metadata.deletion_timestamp.is_some() {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    if capacity(volume) < requested(claim) {
        return Some("requested PV is too small".to_owned());
    }
    if volume_class(volume) != claim_class(claim) {
        return Some("storageClassName does not match".to_owned());
    }
    if attributes_class(volume, claim) {
        return Some("volumeAttributesClassName does not match".to_owned());
    }
    if !same_mode(volume, claim) {
        return Some("incompatible volumeMode".to_owned());
    }
    (!has_modes(volume, claim)).then(|| "incompatible accessMode".to_owned())
}

/// Whether block or file system is the same on both sides.
pub fn same_mode(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let file_system = "Filesystem";
    let of_volume = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()).unwrap_or(file_system);
    let of_claim = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()).unwrap_or(file_system);
    of_volume == of_claim
}

fn attributes_class(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let of_volume = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let of_claim = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    of_volume.unwrap_or_default() != of_claim.unwrap_or_default()
}

fn has_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let offered = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    let wanted = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    wanted.iter().all(|mode| offered.contains(mode))
}

/// The best volume for a claim: one that is set aside for it, or else the smallest free one that is large enough.
///
/// `delayed` is a claim whose consumer is not known yet: only a volume that is set aside will do. `node` is where the
/// consumer runs, when that is known.
pub fn best<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl IntoIterator<Item = &'a PersistentVolume>,
    node: Option<&Node>,
    delayed: bool,
) -> Option<&'a PersistentVolume> {
    let wanted = requested(claim);
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let mut smallest: Option<&PersistentVolume> = None;
    for volume in volumes {
        if capacity(volume) < wanted
            || !same_mode(volume, claim)
            || attributes_class(volume, claim)
            || volume.metadata.deletion_timestamp.is_some()
            || node.is_some_and(|node| !reaches(volume, node))
        {
            continue;
        }
        if is_for(volume, claim) {
            return Some(volume);
        }
        let claimed = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some());
        let available =
            volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
        if delayed
            || claimed
            || !available
            || volume_class(volume) != claim_class(claim)
            || !has_modes(volume, claim)
            || selector.is_some_and(|_| !selects(selector, volume.metadata.labels.as_ref()))
        {
            continue;
        }
        let key = |volume: &PersistentVolume| (capacity(volume), volume.metadata.name.clone());
        if smallest.is_none_or(|held| key(volume) < key(held)) {
            smallest = Some(volume);
        }
    }
    smallest
}

/// Whether a volume can be used on a node.
pub fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else { return true };
    required.node_selector_terms.iter().any(|term| term_matches(term, node))
}

fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label =
        |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_deref()).flatten();
    // A term without conditions matches nothing.
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|wanted| requirement_matches(wanted, label(&wanted.key)))
        && fields.iter().all(|wanted| requirement_matches(wanted, field(&wanted.key)))
}

fn requirement_matches(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = |value: &str| values.iter().any(|listed| listed == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let against = |compare: fn(i64, i64) -> bool| {
        let bound = values.first().and_then(|text| number(text));
        value.and_then(number).zip(bound).is_some_and(|(value, bound)| compare(value, bound))
    };
    match wanted.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => value.is_none_or(|value| !listed(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => against(|value, bound| value > bound),
        "Lt" => against(|value, bound| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(name: &str, size: &str, more: &Value) -> PersistentVolume {
        let mut value = json!({
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"},
            "status": {"phase": "Available"},
        });
        for (key, member) in more.as_object().unwrap() {
            value["spec"][key] = member.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn claim(size: &str) -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "claim", "namespace": "ns", "uid": "u"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "c",
                "resources": {"requests": {"storage": size}},
            },
        }))
        .unwrap()
    }

    fn pick<'a>(claim: &PersistentVolumeClaim, volumes: &'a [PersistentVolume]) -> Option<&'a str> {
        best(claim, volumes, None, false).and_then(|volume| volume.metadata.name.as_deref())
    }

    #[test]
    fn the_smallest_that_is_large_enough_is_taken() {
        let none = json!({});
        let volumes =
            [volume("big", "5Gi", &none), volume("small", "1Gi", &none), volume("mid", "2Gi", &none)];
        assert_eq!(pick(&claim("1Gi"), &volumes), Some("small"));
        assert_eq!(pick(&claim("1500Mi"), &volumes), Some("mid"));
        assert_eq!(pick(&claim("50Gi"), &volumes), None);
    }

    #[test]
    fn a_volume_set_aside_for_the_claim_comes_first_and_one_for_another_never() {
        let mine = volume("mine", "9Gi", &json!({"claimRef": {"namespace": "ns", "name": "claim"}}));
        let other = volume("other", "1Gi", &json!({"claimRef": {"namespace": "ns", "name": "else"}}));
        let old =
            volume("old", "1Gi", &json!({"claimRef": {"namespace": "ns", "name": "claim", "uid": "x"}}));
        let free = volume("free", "1Gi", &json!({}));
        let volumes = [old, other, free, mine];
        assert_eq!(pick(&claim("1Gi"), &volumes), Some("mine"));
        assert_eq!(pick(&claim("1Gi"), &volumes[..3]), Some("free"));
        assert!(
            best(&claim("1Gi"), &volumes[..3], None, true).is_none(),
            "without a consumer nothing is taken"
        );
    }

    #[test]
    fn class_modes_and_readiness_must_agree() {
        let mut pending = volume("pending", "1Gi", &json!({}));
        pending.status = None;
        let volumes = [
            volume("class", "1Gi", &json!({"storageClassName": "d"})),
            volume("modes", "1Gi", &json!({"accessModes": ["ReadOnlyMany"]})),
            volume("block", "1Gi", &json!({"volumeMode": "Block"})),
            pending,
        ];
        assert_eq!(pick(&claim("1Gi"), &volumes), None);
        let why: Vec<_> = volumes.iter().map(|volume| mismatch(volume, &claim("1Gi"))).collect();
        assert_eq!(why[0].as_deref(), Some("storageClassName does not match"));
        assert_eq!(why[1].as_deref(), Some("incompatible accessMode"));
        assert_eq!(why[2].as_deref(), Some("incompatible volumeMode"));
    }

    #[test]
    fn a_local_volume_is_for_its_node_only() {
        let local = volume(
            "local",
            "1Gi",
            &json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]},
            ]}}}),
        );
        let node = |name: &str| -> Node {
            serde_json::from_value(
                json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}),
            )
            .unwrap()
        };
        assert!(reaches(&local, &node("a")));
        assert!(!reaches(&local, &node("b")));
        assert!(best(&claim("1Gi"), [&local], Some(&node("b")), false).is_none());
    }
}
