//! Plugins that complete pods: `Priority` and `DefaultTolerationSeconds`.

use serde_json::{Value, json};

use super::{Attributes, Operation, Plugin, cache::Compiled};
use crate::{
    admission::Context,
    registry::json::{Json, default, list, name, object_mut, objects, text},
    status::Status,
};

/// `Priority`: a class becomes a number.
#[derive(Debug)]
pub(crate) struct Priority {
    classes: Compiled<Class>,
}

impl Default for Priority {
    fn default() -> Self {
        Self { classes: Compiled::new("scheduling.k8s.io/priorityclasses", Class::of) }
    }
}

/// The content of a priority class.
#[derive(Debug)]
struct Class {
    name: String,
    value: Option<i64>,
    preemption: String,
    is_default: bool,
}

impl Class {
    fn of(class: &Json) -> Self {
        Self {
            name: name(class).to_owned(),
            value: class.get("value").and_then(Value::as_i64),
            preemption: text(class, "preemptionPolicy").to_owned(),
            is_default: class.get("globalDefault").and_then(Value::as_bool) == Some(true),
        }
    }
}

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let asked = attributes.object.get("spec").and_then(Value::as_object);
        let class_name = asked.map(|s| text(s, "priorityClassName")).unwrap_or_default();
        let classes = self.classes.all(context);
        let class = if class_name.is_empty() {
            // Of several defaults the one with the lowest value counts.
            classes.iter().filter(|class| class.is_default).min_by_key(|class| class.value)
        } else {
            let found = classes.iter().find(|class| class.name == class_name);
            if found.is_none() {
                return Err(attributes.forbid(&format!("no PriorityClass with name {class_name} was found")));
            }
            found
        };
        let preemption = class.map_or("", |class| &*class.preemption);
        let policy = if preemption.is_empty() { "PreemptLowerPriority" } else { preemption };
        let priority = class.and_then(|class| class.value).unwrap_or(0);
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
        let takes_default = class_name.is_empty();
        let spec = object_mut(&mut attributes.object, "spec");
        if let Some(class) = class.filter(|_| takes_default) {
            spec.insert("priorityClassName".into(), class.name.as_str().into());
        }
        spec.insert("priority".into(), priority.into());
        default(spec, "preemptionPolicy", policy);
        Ok(())
    }
}

/// `DefaultTolerationSeconds`: pods stay on a node that is not ready for five minutes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn admit(&self, _: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
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
            let toleration =
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            match spec.get_mut("tolerations") {
                Some(Value::Array(tolerations)) => tolerations.push(toleration),
                _ => drop(spec.insert("tolerations".into(), Value::Array(vec![toleration]))),
            }
        }
        Ok(())
    }
}

/// `StorageObjectInUseProtection`: adds the finalizers of volumes and claims that are in use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorageProtection;

impl Plugin for StorageProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn admit(&self, _: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
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
