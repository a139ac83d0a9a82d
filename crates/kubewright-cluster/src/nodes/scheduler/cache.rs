//! The scheduler's cache: what is bound to each node, kept up to date by events.
//!
//! A decision reads this instead of listing nodes and Pods. Nodes are ordered by their number of Pods, so that the first
//! ones tried are the ones that win, however many there are. A Pod is assumed to be on its node from the moment of the
//! decision; the event that shows the binding confirms it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use indexmap::IndexSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright::ObjectKey;

use super::{super::requests, ports};
use crate::{objects, pod};

/// Nodes, and the Pods that are bound to them and have not terminated.
#[derive(Debug, Default)]
pub(super) struct SchedulerCache {
    nodes: BTreeMap<String, NodeInfo>,
    /// The nodes that exist, by number of Pods, then by name.
    order: BTreeSet<(usize, String)>,
    /// By uid.
    pods: BTreeMap<String, PodInfo>,
    /// Number of Pods by the uid of their controller, then by node.
    siblings: BTreeMap<String, BTreeMap<String, usize>>,
    /// Pods that no node fits, in the order in which they were tried.
    unschedulable: IndexSet<ObjectKey>,
}

/// A node and what is bound to it. The node is missing while only Pods that name it are known.
#[derive(Debug, Default)]
pub(super) struct NodeInfo {
    pub(super) node: Option<Arc<Node>>,
    pub(super) allocatable: requests::Amounts,
    pub(super) requested: requests::Amounts,
    /// Host ports that are taken, and by how many Pods.
    ports: BTreeMap<(i32, String), usize>,
    pods: usize,
}

impl NodeInfo {
    pub(super) fn is_taken(&self, port: &(i32, String)) -> bool {
        self.ports.contains_key(port)
    }
}

#[derive(Debug)]
struct PodInfo {
    node: String,
    requested: requests::Amounts,
    ports: Vec<(i32, String)>,
    controller: Option<String>,
    /// No event has shown the binding yet.
    assumed: bool,
}

impl SchedulerCache {
    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.order.len()
    }

    /// The nodes that exist, those with the fewest Pods first.
    pub(super) fn by_load(&self) -> impl Iterator<Item = (&str, &NodeInfo)> {
        self.order.iter().filter_map(|(_, name)| Some((name.as_str(), self.nodes.get(name)?)))
    }

    /// Number of Pods with this controller, by node.
    pub(super) fn siblings(&self, controller: &str) -> Option<&BTreeMap<String, usize>> {
        self.siblings.get(controller)
    }

    /// Adds a node, or updates it.
    pub(super) fn set_node(&mut self, node: Arc<Node>) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let info = self.nodes.entry(name.clone()).or_default();
        info.allocatable = requests::allocatable(&node);
        info.node = Some(node);
        self.order.insert((info.pods, name));
    }

    /// Removes a node. Its Pods stay until they are deleted.
    pub(super) fn remove_node(&mut self, name: &str) {
        let Some(info) = self.nodes.get_mut(name) else { return };
        self.order.remove(&(info.pods, name.to_owned()));
        info.node = None;
        if info.pods == 0 {
            self.nodes.remove(name);
        }
    }

    /// Whether a Pod has a node already, as events show it or as was decided.
    pub(super) fn is_bound(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// Counts a Pod on the node that was chosen for it.
    pub(super) fn assume(&mut self, pod: &Pod, node: &str) {
        self.bind(pod, node, true);
    }

    /// Takes back an assumption, unless an event has confirmed it.
    pub(super) fn forget(&mut self, uid: &str) {
        if self.pods.get(uid).is_some_and(|info| info.assumed) {
            self.remove_pod(uid);
        }
    }

    /// Counts a Pod where an event shows it. Returns whether a node has more room than before.
    pub(super) fn set_pod(&mut self, pod: &Pod) -> bool {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if pod::is_terminal(pod) {
            return self.remove_pod(uid);
        }
        // A Pod without a node may be an older version of one that is assumed to have one.
        if let Some(node) = pod::node(pod) {
            match self.pods.get_mut(uid) {
                Some(info) if info.node == node => info.assumed = false,
                _ => self.bind(pod, node, false),
            }
        }
        false
    }

    fn bind(&mut self, pod: &Pod, node: &str, assumed: bool) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.remove_pod(&uid);
        let info = PodInfo {
            node: node.to_owned(),
            requested: pod.spec.as_ref().map(requests::of).unwrap_or_default(),
            ports: pod.spec.as_ref().map(ports).unwrap_or_default(),
            controller: objects::controller_of(&pod.metadata).map(|owner| owner.uid.clone()),
            assumed,
        };
        if let Some(controller) = &info.controller {
            let nodes = self.siblings.entry(controller.clone()).or_default();
            *nodes.entry(info.node.clone()).or_default() += 1;
        }
        self.change(&info, |known, pod| {
            requests::charge(&mut known.requested, &pod.requested);
            for port in &pod.ports {
                *known.ports.entry(port.clone()).or_default() += 1;
            }
            known.pods += 1;
        });
        self.pods.insert(uid, info);
    }

    /// Removes a Pod. Returns whether it had a node.
    pub(super) fn remove_pod(&mut self, uid: &str) -> bool {
        let Some(info) = self.pods.remove(uid) else { return false };
        if let Some(controller) = &info.controller
            && let Some(nodes) = self.siblings.get_mut(controller)
        {
            lower(nodes, &info.node);
            if nodes.is_empty() {
                self.siblings.remove(controller);
            }
        }
        self.change(&info, |known, pod| {
            requests::discharge(&mut known.requested, &pod.requested);
            for port in &pod.ports {
                lower(&mut known.ports, port);
            }
            known.pods -= 1;
        });
        if self.nodes.get(&info.node).is_some_and(|known| known.pods == 0 && known.node.is_none()) {
            self.nodes.remove(&info.node);
        }
        true
    }

    /// Changes what a node has, and its place in the order.
    fn change(&mut self, pod: &PodInfo, change: impl FnOnce(&mut NodeInfo, &PodInfo)) {
        let known = self.nodes.entry(pod.node.clone()).or_default();
        let before = known.pods;
        change(known, pod);
        let after = known.pods;
        if known.node.is_some() && before != after {
            self.order.remove(&(before, pod.node.clone()));
            self.order.insert((after, pod.node.clone()));
        }
    }

    /// Notes a Pod that may have to be tried again.
    pub(super) fn add_unschedulable(&mut self, key: &ObjectKey) {
        self.unschedulable.insert(key.clone());
    }

    /// Drops the note of a Pod that has a node, or is gone.
    pub(super) fn remove_unschedulable(&mut self, key: &ObjectKey) {
        self.unschedulable.shift_remove(key);
    }

    /// The Pods to try again now that something has changed. Their notes are dropped.
    pub(super) fn take_unschedulable(&mut self) -> IndexSet<ObjectKey> {
        std::mem::take(&mut self.unschedulable)
    }
}

/// Lowers a number, and removes it at zero.
fn lower<Q: ?Sized + Ord, T: Ord + std::borrow::Borrow<Q>>(numbers: &mut BTreeMap<T, usize>, key: &Q) {
    if let Some(number) = numbers.get_mut(key) {
        *number -= 1;
        if *number == 0 {
            numbers.remove(key);
        }
    }
}
