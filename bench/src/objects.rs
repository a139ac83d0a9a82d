//! Objects that the servers are filled with.

use serde_json::{Value, json};

use crate::{mixed, pods};

/// Kinds of generated objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pods of 9.5 KB, of two hundred applications of one template.
    Pods,
    /// Pods of 10.9 KB, of two thousand applications that differ.
    MixedPods,
    /// Config maps with two short values.
    ConfigMaps,
}

impl Kind {
    /// The kind of this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        [Self::Pods, Self::MixedPods, Self::ConfigMaps].into_iter().find(|kind| kind.name() == name)
    }

    /// Name of the kind in orders to a host.
    pub fn name(self) -> &'static str {
        match self {
            Self::MixedPods => "mixed-pods",
            Self::Pods | Self::ConfigMaps => self.resource(),
        }
    }

    /// Name of the resource.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Pods | Self::MixedPods => "pods",
            Self::ConfigMaps => "configmaps",
        }
    }

    /// Object number `i`, always the same.
    pub fn object(self, i: usize) -> Value {
        match self {
            Self::Pods => serde_json::from_str(&pods::pod(i)).expect("it is JSON"),
            Self::MixedPods => serde_json::from_str(&mixed::pod(i)).expect("it is JSON"),
            Self::ConfigMaps => json!({
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": {
                    "name": format!("settings-{i}"), "namespace": format!("team-{}", i % 50),
                    "uid": format!("{i:08x}-0000-4000-a000-000000000000"), "creationTimestamp": "2026-08-01T00:00:00Z",
                    "labels": {"app": format!("service-{}", i % 200)},
                    "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1",
                        "time": "2026-08-01T00:00:00Z", "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {".": {}, "f:color": {}, "f:size": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}}],
                },
                "data": {"color": "blue", "size": (i % 1000).to_string()},
            }),
        }
    }
}

/// Object whose appearance ends a phase for the watchers.
pub fn marker(number: u32) -> Value {
    let mut pod = Kind::Pods.object(0);
    let name = format!("bench-marker-{number}");
    pod["metadata"]["uid"] = name.as_str().into();
    pod["metadata"]["name"] = name.into();
    pod
}

/// Namespace and name of an object.
pub fn key(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

/// Notes in the object when it was changed. A label, because labels are what handlers look at most.
pub fn stamp(object: &mut Value) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    object["metadata"]["labels"]["bench-at"] = now.as_nanos().to_string().into();
}

/// How long ago the object was changed, if it says.
pub fn lag(stamp: Option<&str>) -> Option<std::time::Duration> {
    let at = std::time::Duration::from_nanos(stamp?.parse().ok()?);
    Some(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.saturating_sub(at))
}
