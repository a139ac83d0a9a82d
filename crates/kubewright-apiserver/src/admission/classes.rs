//! Plugins that fill in classes and hold pods and claims to them.

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::{Attributes, Operation, Plugin};
use crate::{
    registry::{
        Registry,
        json::{Json, at, list, meta, name, object, object_mut, text, text_at},
        quantity,
    },
    status::Status,
};

/// The default among the classes of a collection: the newest of those that an annotation marks.
fn default_class(registry: &Registry, collection: &str, annotations: &[&str]) -> Option<String> {
    let stored = registry.storage.snapshot().collection(collection);
    let classes = stored.range(None, None).map(|(_, stored)| stored.decode());
    let marked = classes.filter(|class| {
        let own = object(meta(class), "annotations");
        own.is_some_and(|own| annotations.iter().any(|annotation| text(own, annotation) == "true"))
    });
    // Times are written so that later ones are greater; of those made at once the first by name counts.
    let newest = marked.reduce(|best, class| {
        let made = |class: &Json| text(meta(class), "creationTimestamp").to_owned();
        if made(&class) > made(&best) { class } else { best }
    });
    newest.map(|class| name(&class).to_owned())
}

/// `DefaultStorageClass`: claims that ask for no class get the default one.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "persistentvolumeclaims") {
            return Ok(());
        }
        let annotated =
            at(&attributes.object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
        if annotated.is_some() || at(&attributes.object, &["spec", "storageClassName"]).is_some() {
            return Ok(());
        }
        let annotations = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        if let Some(class) = default_class(registry, "storage.k8s.io/storageclasses", &annotations) {
            object_mut(&mut attributes.object, "spec").insert("storageClassName".into(), class.into());
        }
        Ok(())
    }
}

/// `DefaultIngressClass`: ingresses that ask for no class get the default one.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("networking.k8s.io", "ingresses") {
            return Ok(());
        }
        let annotated = at(&attributes.object, &["metadata", "annotations", "kubernetes.io/ingress.class"]);
        if annotated.is_some() || at(&attributes.object, &["spec", "ingressClassName"]).is_some() {
            return Ok(());
        }
        let annotations = ["ingressclass.kubernetes.io/is-default-class"];
        if let Some(class) = default_class(registry, "networking.k8s.io/ingressclasses", &annotations) {
            object_mut(&mut attributes.object, "spec").insert("ingressClassName".into(), class.into());
        }
        Ok(())
    }
}

/// `PersistentVolumeClaimResize`: claims grow only where their class lets them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaimResize;

impl Plugin for ClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Some(old) = attributes.old.filter(|_| {
            attributes.operation == Operation::Update && attributes.is("", "persistentvolumeclaims")
        }) else {
            return Ok(());
        };
        let size = |claim: &Json| {
            at(claim, &["spec", "resources", "requests", "storage"]).and_then(quantity::parse).unwrap_or(0)
        };
        if size(&attributes.object) <= size(old) {
            return Ok(());
        }
        if text_at(old, &["status", "phase"]) != "Bound" {
            return Err(attributes.forbid("Only bound persistent volume claims can be expanded"));
        }
        let class = text_at(old, &["spec", "storageClassName"]);
        let grows = class == text_at(&attributes.object, &["spec", "storageClassName"]) && {
            let found = registry.storage.get("storage.k8s.io/storageclasses", &ObjectKey::cluster(class));
            found.is_some_and(|class| class.decode().get("allowVolumeExpansion") == Some(&Value::Bool(true)))
        };
        if grows {
            return Ok(());
        }
        Err(attributes.forbid(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
        ))
    }
}

/// `RuntimeClass`: pods of a class carry its overhead and go where its nodes are.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuntimeClass;

impl RuntimeClass {
    fn class(registry: &Registry, attributes: &Attributes<'_>) -> Result<Option<Json>, Status> {
        let asked = text_at(&attributes.object, &["spec", "runtimeClassName"]);
        if asked.is_empty() {
            return Ok(None);
        }
        let found = registry.storage.get("node.k8s.io/runtimeclasses", &ObjectKey::cluster(asked));
        let class = found.map(|found| found.decode());
        class
            .map(Some)
            .ok_or_else(|| attributes.forbid(&format!("pod rejected: RuntimeClass {asked:?} not found")))
    }
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Whether two lists of resources are the same amounts.
fn same_amounts(a: Option<&Json>, b: Option<&Json>) -> bool {
    let amounts = |list: Option<&Json>| -> Vec<(String, Option<i128>)> {
        list.into_iter().flatten().map(|(key, value)| (key.clone(), quantity::parse(value))).collect()
    };
    amounts(a) == amounts(b)
}

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let Some(class) = Self::class(registry, attributes)? else { return Ok(()) };
        let spec = object(&attributes.object, "spec").cloned().unwrap_or_default();
        if let Some(fixed) = at(&class, &["overhead", "podFixed"]).and_then(Value::as_object) {
            let own = object(&spec, "overhead");
            if own.is_some_and(|own| !own.is_empty()) && !same_amounts(own, Some(fixed)) {
                return Err(attributes.forbid(OTHER_OVERHEAD));
            }
            object_mut(&mut attributes.object, "spec").insert("overhead".into(), fixed.clone().into());
        }
        let Some(scheduling) = object(&class, "scheduling") else { return Ok(()) };
        let mut selector = object(&spec, "nodeSelector").cloned().unwrap_or_default();
        for (key, wanted) in object(scheduling, "nodeSelector").into_iter().flatten() {
            if let Some(own) = selector.get(key).filter(|own| *own != wanted) {
                let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                return Err(attributes.forbid(&format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    shown(wanted),
                    shown(own)
                )));
            }
            selector.insert(key.clone(), wanted.clone());
        }
        let tolerations = merge(list(&spec, "tolerations"), list(scheduling, "tolerations"));
        let spec = object_mut(&mut attributes.object, "spec");
        if !selector.is_empty() {
            spec.insert("nodeSelector".into(), selector.into());
        }
        if !tolerations.is_empty() {
            spec.insert("tolerations".into(), tolerations.into());
        }
        Ok(())
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let class = Self::class(registry, attributes)?;
        let fixed = class.as_ref().and_then(|class| at(class, &["overhead", "podFixed"])?.as_object());
        let own = at(&attributes.object, &["spec", "overhead"]).and_then(Value::as_object);
        match (fixed, own) {
            (Some(_), _) if same_amounts(fixed, own) => Ok(()),
            (Some(_), _) => Err(attributes.forbid(OTHER_OVERHEAD)),
            (None, Some(_)) => Err(attributes.forbid(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )),
            (None, None) => Ok(()),
        }
    }
}

/// Both lists of tolerations, without those that another one covers.
fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut out: Vec<Value> = Vec::new();
    for (n, toleration) in all.iter().enumerate() {
        let before = out.iter().any(|other| covers(other, toleration));
        let after = all[n + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !before && !after {
            out.push((*toleration).clone());
        }
    }
    out
}

/// Whether whatever one toleration tolerates, another does too.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seconds = |value: &Value| value.get("tolerationSeconds").and_then(Value::as_i64);
    if wide == narrow {
        return true;
    }
    let any_key = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    let same_key = text(wide, "key") == text(narrow, "key") || any_key;
    let same_effect = text(wide, "effect").is_empty() || text(wide, "effect") == text(narrow, "effect");
    let long_enough = text(wide, "effect") != "NoExecute"
        || seconds(wide).is_none_or(|limit| seconds(narrow).is_some_and(|asked| asked <= limit));
    let same_value = match text(wide, "operator").as_str() {
        "Exists" => true,
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(wide, "value") == text(narrow, "value"),
        _ => false,
    };
    same_key && same_effect && long_enough && same_value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_toleration_that_another_covers_is_dropped() {
        let any = json!({"operator": "Exists"});
        let one = json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"});
        let brief = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50});
        let merged = |first: &[&Value], second: &[&Value]| {
            let owned = |values: &[&Value]| values.iter().map(|value| (*value).clone()).collect::<Vec<_>>();
            merge(&owned(first), &owned(second))
        };
        assert_eq!(merged(&[&one], &[&any]), std::slice::from_ref(&any));
        assert_eq!(merged(&[&any], &[&one]), [any]);
        assert_eq!(merged(&[&one], &[&one]), std::slice::from_ref(&one));
        assert_eq!(merged(&[&brief], &[&long, &one]), [long, one]);
    }
}
