//! Who owns whom: a graph over every object of the cluster, by identity.
//!
//! Edges are owner references, kept by the owner's uid, so an owner that was never seen still has dependents. What
//! happens to an object is told to the graph, and the graph says whose turn it is; whether anything is to be done then is
//! decided with fresh reads (see [`judge`](super::judge)), because one kind's news may come before another's.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The finalizer of an object whose dependents are to lose their reference to it.
pub const ORPHAN: &str = "orphan";
/// The finalizer of an object that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";

/// An object, as far as the collector cares.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its identity.
    pub uid: String,
    /// Group and version under which it was seen.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; `None` for objects of the cluster.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl Node {
    /// Whether it waits for its dependents to go.
    pub fn waits_for_dependents(&self) -> bool {
        self.deleting && self.finalizers.iter().any(|finalizer| finalizer == FOREGROUND)
    }

    /// Whether its dependents are to be let go.
    pub fn orphans_dependents(&self) -> bool {
        self.deleting && self.finalizers.iter().any(|finalizer| finalizer == ORPHAN)
    }

    /// Whether a reference from an object in `namespace` means this node: same identity and same place.
    fn is_meant_by(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && group(&self.api_version) == group(&reference.api_version)
            && (self.namespace.is_none() || self.namespace.as_deref() == namespace)
    }
}

/// The group of an `apiVersion`.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Turn {
    /// See whether this object should still be there.
    Examine(String),
    /// Take the references to this object from its dependents.
    Orphan(String),
}

/// The graph.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: BTreeMap<String, Node>,
    /// By the owner's uid, the uids of those that refer to it.
    dependents: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// The object of an identity.
    pub fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// How many objects it knows.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Those that refer to an owner.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|dependent| self.nodes.get(dependent))
    }

    /// Those that hold back an owner that waits for its dependents.
    pub fn blocking(&self, uid: &str) -> impl Iterator<Item = &Node> {
        self.dependents(uid)
            .filter(move |node| node.owners.iter().any(|owner| owner.uid == uid && blocks(owner)))
    }

    /// Whether the owner that a reference means has been seen and not gone. The opposite proves nothing.
    pub fn knows_owner(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        self.nodes.get(&reference.uid).is_some_and(|node| node.is_meant_by(reference, namespace))
    }

    /// Takes in an object as it is now.
    pub fn observe(&mut self, node: Node) -> Vec<Turn> {
        let mut turns = Vec::new();
        let old = self.nodes.remove(&node.uid);
        let before = old.as_ref().map(|old| old.owners.as_slice()).unwrap_or_default();
        for gone in before.iter().filter(|owner| !node.owners.iter().any(|kept| kept.uid == owner.uid)) {
            self.unlink(&gone.uid, &node.uid);
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(node.uid.clone());
        }
        // An owner that waits may have been waiting for a reference that has just gone, or is no longer blocking.
        for was in before.iter().filter(|owner| blocks(owner)) {
            if !node.owners.iter().any(|owner| owner.uid == was.uid && blocks(owner)) {
                turns.extend(self.waiting_owner(&was.uid));
            }
        }
        if node.orphans_dependents() {
            turns.push(Turn::Orphan(node.uid.clone()));
        }
        if node.waits_for_dependents() {
            if !old.as_ref().is_some_and(Node::waits_for_dependents) {
                let dependents = self.dependents(&node.uid);
                turns.extend(dependents.map(|dependent| Turn::Examine(dependent.uid.clone())));
            }
            turns.push(Turn::Examine(node.uid.clone()));
        } else if node.owners != before && self.doubtful(&node) {
            turns.push(Turn::Examine(node.uid.clone()));
        }
        self.nodes.insert(node.uid.clone(), node);
        turns
    }

    /// Takes in that an object is gone.
    pub fn forget(&mut self, uid: &str) -> Vec<Turn> {
        let Some(node) = self.nodes.remove(uid) else { return Vec::new() };
        let mut turns = Vec::new();
        for owner in &node.owners {
            self.unlink(&owner.uid, uid);
            turns.extend(self.waiting_owner(&owner.uid));
        }
        turns.extend(self.dependents(uid).map(|dependent| Turn::Examine(dependent.uid.clone())));
        turns
    }

    /// Whether one of an object's owners has not been seen where it should be, or waits for its dependents.
    fn doubtful(&self, node: &Node) -> bool {
        node.owners.iter().any(|owner| {
            !self.knows_owner(owner, node.namespace.as_deref())
                || self.nodes.get(&owner.uid).is_some_and(Node::waits_for_dependents)
        })
    }

    fn waiting_owner(&self, uid: &str) -> Option<Turn> {
        self.nodes
            .get(uid)
            .filter(|owner| owner.waits_for_dependents())
            .map(|owner| Turn::Examine(owner.uid.clone()))
    }

    fn unlink(&mut self, owner: &str, dependent: &str) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

fn blocks(owner: &OwnerReference) -> bool {
    owner.block_owner_deletion == Some(true)
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
