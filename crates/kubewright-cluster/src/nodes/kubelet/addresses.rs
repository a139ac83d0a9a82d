//! Addresses of Pods: the lowest that is free in the range of the node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright::cache::Event;

use crate::pod;

/// The addresses that are taken, kept up to date by events.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// By node, the uid of the Pod that has the address with this last octet.
    nodes: BTreeMap<String, BTreeMap<u8, String>>,
    /// By uid, the place in the other map.
    pods: BTreeMap<String, (String, u8)>,
}

impl Addresses {
    /// Brings the addresses up to date.
    pub(super) fn observe(&mut self, event: &Event<Pod>) {
        match event {
            Event::Deleted { object, .. } => self.release(object.uid()),
            Event::Added { object, .. } => self.take_in(object.load().ok().as_deref()),
            Event::Updated { old, new } => {
                if old.uid() != new.uid() {
                    self.release(old.uid());
                }
                self.take_in(new.load().ok().as_deref());
            }
        }
    }

    fn take_in(&mut self, pod: Option<&Pod>) {
        let Some(pod) = pod else { return };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if pod::is_terminal(pod) {
            self.release(uid);
            return;
        }
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
        let last = address.and_then(|address| address.rsplit_once('.')?.1.parse().ok());
        if let (Some(node), Some(last), false) = (pod::node(pod), last, is_on_host(pod)) {
            self.record(node, last, uid);
        }
    }

    fn record(&mut self, node: &str, last: u8, uid: &str) {
        let place = (node.to_owned(), last);
        if self.pods.get(uid) != Some(&place) {
            self.release(uid);
            self.nodes.entry(place.0.clone()).or_default().insert(last, uid.to_owned());
            self.pods.insert(uid.to_owned(), place);
        }
    }

    fn release(&mut self, uid: &str) {
        let Some((node, last)) = self.pods.remove(uid) else { return };
        if let Some(taken) = self.nodes.get_mut(&node) {
            if taken.get(&last).is_some_and(|holder| holder == uid) {
                taken.remove(&last);
            }
            if taken.is_empty() {
                self.nodes.remove(&node);
            }
        }
    }

    /// The address of a Pod: the one that it has, that of its host, the one that it was given before, or the lowest that
    /// is free; none when no address is left.
    pub(super) fn allocate(&mut self, pod: &Pod, node: &Node, host_ip: &str) -> Option<String> {
        if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) {
            return Some(address);
        }
        if is_on_host(pod) {
            return Some(host_ip.to_owned());
        }
        let range = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref()).unwrap_or("10.128.0.0/24");
        let network = range.rsplit_once('.').map_or("10.128.0", |(network, _)| network);
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let last = match self.pods.get(uid) {
            Some((known, last)) if known == name => *last,
            _ => {
                let taken = self.nodes.get(name);
                (2..255).find(|last| taken.is_none_or(|taken| !taken.contains_key(last)))?
            }
        };
        self.record(name, last, uid);
        Some(format!("{network}.{last}"))
    }
}

fn is_on_host(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, address: Option<&str>, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": "n", "containers": []},
            "status": {"podIP": address, "phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn an_address_is_given_once_until_its_pod_terminates() {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.1.7.0/24"}}))
                .unwrap();
        let mut addresses = Addresses::default();
        let allocate =
            |addresses: &mut Addresses, uid: &str| addresses.allocate(&pod(uid, None, ""), &node, "10.0.0.1");
        assert_eq!(allocate(&mut addresses, "a").as_deref(), Some("10.1.7.2"));
        assert_eq!(allocate(&mut addresses, "b").as_deref(), Some("10.1.7.3"));
        assert_eq!(
            allocate(&mut addresses, "a").as_deref(),
            Some("10.1.7.2"),
            "a failed write is tried again"
        );
        addresses.take_in(Some(&pod("a", Some("10.1.7.2"), "Succeeded")));
        assert_eq!(allocate(&mut addresses, "c").as_deref(), Some("10.1.7.2"));
        addresses.take_in(Some(&pod("d", Some("10.1.7.4"), "Running")));
        assert_eq!(allocate(&mut addresses, "e").as_deref(), Some("10.1.7.5"));
    }
}
