//! What the servers are filled with.

use serde_json::{Value, json};

use crate::pods;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pods of 9.5 KB.
    Pods,
    /// Config maps with two short values.
    ConfigMaps,
}

impl Kind {
    /// By the name of its resource.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Pods, Self::ConfigMaps].into_iter().find(|kind| kind.resource() == name)
    }

    /// The name of its resource.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::ConfigMaps => "configmaps",
        }
    }

    /// Object number `i`, always the same.
    pub fn object(self, i: usize) -> Value {
        match self {
            Self::Pods => serde_json::from_str(&pods::pod(i)).expect("it is JSON"),
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

/// What ends a phase for those who watch: an object of this name.
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
