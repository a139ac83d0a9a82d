//! Plugins that complete pods: `Priority` and `DefaultTolerationSeconds`.

use serde_json::{Value, json};

use super::{Attributes, Operation, Plugin};
use crate::{
    registry::{
        Registry,
        json::{default, list, name, object_mut, objects, text},
    },
    status::Status,
};

/// `Priority`: a class becomes a number.
#[derive(Debug, Clone, Copy, Default)]
pub struct Priority;

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let asked = attributes.object.get("spec").and_then(Value::as_object);
        let class_name = asked.map(|s| text(s, "priorityClassName")).unwrap_or_default().to_owned();
        let collection = registry.storage.snapshot().collection("scheduling.k8s.io/priorityclasses");
        let classes = || collection.range(None, None).map(|(_, o)| o.decode());
        let class = if class_name.is_empty() {
            // Of several defaults the one with the lowest value counts.
            classes()
                .filter(|c| c.get("globalDefault").and_then(Value::as_bool) == Some(true))
                .min_by_key(|c| c.get("value").and_then(Value::as_i64))
        } else {
            let found = classes().find(|c| name(c) == class_name);
            if found.is_none() {
                return Err(attributes.forbid(&format!("no PriorityClass with name {class_name} was found")));
            }
            found
        };
        let (priority, policy) = match &class {
            Some(class) => {
                let policy = match text(class, "preemptionPolicy") {
                    "" => "PreemptLowerPriority",
                    policy => policy,
                };
                (class.get("value").and_then(Value::as_i64).unwrap_or(0), policy)
            }
            None => (0, "PreemptLowerPriority"),
        };
        let given = asked.and_then(|s| s.get("priority")).and_then(Value::as_i64);
        if given.is_some_and(|g| g != priority) {
            return Err(attributes.forbid(&format!(
                "the integer value of priority ({}) must not be provided in pod spec; priority admission controller \
                 computed {priority} from the given PriorityClass name",
                given.unwrap_or(0)
            )));
        }
        let wished = asked.map(|s| text(s, "preemptionPolicy")).unwrap_or_default();
        if !wished.is_empty() && wished != policy {
            return Err(attributes.forbid(&format!(
                "the string value of PreemptionPolicy ({wished}) must not be provided in pod spec; priority admission \
                 controller computed {policy} from the given PriorityClass name"
            )));
        }
        let spec = object_mut(&mut attributes.object, "spec");
        if let Some(class) = class.as_ref().filter(|_| class_name.is_empty()) {
            spec.insert("priorityClassName".into(), name(class).into());
        }
        spec.insert("priority".into(), priority.into());
        default(spec, "preemptionPolicy", policy);
        Ok(())
    }
}

/// `DefaultTolerationSeconds`: pods stay on a node that is not ready for five minutes.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if !writes || !attributes.is("", "pods") {
            return Ok(());
        }
        let spec = object_mut(&mut attributes.object, "spec");
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let tolerated = objects(spec, "tolerations").any(|t| {
                (text(t, "key") == key || text(t, "key").is_empty())
                    && matches!(text(t, "effect"), "NoExecute" | "")
            });
            if tolerated {
                continue;
            }
            let mut tolerations = list(spec, "tolerations").to_vec();
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
            spec.insert("tolerations".into(), tolerations.into());
        }
        Ok(())
    }
}

/// `StorageObjectInUseProtection`: volumes and claims wait until nobody uses them.
#[derive(Debug, Clone, Copy, Default)]
pub struct StorageProtection;

impl Plugin for StorageProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        let finalizer = if attributes.is("", "persistentvolumeclaims") {
            "kubernetes.io/pvc-protection"
        } else if attributes.is("", "persistentvolumes") {
            "kubernetes.io/pv-protection"
        } else {
            return Ok(());
        };
        if attributes.operation != Operation::Create {
            return Ok(());
        }
        let metadata = object_mut(&mut attributes.object, "metadata");
        let mut finalizers = list(metadata, "finalizers").to_vec();
        if !finalizers.iter().any(|f| f == finalizer) {
            finalizers.push(finalizer.into());
            metadata.insert("finalizers".into(), finalizers.into());
        }
        Ok(())
    }
}
