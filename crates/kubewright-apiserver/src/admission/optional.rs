//! Plugins that a server has but does not use unless told to (`--enable-admission-plugins`).

use serde_json::{Value, json};

use super::{Attributes, Operation, Plugin};
use crate::{
    registry::{
        Registry,
        json::{Json, at, list, meta, object, object_mut, objects, objects_mut, text},
    },
    status::{About, Status},
};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn is_pod_write(attributes: &Attributes<'_>) -> bool {
    matches!(attributes.operation, Operation::Create | Operation::Update) && attributes.is("", "pods")
}

fn spec(pod: &Json) -> Option<&Json> {
    object(pod, "spec")
}

/// `AlwaysPullImages`: nobody runs an image that they may not pull.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysPullImages;

impl AlwaysPullImages {
    fn images(pod: &Json) -> Vec<&str> {
        let containers =
            CONTAINERS.iter().flat_map(|key| spec(pod).into_iter().flat_map(|s| objects(s, key)));
        containers.map(|container| text(container, "image")).collect()
    }

    fn ignores(attributes: &Attributes<'_>) -> bool {
        !is_pod_write(attributes)
            || attributes.old.is_some_and(|old| {
                let known = Self::images(old);
                Self::images(&attributes.object).iter().all(|image| known.contains(image))
            })
    }
}

impl Plugin for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if Self::ignores(attributes) {
            return Ok(());
        }
        let spec = object_mut(&mut attributes.object, "spec");
        for key in CONTAINERS {
            for container in objects_mut(spec, key) {
                container.insert("imagePullPolicy".into(), "Always".into());
            }
        }
        for volume in objects_mut(spec, "volumes") {
            if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
                image.insert("pullPolicy".into(), "Always".into());
            }
        }
        Ok(())
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if Self::ignores(attributes) {
            return Ok(());
        }
        let Some(spec) = spec(&attributes.object) else { return Ok(()) };
        for key in CONTAINERS {
            for (n, container) in objects(spec, key).enumerate() {
                let policy = text(container, "imagePullPolicy");
                if policy != "Always" {
                    return Err(attributes.forbid(&format!(
                        "spec.{key}[{n}].imagePullPolicy: Unsupported value: {policy:?}: supported values: \"Always\""
                    )));
                }
            }
        }
        Ok(())
    }
}

/// `LimitPodHardAntiAffinityTopology`: pods keep away from each other by node and by nothing wider.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitAntiAffinity;

impl Plugin for LimitAntiAffinity {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        const HOSTNAME: &str = "kubernetes.io/hostname";
        if !is_pod_write(attributes) {
            return Ok(());
        }
        let rules =
            at(&attributes.object, &["spec", "affinity", "podAntiAffinity"]).and_then(Value::as_object);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = rules.into_iter().flat_map(|rules| objects(rules, required));
        match terms.map(|term| text(term, "topologyKey")).find(|key| *key != HOSTNAME) {
            None => Ok(()),
            Some(key) => Err(attributes.forbid(&format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
            ))),
        }
    }
}

/// `ExtendedResourceToleration`: pods that ask for special hardware tolerate the nodes that have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExtendedResourceToleration;

/// Whether a resource is one that somebody else than Kubernetes counts.
fn is_extended(resource: &str) -> bool {
    resource
        .split_once('/')
        .is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io") && !resource.starts_with("requests."))
}

impl Plugin for ExtendedResourceToleration {
    fn name(&self) -> &'static str {
        "ExtendedResourceToleration"
    }

    fn admit(&self, _: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if !is_pod_write(attributes) {
            return Ok(());
        }
        let spec = object_mut(&mut attributes.object, "spec");
        let containers = ["containers", "initContainers"].into_iter().flat_map(|key| objects(spec, key));
        let requests =
            containers.filter_map(|container| at(container, &["resources", "requests"])?.as_object());
        let mut asked: Vec<String> =
            requests.flat_map(Json::keys).filter(|key| is_extended(key)).cloned().collect();
        asked.sort();
        asked.dedup();
        let mut tolerations = list(spec, "tolerations").to_vec();
        for resource in asked {
            let toleration = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
            if !tolerations.contains(&toleration) {
                tolerations.push(toleration);
            }
        }
        if !tolerations.is_empty() {
            spec.insert("tolerations".into(), tolerations.into());
        }
        Ok(())
    }
}

/// `PodNodeSelector`: the pods of a namespace go to the nodes that its annotation names.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodNodeSelector;

impl Plugin for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let key = kubewright_core::ObjectKey::cluster(attributes.namespace());
        let Some(namespace) = registry.storage.get("namespaces", &key) else { return Ok(()) };
        let namespace = namespace.decode();
        let annotations = object(meta(&namespace), "annotations");
        let written = annotations.map_or("", |a| text(a, "scheduler.alpha.kubernetes.io/node-selector"));
        if written.trim().is_empty() {
            return Ok(());
        }
        let spec = object(&attributes.object, "spec").cloned().unwrap_or_default();
        let mut selector = object(&spec, "nodeSelector").cloned().unwrap_or_default();
        for part in written.split(',') {
            let (key, value) = part
                .split_once('=')
                .map(|(k, v)| (k.trim(), v.trim()))
                .ok_or_else(|| Status::internal_error(format!("invalid selector: [{part}]")))?;
            if selector.get(key).is_some_and(|own| own != value) {
                let why = "pod node label selector conflicts with its namespace node label selector";
                return Err(attributes.forbid(why));
            }
            selector.insert(key.to_owned(), value.into());
        }
        object_mut(&mut attributes.object, "spec").insert("nodeSelector".into(), selector.into());
        Ok(())
    }
}

/// `NamespaceExists`: nothing is written where there is no namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        let namespace = attributes.call.namespace;
        if namespace.is_empty() {
            return Ok(());
        }
        let found = registry.storage.get("namespaces", &kubewright_core::ObjectKey::cluster(namespace));
        found
            .map(drop)
            .ok_or_else(|| Status::not_found(About { group: "", kind: "namespaces", name: namespace }))
    }
}

/// `AlwaysDeny`: nothing is written at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        Err(attributes.forbid("admission control is denying all modifications"))
    }
}
