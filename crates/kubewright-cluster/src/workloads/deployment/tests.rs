use k8s_openapi::{
    api::apps::v1::{
        DeploymentSpec, DeploymentStatus, DeploymentStrategy, ReplicaSetStatus, RollingUpdateDeployment,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    super::{
        step::Object,
        testing::{controlled, meta, pod, selector, template, time},
    },
    *,
};
use crate::objects::{self, annotation};

/// A deployment and its sets, on which plans are carried out as the server and the `ReplicaSet` controller would.
struct World {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    now: i64,
    said: Vec<String>,
}

impl World {
    fn new(replicas: i32) -> Self {
        let spec = DeploymentSpec {
            replicas: Some(replicas),
            selector: selector(),
            template: template(),
            revision_history_limit: Some(10),
            progress_deadline_seconds: Some(600),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".into()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::String("25%".into())),
                    max_unavailable: Some(IntOrString::String("25%".into())),
                }),
            }),
            ..DeploymentSpec::default()
        };
        let deployment = Deployment { metadata: meta("web"), spec, status: None };
        Self { deployment, sets: Vec::new(), pods: Vec::new(), now: 0, said: Vec::new() }
    }

    fn spec(&mut self) -> &mut DeploymentSpec {
        *self.deployment.metadata.generation.as_mut().unwrap() += 1;
        &mut self.deployment.spec
    }

    fn image(&mut self, image: &str) {
        self.spec().template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    }

    fn step(&mut self) -> Plan {
        self.now += 1;
        let plan = plan(&self.deployment, self.sets.clone(), &self.pods, time(self.now));
        for step in &plan.steps {
            match step.clone() {
                Step::Create(Object::ReplicaSet(mut set)) => {
                    set.metadata.uid = set.metadata.name.clone();
                    set.metadata.generation = Some(1);
                    set.metadata.creation_timestamp = Some(objects::timestamp(time(self.now)));
                    self.sets.push(*set);
                }
                Step::Update(Object::ReplicaSet(mut set)) => {
                    let place = self.sets.iter().position(|known| known.metadata.name == set.metadata.name);
                    let known = &mut self.sets[place.unwrap()];
                    if known.spec != set.spec {
                        *set.metadata.generation.as_mut().unwrap() += 1;
                    }
                    *known = *set;
                }
                Step::Delete(Object::ReplicaSet(set)) => {
                    self.sets.retain(|known| known.metadata.name != set.metadata.name);
                }
                Step::Status(Object::Deployment(deployment)) => self.deployment = *deployment,
                Step::Say(note) => self.said.push(note.message),
                other => panic!("{other:?}"),
            }
        }
        plan
    }

    /// Every set has the pods that it is asked for, of which so many are available.
    fn pods_are(&mut self, available: impl Fn(&ReplicaSet) -> i32) {
        for set in &mut self.sets {
            let replicas = rollout::replicas(set);
            let has = available(set).min(replicas);
            set.status = Some(ReplicaSetStatus {
                replicas,
                ready_replicas: objects::omit_zero(has),
                available_replicas: objects::omit_zero(has),
                observed_generation: set.metadata.generation,
                terminating_replicas: Some(0),
                ..ReplicaSetStatus::default()
            });
        }
    }

    fn settle(&mut self) {
        for _ in 0..100 {
            if self.step().steps.is_empty() {
                return;
            }
            self.pods_are(|_| i32::MAX);
        }
        panic!("it does not settle: {:?}", self.deployment.status);
    }

    fn status(&self) -> DeploymentStatus {
        self.deployment.status.clone().unwrap_or_default()
    }

    fn conditions(&self) -> Vec<(String, String)> {
        let conditions = self.status().conditions.unwrap_or_default();
        conditions.into_iter().map(|c| (c.type_.unwrap_or_default(), c.reason.unwrap_or_default())).collect()
    }

    fn set(&self, image: &str) -> &ReplicaSet {
        let found = self.sets.iter().find(|set| {
            let spec = set.spec.template.as_ref().unwrap().spec.as_ref().unwrap();
            spec.containers[0].image.as_deref() == Some(image)
        });
        found.unwrap_or_else(|| panic!("no set of {image}"))
    }
}

#[test]
fn the_writes_of_a_new_deployment_come_in_the_order_that_watchers_know() {
    let mut world = World::new(2);
    let first = world.step();
    let kinds: Vec<&str> = first
        .steps
        .iter()
        .map(|step| match step {
            Step::Create(_) => "create",
            Step::Say(_) => "say",
            Step::Status(_) => "status",
            _ => "?",
        })
        .collect();
    assert_eq!(kinds, ["create", "say", "status", "status"]);
    let Step::Status(Object::Deployment(early)) = &first.steps[2] else { panic!() };
    let early_status = early.status.clone().unwrap();
    assert_eq!(early_status.observed_generation, None, "the first write tells of the set alone");
    assert_eq!(
        conditions::get(&early_status, "Progressing").unwrap().reason.as_deref(),
        Some("NewReplicaSetCreated")
    );
    let set = &world.sets[0];
    assert_eq!(
        world.said,
        [format!("Scaled up replica set {} from 0 to 2", set.metadata.name.as_ref().unwrap())]
    );
    assert_eq!(annotation(&set.metadata, "deployment.kubernetes.io/max-replicas"), Some("3"));
    let reasons =
        |world: &World| world.conditions().into_iter().map(|(_, reason)| reason).collect::<Vec<_>>();
    assert_eq!(reasons(&world), ["NewReplicaSetCreated", "MinimumReplicasUnavailable"]);
    world.pods_are(|_| 0);
    world.step();
    assert_eq!(reasons(&world), ["MinimumReplicasUnavailable", "ReplicaSetUpdated"]);
    let started = conditions::get(&world.status(), "Progressing").unwrap().last_transition_time.clone();
    world.pods_are(|_| 1);
    world.step();
    let progressing = conditions::get(&world.status(), "Progressing").unwrap().clone();
    assert_eq!(progressing.last_transition_time, started);
    assert_eq!(progressing.last_update_time, Some(objects::timestamp(time(world.now))));
    world.pods_are(|_| 2);
    world.settle();
    assert_eq!(reasons(&world), ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    world.pods_are(|_| 1);
    world.step();
    assert_eq!(reasons(&world), ["NewReplicaSetAvailable", "MinimumReplicasUnavailable"]);
}

#[test]
fn a_rolling_update_keeps_its_limits_at_every_moment() {
    for (replicas, surge, lack) in [(1, 1, 0), (4, 1, 1), (10, 3, 2), (3, 0, 1), (5, 5, 5), (2, 0, 0)] {
        let mut world = World::new(replicas);
        world.spec().strategy.as_mut().unwrap().rolling_update = Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(lack)),
        });
        world.settle();
        world.image("nginx:2");
        // With neither surge nor lack one pod may be lacking, or nothing could ever move.
        let lack = if surge == 0 && lack == 0 { 1 } else { lack };
        for _ in 0..60 {
            let moved = !world.step().steps.is_empty();
            let total: i32 = world.sets.iter().map(rollout::replicas).sum();
            assert!(total <= replicas + surge, "{total} of {replicas}+{surge}");
            // Deleted pods are gone before created ones are ready.
            let ready: i32 = world
                .sets
                .iter()
                .map(|set| {
                    set.status
                        .as_ref()
                        .map_or(0, |s| s.available_replicas.unwrap_or(0))
                        .min(rollout::replicas(set))
                })
                .sum();
            assert!(ready >= replicas - lack, "{ready} of {replicas}-{lack}");
            if !moved {
                break;
            }
            world.pods_are(|_| i32::MAX);
        }
        assert_eq!(rollout::replicas(world.set("nginx:2")), replicas);
        assert_eq!(rollout::replicas(world.set("nginx:1")), 0);
    }
}

#[test]
fn a_rollout_that_never_becomes_ready_stops_within_its_limits_and_times_out() {
    let mut world = World::new(4);
    world.settle();
    world.image("nginx:broken");
    for _ in 0..20 {
        world.step();
        let broken = world.set("nginx:broken").metadata.name.clone();
        world.pods_are(|set| if set.metadata.name == broken { 0 } else { i32::MAX });
    }
    assert_eq!(rollout::replicas(world.set("nginx:broken")), 2, "one more and one fewer are allowed");
    assert_eq!(rollout::replicas(world.set("nginx:1")), 3);
    let look = world.step().after.expect("it looks again");
    world.now += i64::try_from(look.as_secs()).unwrap();
    world.step();
    assert!(world.conditions().contains(&("Progressing".into(), "ProgressDeadlineExceeded".into())));
    assert_eq!(world.step(), Plan::default(), "and then waits for a change");
}

#[test]
fn going_back_to_an_old_template_reuses_its_set() {
    let mut world = World::new(2);
    world.settle();
    world.image("nginx:2");
    world.settle();
    world.image("nginx:1");
    world.settle();
    assert_eq!(world.sets.len(), 2);
    let first = world.set("nginx:1");
    assert_eq!(annotation(&first.metadata, annotations::REVISION), Some("3"));
    assert_eq!(annotation(&first.metadata, annotations::HISTORY), Some("1"));
    assert_eq!(annotation(&world.deployment.metadata, annotations::REVISION), Some("3"));
    assert_eq!(rollout::replicas(first), 2);
}

#[test]
fn history_beyond_its_limit_is_deleted_oldest_first() {
    let mut world = World::new(1);
    world.spec().revision_history_limit = Some(1);
    for image in ["nginx:1", "nginx:2", "nginx:3"] {
        world.image(image);
        world.settle();
    }
    assert_eq!(world.sets.len(), 2);
    world.set("nginx:2");
    world.set("nginx:3");
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let mut world = World::new(1);
    world.spec().strategy = Some(DeploymentStrategy { type_: Some("Recreate".into()), rolling_update: None });
    world.settle();
    let old = world.sets[0].metadata.clone();
    world.pods = vec![controlled(pod("old"), &old)];
    world.image("nginx:2");
    world.settle();
    assert_eq!((world.sets.len(), rollout::replicas(&world.sets[0])), (1, 0));
    assert!(world.conditions().contains(&("Available".into(), "MinimumReplicasUnavailable".into())));
    world.pods.clear();
    world.settle();
    assert_eq!(rollout::replicas(world.set("nginx:2")), 1);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut world = World::new(2);
    world.settle();
    world.spec().paused = Some(true);
    world.image("nginx:2");
    world.spec().replicas = Some(5);
    world.settle();
    assert_eq!((world.sets.len(), rollout::replicas(&world.sets[0])), (1, 5));
    assert!(world.conditions().contains(&("Progressing".into(), "DeploymentPaused".into())));
    world.spec().paused = None;
    world.settle();
    assert_eq!(rollout::replicas(world.set("nginx:2")), 5);
}

#[test]
fn scaling_during_a_rollout_is_shared_by_size() {
    let mut world = World::new(10);
    world.spec().strategy.as_mut().unwrap().rolling_update = Some(RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(3)),
        max_unavailable: Some(IntOrString::Int(2)),
    });
    world.settle();
    world.image("nginx:2");
    for _ in 0..10 {
        world.step();
        let new = world.set("nginx:2").metadata.name.clone();
        world.pods_are(|set| if set.metadata.name == new { 0 } else { i32::MAX });
    }
    let sizes =
        |world: &World| (rollout::replicas(world.set("nginx:1")), rollout::replicas(world.set("nginx:2")));
    assert_eq!(sizes(&world), (8, 5));
    world.spec().replicas = Some(15);
    world.step();
    assert_eq!(sizes(&world), (11, 7), "five more, and three of surge, in proportion");
    world.spec().replicas = Some(0);
    world.step();
    assert_eq!(sizes(&world), (0, 0));
}

#[test]
fn a_deployment_without_a_deadline_says_nothing_about_progress() {
    let mut world = World::new(1);
    world.spec().progress_deadline_seconds = Some(i32::MAX);
    world.settle();
    assert_eq!(world.conditions(), [("Available".to_owned(), "MinimumReplicasAvailable".to_owned())]);
}

#[test]
fn a_collision_gives_the_set_another_name() {
    let mut one = World::new(1);
    one.step();
    let mut two = World::new(1);
    two.deployment.status.get_or_insert_default().collision_count = Some(1);
    two.step();
    assert_ne!(one.sets[0].metadata.name, two.sets[0].metadata.name);
}

#[test]
fn an_orphaned_set_is_adopted_and_one_that_stopped_matching_released() {
    let world = World::new(1);
    let mut orphan = super::super::testing::replica_set("orphan", 1);
    let (owned, steps) = claim_sets(&world.deployment, std::slice::from_ref(&orphan));
    assert_eq!((owned.len(), steps.len()), (1, 1));
    orphan.metadata.owner_references = owned[0].metadata.owner_references.clone();
    orphan.metadata.labels = None;
    let (owned, steps) = claim_sets(&world.deployment, &[orphan]);
    assert_eq!((owned.len(), steps.len()), (0, 1));
}

#[test]
fn a_selector_for_everything_is_refused_by_an_event() {
    let mut world = World::new(1);
    world.spec().selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::default();
    let plan = world.step();
    assert!(matches!(&plan.steps[0], Step::Say(note) if note.reason == "SelectingAll"));
    assert!(world.sets.is_empty());
}
