//! The `DaemonSet` controller: one pod on every node that fits.
//!
//! The controller chooses the nodes; the scheduler only confirms, because each pod is pinned to its node by an affinity
//! to the node's name. Failed pods are deleted and made again, with a back-off per node.

mod placement;
use crate::{objects, pod};
pub(crate) mod reconcile;
mod status;
mod update;

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec},
    core::v1::{Node, Pod},
};

use super::{
    history, selector,
    step::{Note, Step},
};

/// At most so many pods are created or deleted in one pass.
const BURST: usize = 250;

/// What a pass does: first the steps, then deletions and creations of pods, then the status.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    /// Writes before any pod is touched, in order.
    pub(crate) before: Vec<Step>,
    /// Pods to delete.
    pub(crate) delete: Vec<Pod>,
    /// Pods to create.
    pub(crate) create: Vec<Pod>,
    /// Writes after that, in order.
    pub(crate) after_pods: Vec<Step>,
    /// When to look again although nothing happens.
    pub(crate) after: Option<Duration>,
}

/// What a set has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World<'a> {
    /// Its pods.
    pub(crate) pods: &'a [Pod],
    /// Its revisions, lowest first.
    pub(crate) revisions: &'a [ControllerRevision],
    /// The nodes of the cluster.
    pub(crate) nodes: &'a [Node],
}

/// A pass in the making.
struct Pass<'a> {
    set: &'a DaemonSet,
    spec: DaemonSetSpec,
    hash: String,
    nodes: &'a [Node],
    /// The pods of each node, oldest first.
    by_node: BTreeMap<&'a str, Vec<&'a Pod>>,
    now: Timestamp,
}

/// How long failed pods on a node are left before they are replaced: the longer, the more often they fail.
#[derive(Debug, Default)]
pub(crate) struct FailedBackoff {
    nodes: BTreeMap<(String, String), (Timestamp, SignedDuration)>,
}

impl FailedBackoff {
    const FIRST: SignedDuration = SignedDuration::from_secs(1);
    const LONGEST: SignedDuration = SignedDuration::from_secs(15 * 60);

    /// How long to wait before a failed pod of this set on this node may be replaced; nothing when it may be now.
    fn wait(&mut self, set: &str, node: &str, now: Timestamp) -> Option<Duration> {
        self.nodes.retain(|_, (since, _)| now.duration_since(*since) <= Self::LONGEST * 2);
        let key = (set.to_owned(), node.to_owned());
        let Some((since, delay)) = self.nodes.get(&key).copied() else {
            self.nodes.insert(key, (now, Self::FIRST));
            return None;
        };
        let left = delay - now.duration_since(since);
        if left > SignedDuration::ZERO {
            return left.try_into().ok();
        }
        self.nodes.insert(key, (now, (delay * 2).min(Self::LONGEST)));
        None
    }
}

/// What to do about a set.
pub(crate) fn plan(set: &DaemonSet, world: World<'_>, failures: &mut FailedBackoff, now: Timestamp) -> Plan {
    let spec = set.spec.clone();
    if selector::is_everything(&spec.selector) {
        let message = "This daemon set is selecting all pods. A non-empty selector is required.";
        return Plan { before: vec![Step::Say(Note::warning("SelectingAll", message))], ..Plan::default() };
    }
    if set.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let before = set.status.clone().unwrap_or_default();
    let mut collisions = before.collision_count.unwrap_or(0);
    let (revision, step) = history::current::<DaemonSet>(
        &set.metadata,
        &spec.template,
        world.revisions,
        history::POD_HASH,
        &mut collisions,
    );
    let hash = objects::label(&revision.metadata, history::POD_HASH).unwrap_or_default().to_owned();
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in world.pods {
        if let Some(node) = placement::target(pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by_key(|pod| created(pod));
    }
    let pass = Pass { set, spec, hash, nodes: world.nodes, by_node, now };
    let mut plan = Plan { before: step.into_iter().collect(), ..Plan::default() };
    pass.manage(&mut plan, failures);
    if plan.create.is_empty() && plan.delete.is_empty() {
        update::roll(&pass, &mut plan);
    }
    plan.create.truncate(BURST);
    plan.delete.truncate(BURST);
    plan.after_pods.extend(status::step(&pass, collisions, &before));
    let next = pod::next_available(world.pods, pass.min_ready(), now);
    plan.after = [plan.after, next].into_iter().flatten().min();
    let live = |known: &ControllerRevision| {
        let hash = objects::label(&known.metadata, history::POD_HASH);
        known.metadata.name == revision.metadata.name
            || world.pods.iter().any(|pod| objects::label(&pod.metadata, history::POD_HASH) == hash)
    };
    let limit = pass.spec.revision_history_limit.unwrap_or(10);
    plan.after_pods.extend(history::surplus(world.revisions, limit, live));
    plan
}

fn created(pod: &Pod) -> (Option<Timestamp>, Option<String>) {
    (pod.metadata.creation_timestamp.as_ref().map(|time| time.0), pod.metadata.name.clone())
}

impl Pass<'_> {
    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod::is_available(pod, self.min_ready(), self.now)
    }

    /// Whether a pod is of the present template.
    fn is_updated(&self, pod: &Pod) -> bool {
        let generation = placement::template_generation(self.set);
        objects::label(&pod.metadata, history::POD_HASH) == Some(&self.hash)
            || (generation.is_some() && objects::label(&pod.metadata, placement::GENERATION) == generation)
    }

    /// Pods where there should be some, none where there should not, and no failed ones.
    fn manage(&self, plan: &mut Plan, failures: &mut FailedBackoff) {
        for node in self.nodes {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let (should_run, may_stay) = placement::decide(&self.spec, node);
            let here = self.by_node.get(name).map(Vec::as_slice).unwrap_or_default();
            if !may_stay {
                plan.delete
                    .extend(here.iter().filter(|pod| !pod::is_terminating(pod)).map(|pod| (*pod).clone()));
            } else if should_run {
                self.manage_node(name, here, plan, failures);
            }
        }
        // What was on a node that is no more has nowhere to be.
        let is_known = |name: &str| self.nodes.iter().any(|node| node.metadata.name.as_deref() == Some(name));
        for (_, stranded) in self.by_node.iter().filter(|(name, _)| !is_known(name)) {
            let unbound = stranded.iter().filter(|pod| pod::node(pod).is_none() && !pod::is_terminating(pod));
            plan.delete.extend(unbound.map(|pod| (*pod).clone()));
        }
    }

    fn manage_node(&self, node: &str, here: &[&Pod], plan: &mut Plan, failures: &mut FailedBackoff) {
        let mut running = Vec::new();
        let mut busy = false;
        for pod in here.iter().copied() {
            if pod::is_terminating(pod) {
                busy = true;
            } else if pod::phase(pod) == "Failed" {
                busy = true;
                let set = self.set.metadata.uid.as_deref().unwrap_or_default();
                if let Some(wait) = failures.wait(set, node, self.now) {
                    plan.after = Some(plan.after.map_or(wait, |after| after.min(wait)));
                    continue;
                }
                let key = format!(
                    "{}/{}",
                    pod.metadata.namespace.as_deref().unwrap_or_default(),
                    pod.metadata.name.as_deref().unwrap_or_default()
                );
                let message = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
                plan.before.push(Step::Say(Note::warning("FailedDaemonPod", message)));
                plan.delete.push(pod.clone());
            } else if pod::phase(pod) == "Succeeded" {
                busy = true;
                let message = format!("Found succeeded daemon pod on node {node}, will try to delete it");
                plan.before.push(Step::Say(Note::normal("SucceededDaemonPod", message)));
                plan.delete.push(pod.clone());
            } else {
                running.push(pod);
            }
        }
        if running.is_empty() {
            if !busy {
                plan.create.push(placement::pod(self.set, &self.spec, &self.hash, node));
            }
            return;
        }
        update::drop_surplus(self, &running, plan);
    }
}

#[cfg(test)]
mod tests;
