//! What a simulated node looks like.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
        NodeSystemInfo,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use super::SIMULATED;
use crate::objects::timestamp;

/// How large simulated nodes are, and what they are called.
///
/// ```
/// use kubewright_cluster::nodes::NodeTemplate;
///
/// let small = NodeTemplate::default().cpu("2").memory("4Gi").label("topology.kubernetes.io/zone", "a");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTemplate {
    prefix: String,
    cpu: String,
    memory: String,
    pods: u32,
    labels: BTreeMap<String, String>,
}

impl Default for NodeTemplate {
    /// 32 cores, 256 GiB and 110 pods: as large as nothing that a test does will notice, unless it wants to.
    fn default() -> Self {
        Self {
            prefix: "node".into(),
            cpu: "32".into(),
            memory: "256Gi".into(),
            pods: 110,
            labels: BTreeMap::new(),
        }
    }
}

impl NodeTemplate {
    /// The beginning of the names; a number follows.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// How many cores, as a quantity.
    #[must_use]
    pub fn cpu(mut self, cpu: &str) -> Self {
        cpu.clone_into(&mut self.cpu);
        self
    }

    /// How much memory, as a quantity.
    #[must_use]
    pub fn memory(mut self, memory: &str) -> Self {
        memory.clone_into(&mut self.memory);
        self
    }

    /// How many pods; at most 250 have an address.
    #[must_use]
    pub fn pods(mut self, pods: u32) -> Self {
        self.pods = pods.min(250);
        self
    }

    /// A label on every node.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The name of the node of a number, counted from zero.
    pub(super) fn name(&self, number: u32) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// The node of a number, counted from zero.
    pub(super) fn node(&self, number: u32, now: Timestamp) -> Node {
        let name = self.name(number);
        let mut labels = self.labels.clone();
        for (key, value) in [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", name.as_str()),
            ("kubernetes.io/os", "linux"),
        ] {
            labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
        let [_, _, high, low] = number.to_be_bytes();
        let cidr = format!("10.{}.{low}.0/24", 128 + u32::from(high) % 128);
        Node {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels),
                annotations: Some([(SIMULATED.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                pod_cidr: Some(cidr.clone()),
                pod_cidrs: Some(vec![cidr]),
                provider_id: Some(format!("kubewright://{name}")),
                ..NodeSpec::default()
            }),
            status: Some(self.status(&name, number, now)),
        }
    }

    fn status(&self, name: &str, number: u32, now: Timestamp) -> NodeStatus {
        let capacity: BTreeMap<String, Quantity> = [
            ("cpu", self.cpu.clone()),
            ("ephemeral-storage", "1Ti".into()),
            ("hugepages-1Gi", "0".into()),
            ("hugepages-2Mi", "0".into()),
            ("memory", self.memory.clone()),
            ("pods", self.pods.to_string()),
        ]
        .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
        .into();
        let [_, _, high, low] = number.to_be_bytes();
        let address = |kind: &str, address: String| NodeAddress { type_: kind.into(), address };
        NodeStatus {
            allocatable: Some(capacity.clone()),
            capacity: Some(capacity),
            addresses: Some(vec![
                address("InternalIP", format!("172.16.{high}.{}", u32::from(low) + 1)),
                address("Hostname", name.to_owned()),
            ]),
            conditions: Some(conditions(now)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
            }),
            node_info: Some(NodeSystemInfo {
                architecture: "amd64".into(),
                operating_system: "linux".into(),
                os_image: "kubewright simulated node".into(),
                kernel_version: "simulated".into(),
                container_runtime_version: "simulated://1".into(),
                kubelet_version: "v1.37.0-kubewright".into(),
                machine_id: format!("{number:032x}"),
                system_uuid: format!("00000000-0000-0000-0000-{number:012x}"),
                boot_id: format!("00000000-0000-0000-0001-{number:012x}"),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }
    }
}

/// The conditions of a node that is well.
fn conditions(now: Timestamp) -> Vec<NodeCondition> {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.into(),
        status: status.into(),
        last_heartbeat_time: Some(timestamp(now)),
        last_transition_time: Some(timestamp(now)),
        reason: Some(reason.into()),
        message: Some(message.into()),
    };
    vec![
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
}

/// The status with heartbeats of now. What a status has already stays, and so does when its conditions changed; what it
/// has not is the node's own.
pub(super) fn alive(mut status: NodeStatus, own: &NodeStatus, now: Timestamp) -> NodeStatus {
    status.allocatable = status.allocatable.or_else(|| own.allocatable.clone());
    status.capacity = status.capacity.or_else(|| own.capacity.clone());
    status.addresses = status.addresses.or_else(|| own.addresses.clone());
    status.daemon_endpoints = status.daemon_endpoints.or_else(|| own.daemon_endpoints.clone());
    status.node_info.clone_from(&own.node_info);
    let known = status.conditions.take().unwrap_or_default();
    let mut fresh = conditions(now);
    for condition in &mut fresh {
        let same =
            known.iter().find(|known| known.type_ == condition.type_ && known.status == condition.status);
        if let Some(same) = same {
            condition.last_transition_time.clone_from(&same.last_transition_time);
        }
    }
    let foreign =
        known.into_iter().filter(|known| conditions(now).iter().all(|own| own.type_ != known.type_));
    fresh.splice(0..0, foreign);
    status.conditions = Some(fresh);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::testing::time;

    #[test]
    fn nodes_have_addresses_and_ranges_of_their_own() {
        let template = NodeTemplate::default().label("zone", "a");
        let (zero, one) = (template.node(0, time(0)), template.node(300, time(0)));
        assert_eq!(zero.metadata.name.as_deref(), Some("node-0"));
        assert_eq!(zero.metadata.labels.as_ref().unwrap()["zone"], "a");
        assert_ne!(zero.spec.as_ref().unwrap().pod_cidr, one.spec.as_ref().unwrap().pod_cidr);
        let address =
            |node: &Node| node.status.as_ref().unwrap().addresses.as_ref().unwrap()[0].address.clone();
        assert_eq!((address(&zero), address(&one)), ("172.16.0.1".to_owned(), "172.16.1.45".to_owned()));
    }

    #[test]
    fn a_heartbeat_keeps_the_time_of_change_and_heals_what_was_broken() {
        let mut status = NodeTemplate::default().node(0, time(0)).status.unwrap();
        let conditions = status.conditions.as_mut().unwrap();
        conditions[3].status = "Unknown".into();
        conditions.push(NodeCondition {
            type_: "NetworkUnavailable".into(),
            status: "False".into(),
            ..NodeCondition::default()
        });
        let own = NodeTemplate::default().node(0, time(300)).status.unwrap();
        assert_eq!(
            alive(NodeStatus::default(), &own, time(300)),
            own,
            "a node that knows nothing learns all"
        );
        let fresh = alive(status, &own, time(300)).conditions.unwrap();
        assert_eq!(fresh.len(), 5);
        assert_eq!(fresh[0].type_, "NetworkUnavailable");
        assert_eq!(
            (&fresh[1].last_transition_time, &fresh[1].last_heartbeat_time),
            (&Some(timestamp(time(0))), &Some(timestamp(time(300))))
        );
        assert_eq!(
            (fresh[4].status.as_str(), &fresh[4].last_transition_time),
            ("True", &Some(timestamp(time(300))))
        );
    }
}
