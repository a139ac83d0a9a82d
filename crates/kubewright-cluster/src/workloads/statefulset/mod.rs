//! The `StatefulSet` controller: pods with names, in order, with volumes of their own.
//!
//! The same pass does everything: replicas are looked at from the lowest ordinal up (created, replaced, waited for),
//! then surplus ones from the highest down, then pods of an old revision from the highest down. An ordered set stops
//! at the first thing it has to wait for; a parallel one goes on.

mod claims;
mod identity;
use crate::{objects, pod};
pub(crate) mod reconcile;
mod status;
mod update;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec},
    core::v1::{PersistentVolumeClaim, Pod},
};

use super::{
    history,
    step::{Note, Step},
};

/// The label that names the revision of a pod.
const REVISION: &str = history::POD_HASH;

/// What a pass does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
    /// When to look again although nothing happens.
    pub(crate) after: Option<Duration>,
    /// What stands in the way; it is tried again.
    pub(crate) problem: Option<String>,
}

/// What a set has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World<'a> {
    /// Its pods.
    pub(crate) pods: &'a [Pod],
    /// Its revisions, lowest first.
    pub(crate) revisions: &'a [ControllerRevision],
    /// The claims of its Pods, by their names.
    pub(crate) claims: &'a [PersistentVolumeClaim],
}

/// A pass in the making.
struct Pass<'a> {
    set: &'a StatefulSet,
    spec: StatefulSetSpec,
    current: ControllerRevision,
    update: ControllerRevision,
    claims: BTreeMap<&'a str, &'a PersistentVolumeClaim>,
    ordered: bool,
    now: Timestamp,
    plan: Plan,
}

/// Whether a pass goes on after this pod.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    Wait,
}

/// Whether a pod bears a name that the set would give.
pub(crate) fn is_member(set: &StatefulSet, pod: &Pod) -> bool {
    identity::ordinal(set, pod).is_some()
}

/// What to do about a set.
pub(crate) fn plan(set: &StatefulSet, world: World<'_>, now: Timestamp) -> Plan {
    let spec = set.spec.clone();
    let before = set.status.clone().unwrap_or_default();
    let mut collisions = before.collision_count.unwrap_or(0);
    let (update, step) = history::current::<StatefulSet>(
        &set.metadata,
        &spec.template,
        world.revisions,
        history::STATEFUL_HASH,
        &mut collisions,
    );
    let named = |revision: &&ControllerRevision| revision.metadata.name == before.current_revision;
    let current = world.revisions.iter().find(named).unwrap_or(&update).clone();
    let mut pass = Pass {
        set,
        ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
        spec,
        current,
        update,
        claims: world
            .claims
            .iter()
            .map(|claim| (claim.metadata.name.as_deref().unwrap_or_default(), claim))
            .collect(),
        now,
        plan: Plan { steps: step.into_iter().collect(), ..Plan::default() },
    };
    let (replicas, condemned) = pass.sort(world.pods);
    if set.metadata.deletion_timestamp.is_none() {
        pass.manage(&replicas, &condemned);
    }
    pass.plan.steps.extend(status::step(&pass, world.pods, collisions, &before));
    pass.plan.after =
        [pass.plan.after, pod::next_available(world.pods, pass.min_ready(), now)].into_iter().flatten().min();
    let live = |revision: &ControllerRevision| {
        let name = revision.metadata.name.as_deref();
        name == pass.current.metadata.name.as_deref()
            || name == pass.update.metadata.name.as_deref()
            || world.pods.iter().any(|pod| objects::label(&pod.metadata, REVISION) == name)
    };
    let history = history::surplus(world.revisions, pass.spec.revision_history_limit.unwrap_or(10), live);
    pass.plan.steps.extend(history);
    pass.plan
}

impl Pass<'_> {
    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn name(&self) -> &str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    /// A pod for every ordinal that there should be, made up where there is none, and the surplus from the highest down.
    fn sort(&self, all: &[Pod]) -> (Vec<Pod>, Vec<Pod>) {
        let range = identity::range(&self.spec);
        let mut known: BTreeMap<i64, &Pod> = BTreeMap::new();
        for pod in all {
            if let Some(ordinal) = identity::ordinal(self.set, pod) {
                known.insert(ordinal, pod);
            }
        }
        let replicas = range
            .clone()
            .map(|ordinal| known.get(&ordinal).map_or_else(|| self.make(ordinal), |pod| (*pod).clone()));
        let condemned = known.iter().rev().filter(|(ordinal, _)| !range.contains(ordinal));
        (replicas.collect(), condemned.map(|(_, pod)| (*pod).clone()).collect())
    }

    /// A pod that does not exist yet, of the revision that its ordinal is to have.
    fn make(&self, ordinal: i64) -> Pod {
        let first = identity::range(&self.spec).start;
        let strategy = self.spec.update_strategy.clone().unwrap_or_default();
        let kept = match strategy.rolling_update {
            Some(limits) => i64::from(limits.partition.unwrap_or(0)),
            None if strategy.type_.as_deref() == Some("RollingUpdate") => {
                let counted = self.set.status.as_ref().and_then(|status| status.current_replicas);
                i64::from(counted.unwrap_or(0))
            }
            None => 0,
        };
        let revision = if ordinal < first + kept { &self.current } else { &self.update };
        let template = history::template(revision).unwrap_or_else(|| self.spec.template.clone());
        identity::pod(self.set, &self.spec, &template, revision, ordinal)
    }

    fn manage(&mut self, replicas: &[Pod], condemned: &[Pod]) {
        let lame = |pod: &&Pod| self.is_unavailable(pod);
        let first_lame = replicas.iter().find(lame).or_else(|| condemned.iter().rev().find(lame));
        let first_lame = first_lame.and_then(|pod| pod.metadata.name.clone());
        for pod in replicas {
            if self.replica(pod) == Next::Wait && (self.ordered || self.plan.problem.is_some()) {
                return;
            }
        }
        for pod in condemned {
            self.own_claims(pod);
        }
        for pod in condemned {
            if self.surplus(pod, first_lame.as_deref()) == Next::Wait && self.ordered {
                return;
            }
        }
        update::roll(self, replicas);
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        pod::is_terminating(pod) || !pod::is_available(pod, self.min_ready(), self.now)
    }

    /// Brings one replica about.
    fn replica(&mut self, pod: &Pod) -> Next {
        if pod::is_terminal(pod) {
            if !pod::is_terminating(pod) {
                self.delete(pod);
            }
            return Next::Wait;
        }
        let created = !pod::phase(pod).is_empty();
        if !created {
            if claims::are_anothers(self, pod) {
                // The claims of a pod that was scaled away are going; the new pod must not get hold of them.
                self.plan.after = Some(Duration::from_secs(1));
                return Next::Wait;
            }
            if !self.make_claims(pod) {
                return Next::Wait;
            }
            self.plan.steps.push(Step::Create(pod.clone().into()));
            self.say("create", pod);
            return if self.ordered { Next::Wait } else { Next::Go };
        }
        if pod::phase(pod) == "Pending" && !self.make_claims(pod) {
            return Next::Wait;
        }
        self.own_claims(pod);
        if self.ordered && self.is_unavailable(pod) {
            return Next::Wait;
        }
        if let Some(mended) = identity::mended(self.set, pod) {
            self.plan.steps.push(Step::Update(mended.into()));
            self.say("update", pod);
        }
        Next::Go
    }

    /// Lets one surplus pod go. Ordered sets wait for the pods below it to be well, except for the first that is not.
    fn surplus(&mut self, pod: &Pod, first_lame: Option<&str>) -> Next {
        if pod::is_terminating(pod) {
            return Next::Wait;
        }
        let lame = !pod::is_available(pod, self.min_ready(), self.now);
        if self.ordered && lame && pod.metadata.name.as_deref() != first_lame {
            return Next::Wait;
        }
        self.delete(pod);
        Next::Wait
    }

    fn delete(&mut self, pod: &Pod) {
        self.plan.steps.push(Step::Delete(pod.clone().into()));
        self.say("delete", pod);
    }

    fn say(&mut self, verb: &str, pod: &Pod) {
        let (reason, title) = words(verb);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("{title} Pod {name} in StatefulSet {} successful", self.name());
        self.plan.steps.push(Step::Say(Note::normal(format!("Successful{reason}"), message)));
    }

    /// Creates the claims of a pod that are not there; whether the pod can have them all.
    fn make_claims(&mut self, pod: &Pod) -> bool {
        for claim in identity::claims(self.set, &self.spec, pod) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            match self.claims.get(name.as_str()) {
                Some(known) if known.metadata.deletion_timestamp.is_some() => {
                    self.plan.problem = Some(format!("pvc {name} is being deleted"));
                    return false;
                }
                Some(_) => {}
                None => {
                    let claim = claims::owned_from_birth(self, claim);
                    self.plan.steps.push(Step::Create(claim.into()));
                    let pod = pod.metadata.name.as_deref().unwrap_or_default();
                    let message =
                        format!("Create Claim {name} Pod {pod} in StatefulSet {} success", self.name());
                    self.plan.steps.push(Step::Say(Note::normal("SuccessfulCreate", message)));
                }
            }
        }
        true
    }

    /// Makes the claims of a pod belong to whom the retention policy says.
    fn own_claims(&mut self, pod: &Pod) {
        let steps = claims::settle(self, pod);
        self.plan.steps.extend(steps);
    }
}

/// A verb as reasons and as messages have it.
pub(crate) fn words(verb: &str) -> (&'static str, &'static str) {
    match verb {
        "create" => ("Create", "Create"),
        "delete" => ("Delete", "Delete"),
        _ => ("Update", "Update"),
    }
}

#[cfg(test)]
mod tests;
