//! A pass over a deployment in memory: its sets, what happens to them, and the writes that come of it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

use super::{
    super::{
        hash,
        percent::{self, Round},
        step::{Note, Step},
    },
    Plan, annotations, conditions,
};
use crate::objects;

/// The label that tells the pods of one template from those of another.
const HASH: &str = "pod-template-hash";

/// The state of a pass.
#[derive(Debug)]
pub(super) struct Rollout {
    /// As the cache has it.
    before: Deployment,
    /// As it will be.
    pub(super) deployment: Deployment,
    pub(super) spec: DeploymentSpec,
    /// The set of the deployment's template.
    pub(super) new: Option<ReplicaSet>,
    /// The others, oldest first.
    pub(super) old: Vec<ReplicaSet>,
    /// The sets as the cache has them, to see which have changed.
    known: Vec<ReplicaSet>,
    pub(super) now: Timestamp,
    steps: Vec<Step>,
    notes: Vec<Note>,
    deletions: Vec<ReplicaSet>,
}

impl Rollout {
    pub(super) fn new(deployment: &Deployment, mut sets: Vec<ReplicaSet>, now: Timestamp) -> Self {
        sets.sort_by_key(age);
        let spec = deployment.spec.clone();
        let place = sets
            .iter()
            .position(|set| set_template(set).is_some_and(|own| same_template(own, &spec.template)));
        let known = sets.clone();
        let new = place.map(|place| sets.remove(place));
        Self {
            before: deployment.clone(),
            deployment: deployment.clone(),
            spec,
            new,
            old: sets,
            known,
            now,
            steps: Vec::new(),
            notes: Vec::new(),
            deletions: Vec::new(),
        }
    }

    /// How many replicas are asked for.
    pub(super) fn desired(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    pub(super) fn is_recreate(&self) -> bool {
        self.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
    }

    /// How many more, and how many fewer, replicas than asked for a rolling update may have: never neither.
    fn fences(&self) -> (i32, i32) {
        if self.is_recreate() {
            return (0, 0);
        }
        let limits = self.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.clone());
        let limits = limits.unwrap_or_default();
        let desired = self.desired();
        let surge = limits.max_surge.map_or(0, |value| percent::resolve(&value, desired, Round::Up));
        let lack = limits.max_unavailable.map_or(0, |value| percent::resolve(&value, desired, Round::Down));
        if surge == 0 && lack == 0 { (0, 1) } else { (surge, lack) }
    }

    pub(super) fn max_surge(&self) -> i32 {
        self.fences().0
    }

    pub(super) fn max_unavailable(&self) -> i32 {
        self.fences().1.min(self.desired())
    }

    /// Every set, the newest last.
    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// How many replicas the sets are asked for together.
    pub(super) fn total(&self) -> i32 {
        self.all().map(replicas).sum()
    }

    /// How many of them are available.
    pub(super) fn available(&self) -> i32 {
        self.all().map(available).sum()
    }

    fn next_revision(&self) -> i64 {
        self.old.iter().filter_map(|set| annotations::revision(&set.metadata)).max().unwrap_or(0) + 1
    }

    /// Brings the annotations of an existing new set up to date and takes over its revision.
    pub(super) fn find_new_set(&mut self) {
        let revision = self.next_revision();
        let Some(set) = self.new.as_mut() else { return };
        annotations::inherit(&self.deployment, set, revision);
        let asked = self.spec.min_ready_seconds.unwrap_or(0);
        if set.spec.min_ready_seconds.unwrap_or(0) != asked {
            set.spec.min_ready_seconds = Some(asked);
        }
        if let Some(revision) = objects::annotation(&set.metadata, annotations::REVISION).map(str::to_owned) {
            annotations::set(&mut self.deployment.metadata, annotations::REVISION, &revision);
        }
        let name = set.metadata.name.clone().unwrap_or_default();
        conditions::found(&mut self.deployment, &name, self.now);
    }

    /// Creates the set of the template unless there is one. Its size is what the update's limits leave room for.
    pub(super) fn ensure_new_set(&mut self) {
        if self.new.is_some() {
            return;
        }
        let revision = self.next_revision();
        let collisions = self.deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = hash::of_template(&self.spec.template, collisions);
        let mut template = self.spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH.into(), hash.clone());
        let labels = labels.clone();
        let mut chosen: LabelSelector = self.spec.selector.clone();
        chosen.match_labels.get_or_insert_default().insert(HASH.into(), hash.clone());
        let owner = &self.deployment.metadata;
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(hash::name(owner.name.as_deref().unwrap_or_default(), &hash)),
                namespace: owner.namespace.clone(),
                labels: Some(labels),
                owner_references: Some(vec![objects::controller_reference::<Deployment>(owner)]),
                ..ObjectMeta::default()
            },
            spec: ReplicaSetSpec {
                replicas: Some(0),
                min_ready_seconds: self.spec.min_ready_seconds.filter(|seconds| *seconds != 0),
                selector: chosen,
                template: Some(template),
            },
            status: None,
        };
        let size = self.room_for(0);
        annotations::inherit(&self.deployment, &mut set, revision);
        annotations::size(&mut set, self.desired(), self.desired() + self.max_surge());
        set.spec.replicas = Some(size);
        self.steps.push(Step::Create(set.clone().into()));
        let name = set.metadata.name.clone().unwrap_or_default();
        if size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            self.steps.push(Step::Say(Note::normal("ScalingReplicaSet", message)));
        }
        annotations::set(&mut self.deployment.metadata, annotations::REVISION, &revision.to_string());
        conditions::created(&mut self.deployment, &name, self.now);
        self.steps.push(Step::Status(self.deployment.clone().into()));
        self.new = Some(set);
    }

    /// How large the new set may be, given that it is asked for `current` now and the others stay.
    pub(super) fn room_for(&self, current: i32) -> i32 {
        if self.is_recreate() {
            return self.desired();
        }
        let room = self.desired() + self.max_surge() - self.total();
        if room <= 0 { current } else { current + room.min(self.desired() - current) }
    }

    /// Changes the size of a set; whether it was another one.
    pub(super) fn resize(&mut self, which: Which, size: i32, always_annotate: bool) -> bool {
        let (desired, maximum) = (self.desired(), self.desired() + self.max_surge());
        let set = match which {
            Which::New => self.new.as_mut(),
            Which::Old(place) => self.old.get_mut(place),
        };
        let Some(set) = set else { return false };
        let before = replicas(set);
        if before == size && !always_annotate {
            return false;
        }
        annotations::size(set, desired, maximum);
        if before == size {
            return false;
        }
        set.spec.replicas = Some(size);
        let way = if before < size { "up" } else { "down" };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Scaled {way} replica set {name} from {before} to {size}");
        self.notes.push(Note::normal("ScalingReplicaSet", message));
        true
    }

    /// Deletes old sets beyond the history limit, lowest revision first, if nothing of them runs.
    pub(super) fn clean_up(&mut self) {
        let Some(limit) = self.spec.revision_history_limit.and_then(|limit| usize::try_from(limit).ok())
        else {
            return;
        };
        let mut alive: Vec<&ReplicaSet> =
            self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        alive.sort_by_key(|set| (annotations::revision(&set.metadata).unwrap_or(0), age(set)));
        let surplus = alive.len().saturating_sub(limit);
        let idle = |set: &&&ReplicaSet| {
            let status = set.status.as_ref();
            replicas(set) == 0
                && status.is_none_or(|status| status.replicas == 0)
                && status.and_then(|status| status.observed_generation) >= set.metadata.generation
        };
        self.deletions = alive[..surplus].iter().filter(idle).map(|set| (*set).clone()).collect();
    }

    /// The writes of this pass; `status` says what the deployment tells about itself at the end of it.
    pub(super) fn finish(mut self, status: fn(&Rollout) -> DeploymentStatus) -> Plan {
        let changed = |set: &&ReplicaSet| {
            let known = self.known.iter().find(|known| known.metadata.name == set.metadata.name);
            known.is_some_and(|known| known != *set)
        };
        let updates: Vec<Step> =
            self.all().filter(changed).map(|set| Step::Update(set.clone().into())).collect();
        self.steps.extend(updates);
        self.steps.extend(self.notes.drain(..).map(Step::Say));
        self.steps.extend(self.deletions.drain(..).map(|set| Step::Delete(set.into())));
        let after = status(&self);
        let written = self.steps.iter().rev().find_map(|step| match step {
            Step::Status(super::super::step::Object::Deployment(written)) => Some((**written).clone()),
            _ => None,
        });
        let last = written.as_ref().unwrap_or(&self.before);
        self.deployment.status = Some(after);
        if last.status.clone().unwrap_or_default() != self.deployment.status.clone().unwrap_or_default()
            || last.metadata.annotations != self.deployment.metadata.annotations
        {
            self.steps.push(Step::Status(self.deployment.clone().into()));
        }
        let after: Option<Duration> = conditions::next_look(&self.deployment, self.now);
        Plan { steps: self.steps, after }
    }
}

/// One of the sets of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The set of the present template.
    New,
    /// One of the others, by place.
    Old(usize),
}

/// By creation, then by name.
fn age(set: &ReplicaSet) -> (Option<Timestamp>, Option<String>) {
    (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.metadata.name.clone())
}

fn set_template(set: &ReplicaSet) -> Option<&PodTemplateSpec> {
    set.spec.template.as_ref()
}

/// Whether two templates are the same but for the label that names their hash.
pub(super) fn same_template(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    let plain = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        let meta = template.metadata.get_or_insert_default();
        let labels = meta.labels.get_or_insert_default();
        labels.remove(HASH);
        template
    };
    plain(a) == plain(b)
}

/// How many replicas a set is asked for.
pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// How many of its replicas are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}
