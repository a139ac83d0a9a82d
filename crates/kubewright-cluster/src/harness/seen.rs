//! A changed object in the report of a failed test.

use std::fmt;

use serde_json::{Map, Value};

use super::table::{Table, short};

/// Maximum lengths of a status value and of a condition's message.
const VALUE: usize = 120;
const MESSAGE: usize = 200;

/// Namespaces that every cluster has.
const DEFAULT_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Object that changed during a test.
pub(super) struct ChangedObject {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) object: Map<String, Value>,
}

impl ChangedObject {
    /// Whether every cluster has this object in this state.
    pub(super) fn is_cluster_default(&self) -> bool {
        let label = self.object.get("metadata").and_then(|meta| meta.get("labels"));
        let bootstrapped = label.is_some_and(|labels| labels.get("kubernetes.io/bootstrapping").is_some());
        let name = self.name.rsplit('/').next().unwrap_or_default();
        bootstrapped
            || match self.kind.as_str() {
                "Lease" | "Event" | "ControllerRevision" | "APIService" | "CSINode" | "IPAddress" => true,
                "ConfigMap" => name == "kube-root-ca.crt",
                "ServiceAccount" => name == "default",
                "Namespace" => self.text("/status/phase") == "Active" && DEFAULT_NAMESPACES.contains(&name),
                "StorageClass" => name == crate::volumes::provisioner::STANDARD,
                // Nodes are reported when something is wrong with them.
                "Node" => self.condition("Ready") == Some("True") && self.object_at("/spec/taints").is_none(),
                "Endpoints" | "EndpointSlice" => self.name.starts_with("default/kubernetes"),
                _ => false,
            }
    }

    fn object_at(&self, pointer: &str) -> Option<&Value> {
        let (first, rest) = pointer.strip_prefix('/')?.split_once('/')?;
        self.object.get(first)?.pointer(&format!("/{rest}"))
    }

    fn text(&self, pointer: &str) -> &str {
        self.object_at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn condition(&self, kind: &str) -> Option<&str> {
        let conditions = self.object_at("/status/conditions")?.as_array()?;
        conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
    }

    /// Properties besides the status.
    fn properties(&self) -> Vec<String> {
        let mut properties = Vec::new();
        let generation = self.object_at("/metadata/generation").and_then(Value::as_i64);
        let observed = self.object_at("/status/observedGeneration").and_then(Value::as_i64);
        match (generation, observed) {
            (Some(generation), Some(observed)) if generation == observed => {}
            (Some(generation), Some(observed)) => {
                properties.push(format!("generation {generation}, but only {observed} observed"));
            }
            _ => {}
        }
        let owners = self.object_at("/metadata/ownerReferences").and_then(Value::as_array);
        let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        if let Some(owner) = controller {
            let of = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
            properties.push(format!("of {} {}", of("kind"), of("name")));
        }
        let deleted = self.text("/metadata/deletionTimestamp");
        if !deleted.is_empty() {
            let finalizers: Vec<&str> = self
                .object_at("/metadata/finalizers")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            properties.push(format!("deleted at {deleted}, finalizers [{}]", finalizers.join(", ")));
        }
        properties
    }

    /// The status without its conditions, as `key=value`.
    fn status(&self) -> Vec<String> {
        let Some(status) = self.object.get("status").and_then(Value::as_object) else { return Vec::new() };
        status
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "conditions" | "observedGeneration"))
            .filter_map(|(key, value)| match value {
                Value::Null => None,
                Value::Object(map) if map.is_empty() => None,
                Value::Array(list) if list.is_empty() => None,
                Value::String(text) => Some(format!("{key}={}", short(text, VALUE))),
                Value::Array(list) if key.ends_with("ontainerStatuses") => {
                    Some(list.iter().map(container).collect::<Vec<_>>().join(", "))
                }
                // The phase of a Pod says more than its addresses.
                _ if self.kind == "Pod" && matches!(key.as_str(), "hostIPs" | "podIPs") => None,
                other => Some(format!("{key}={}", short(other, VALUE))),
            })
            .collect()
    }

    fn conditions(&self) -> Table<5> {
        let mut table = Table::new();
        let conditions = self.object_at("/status/conditions").and_then(Value::as_array);
        for condition in conditions.into_iter().flatten() {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            table.row([
                text("type"),
                text("status"),
                text("reason"),
                text("lastTransitionTime"),
                short(&text("message"), MESSAGE),
            ]);
        }
        table
    }
}

/// Summary of a container's status.
fn container(status: &Value) -> String {
    let name = status["name"].as_str().unwrap_or_default();
    let restarts = status["restartCount"].as_i64().unwrap_or_default();
    let state = status["state"].as_object().and_then(|state| state.iter().next());
    let summary = match state {
        None => format!("container {name}"),
        Some((state, detail)) => match detail["reason"].as_str() {
            Some(reason) => format!("container {name} {state}: {reason}"),
            None => format!("container {name} {state}"),
        },
    };
    if restarts > 0 { format!("{summary} ({restarts} restarts)") } else { summary }
}

impl fmt::Display for ChangedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![format!("{} {}", self.kind, self.name)];
        words.extend(self.properties());
        writeln!(f, "  {}", words.join("; "))?;
        let status = self.status();
        if !status.is_empty() {
            writeln!(f, "      {}", status.join(", "))?;
        }
        self.conditions().write(f, "      ")
    }
}
