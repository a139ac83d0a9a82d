use k8s_openapi::{
    api::apps::v1::{
        RollingUpdateStatefulSetStrategy, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetStatus,
        StatefulSetUpdateStrategy,
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{
    super::{
        step::Object,
        testing::{in_phase, meta, ready, selector, template, time},
    },
    *,
};
use crate::{objects, pod};

/// A set on which plans are carried out as the server would.
struct Cluster {
    set: StatefulSet,
    pods: Vec<Pod>,
    revisions: Vec<ControllerRevision>,
    claims: Vec<PersistentVolumeClaim>,
    now: i64,
    uid: u32,
}

impl Cluster {
    fn new(replicas: i32) -> Self {
        let spec = StatefulSetSpec {
            replicas: Some(replicas),
            selector: selector(),
            template: template(),
            service_name: Some("db".into()),
            revision_history_limit: Some(10),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".into()),
                rolling_update: Some(RollingUpdateStatefulSetStrategy {
                    partition: Some(0),
                    max_unavailable: None,
                }),
            }),
            ..StatefulSetSpec::default()
        };
        let set = StatefulSet { metadata: meta("db"), spec, status: None };
        Self { set, pods: Vec::new(), revisions: Vec::new(), claims: Vec::new(), now: 0, uid: 0 }
    }

    fn spec(&mut self) -> &mut StatefulSetSpec {
        *self.set.metadata.generation.as_mut().unwrap() += 1;
        &mut self.set.spec
    }

    fn image(&mut self, image: &str) {
        self.spec().template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    }

    fn with_claims(mut self, deleted: &str, scaled: &str) -> Self {
        let spec = self.spec();
        spec.volume_claim_templates = Some(vec![PersistentVolumeClaim {
            metadata: ObjectMeta { name: Some("data".into()), ..ObjectMeta::default() },
            ..PersistentVolumeClaim::default()
        }]);
        spec.persistent_volume_claim_retention_policy =
            Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some(deleted.into()),
                when_scaled: Some(scaled.into()),
            });
        self
    }

    fn step(&mut self) -> Plan {
        self.now += 1;
        let world = World { pods: &self.pods, revisions: &self.revisions, claims: &self.claims };
        let plan = plan(&self.set, world, time(self.now));
        for step in plan.steps.clone() {
            match step {
                Step::Create(Object::Pod(mut pod)) => {
                    self.uid += 1;
                    pod.metadata.uid = Some(format!("uid-{}", self.uid));
                    self.pods.push(in_phase(*pod, "Pending"));
                }
                // Without a node a pod is gone at once.
                Step::Delete(Object::Pod(pod)) => {
                    self.pods.retain(|known| known.metadata.name != pod.metadata.name);
                }
                Step::Create(Object::Claim(claim)) => self.claims.push(*claim),
                Step::Update(Object::Claim(claim)) => {
                    self.claims.retain(|known| known.metadata.name != claim.metadata.name);
                    self.claims.push(*claim);
                }
                Step::Create(Object::Revision(revision)) => self.revisions.push(*revision),
                Step::Update(Object::Revision(revision)) => {
                    self.revisions.retain(|known| known.metadata.name != revision.metadata.name);
                    self.revisions.push(*revision);
                }
                Step::Delete(Object::Revision(revision)) => {
                    self.revisions.retain(|known| known.metadata.name != revision.metadata.name);
                }
                Step::Status(Object::StatefulSet(set)) => self.set = *set,
                Step::Say(_) => {}
                other => panic!("{other:?}"),
            }
        }
        plan
    }

    fn make_ready(&mut self) {
        let now = time(self.now);
        self.pods =
            self.pods.drain(..).map(|pod| if pod::is_ready(&pod) { pod } else { ready(pod, now) }).collect();
    }

    fn settle(&mut self) {
        self.make_ready();
        for _ in 0..50 {
            if self.step().steps.is_empty() {
                return;
            }
            self.make_ready();
        }
        panic!("it does not settle");
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        names.sort_unstable();
        names
    }

    fn image_of(&self, name: &str) -> &str {
        let pod = self.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name)).unwrap();
        pod.spec.as_ref().unwrap().containers[0].image.as_deref().unwrap()
    }

    fn status(&self) -> StatefulSetStatus {
        self.set.status.clone().unwrap()
    }
}

fn deletes(plan: &Plan) -> Vec<String> {
    let pods = plan.steps.iter().filter_map(|step| match step {
        Step::Delete(Object::Pod(pod)) => pod.metadata.name.clone(),
        _ => None,
    });
    pods.collect()
}

#[test]
fn an_ordered_set_starts_one_pod_after_the_other() {
    let mut cluster = Cluster::new(3);
    cluster.step();
    cluster.step();
    assert_eq!(cluster.names(), ["db-0"], "it waits for the first to be ready");
    let status = serde_json::to_value(cluster.status()).unwrap();
    assert_eq!(status["currentReplicas"], 1);
    assert_eq!(status["availableReplicas"], 0);
    assert_eq!(status["collisionCount"], 0);
    let pod = &cluster.pods[0];
    assert_eq!(objects::label(&pod.metadata, REVISION), cluster.status().current_revision.as_deref());
    assert_eq!(objects::label(&pod.metadata, "apps.kubernetes.io/pod-index"), Some("0"));
    assert_eq!(pod.spec.as_ref().unwrap().subdomain.as_deref(), Some("db"));
    cluster.settle();
    assert_eq!(cluster.names(), ["db-0", "db-1", "db-2"]);
    assert_eq!(cluster.status().ready_replicas, Some(3));
}

#[test]
fn a_parallel_set_starts_them_all() {
    let mut cluster = Cluster::new(3);
    cluster.spec().pod_management_policy = Some("Parallel".into());
    cluster.step();
    assert_eq!(cluster.names(), ["db-0", "db-1", "db-2"]);
    cluster.spec().replicas = Some(0);
    assert_eq!(deletes(&cluster.step()), ["db-2", "db-1", "db-0"]);
}

#[test]
fn ordinals_may_begin_elsewhere() {
    let mut cluster = Cluster::new(2);
    cluster.spec().ordinals = Some(k8s_openapi::api::apps::v1::StatefulSetOrdinals { start: Some(5) });
    cluster.settle();
    assert_eq!(cluster.names(), ["db-5", "db-6"]);
}

#[test]
fn scaling_down_takes_the_highest_first_and_waits_for_each() {
    let mut cluster = Cluster::new(3);
    cluster.settle();
    cluster.spec().replicas = Some(1);
    assert_eq!(deletes(&cluster.step()), ["db-2"]);
    assert_eq!(deletes(&cluster.step()), ["db-1"]);
    cluster.settle();
    assert_eq!(cluster.names(), ["db-0"]);
}

#[test]
fn a_failed_pod_is_replaced_under_its_name() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    cluster.pods[0] = in_phase(cluster.pods[0].clone(), "Failed");
    assert_eq!(deletes(&cluster.step()), ["db-0"]);
    cluster.settle();
    assert_eq!(cluster.names(), ["db-0"]);
}

#[test]
fn a_rolling_update_goes_from_the_highest_down_and_renames_the_current_revision_at_the_end() {
    let mut cluster = Cluster::new(3);
    cluster.settle();
    let old = cluster.status().current_revision;
    cluster.image("nginx:2");
    let mut order = Vec::new();
    for _ in 0..20 {
        let plan = cluster.step();
        order.extend(deletes(&plan));
        if plan.steps.is_empty() {
            break;
        }
        if order.len() < 3 {
            assert_eq!(cluster.status().current_revision, old);
        }
        cluster.make_ready();
    }
    assert_eq!(order, ["db-2", "db-1", "db-0"]);
    let status = cluster.status();
    assert_eq!(status.current_revision, status.update_revision);
    assert_ne!(status.current_revision, old);
    assert_eq!(cluster.revisions.len(), 2, "the old template is remembered");
}

#[test]
fn a_partition_keeps_lower_ordinals_on_the_old_revision_even_when_they_are_made_again() {
    let mut cluster = Cluster::new(3);
    cluster.settle();
    cluster.spec().update_strategy.as_mut().unwrap().rolling_update.as_mut().unwrap().partition = Some(2);
    cluster.image("nginx:2");
    cluster.settle();
    assert_eq!((cluster.image_of("db-0"), cluster.image_of("db-2")), ("nginx:1", "nginx:2"));
    cluster.pods.retain(|pod| pod.metadata.name.as_deref() != Some("db-0"));
    cluster.settle();
    assert_eq!(cluster.image_of("db-0"), "nginx:1");
    assert_eq!((cluster.status().current_replicas, cluster.status().updated_replicas), (Some(2), Some(1)));
}

#[test]
fn on_delete_replaces_only_what_the_user_deletes() {
    let mut cluster = Cluster::new(2);
    cluster.spec().update_strategy =
        Some(StatefulSetUpdateStrategy { type_: Some("OnDelete".into()), rolling_update: None });
    cluster.settle();
    cluster.image("nginx:2");
    cluster.settle();
    assert_eq!(cluster.image_of("db-1"), "nginx:1");
    cluster.pods.pop();
    cluster.settle();
    assert_eq!((cluster.image_of("db-0"), cluster.image_of("db-1")), ("nginx:1", "nginx:2"));
}

#[test]
fn more_than_one_may_be_unavailable_when_that_is_allowed() {
    let mut cluster = Cluster::new(4);
    cluster.spec().update_strategy.as_mut().unwrap().rolling_update.as_mut().unwrap().max_unavailable =
        Some(IntOrString::Int(2));
    cluster.settle();
    cluster.image("nginx:2");
    assert_eq!(deletes(&cluster.step()), ["db-3", "db-2"]);
}

#[test]
fn an_ordered_set_waits_until_pods_were_ready_for_long_enough() {
    let mut cluster = Cluster::new(2);
    cluster.spec().min_ready_seconds = Some(10);
    cluster.step();
    cluster.make_ready();
    let plan = cluster.step();
    assert_eq!(cluster.names(), ["db-0"]);
    cluster.now += i64::try_from(plan.after.expect("it looks again").as_secs()).unwrap();
    cluster.step();
    assert_eq!(cluster.names(), ["db-0", "db-1"]);
}

#[test]
fn claims_are_made_before_the_pod_and_stay_by_default() {
    let mut cluster = Cluster::new(1).with_claims("Retain", "Retain");
    let plan = cluster.step();
    let kinds: Vec<&str> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Create(Object::Claim(_)) => Some("claim"),
            Step::Create(Object::Pod(_)) => Some("pod"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["claim", "pod"]);
    let claim = &cluster.claims[0];
    assert_eq!(claim.metadata.name.as_deref(), Some("data-db-0"));
    assert_eq!(objects::label(&claim.metadata, "app"), Some("web"));
    assert_eq!(claim.metadata.owner_references, None);
    let volumes = cluster.pods[0].spec.as_ref().unwrap().volumes.clone().unwrap();
    assert_eq!(volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name, "data-db-0");
    cluster.spec().replicas = Some(0);
    cluster.settle();
    assert_eq!(cluster.claims[0].metadata.owner_references, None);
}

#[test]
fn the_retention_policy_decides_who_owns_a_claim() {
    let owner = |cluster: &Cluster| {
        let claim =
            cluster.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some("data-db-1")).unwrap();
        objects::controller_of(&claim.metadata).map(|owner| owner.kind.clone())
    };
    for (deleted, scaled, wanted, condemned) in [
        ("Retain", "Retain", None, None),
        ("Delete", "Retain", Some("StatefulSet"), Some("StatefulSet")),
        ("Retain", "Delete", None, Some("Pod")),
        ("Delete", "Delete", Some("StatefulSet"), Some("Pod")),
    ] {
        let mut cluster = Cluster::new(2).with_claims(deleted, scaled);
        cluster.settle();
        assert_eq!(owner(&cluster).as_deref(), wanted, "{deleted}/{scaled}");
        cluster.spec().replicas = Some(1);
        cluster.step();
        assert_eq!(owner(&cluster).as_deref(), condemned, "{deleted}/{scaled}");
    }
}

#[test]
fn a_new_pod_waits_for_the_claim_of_a_scaled_away_one_to_go() {
    let mut cluster = Cluster::new(2).with_claims("Retain", "Delete");
    cluster.settle();
    cluster.spec().replicas = Some(1);
    cluster.settle();
    cluster.spec().replicas = Some(2);
    assert_eq!(cluster.step().after, Some(Duration::from_secs(1)));
    assert_eq!(cluster.names(), ["db-0"]);
    cluster.claims.retain(|claim| claim.metadata.name.as_deref() != Some("data-db-1"));
    cluster.settle();
    assert_eq!(cluster.names(), ["db-0", "db-1"]);
}

#[test]
fn a_claim_that_is_going_stands_in_the_way() {
    let mut cluster = Cluster::new(1).with_claims("Retain", "Retain");
    cluster.settle();
    cluster.pods.clear();
    cluster.claims[0].metadata.deletion_timestamp = Some(objects::timestamp(time(0)));
    assert_eq!(cluster.step().problem.as_deref(), Some("pvc data-db-0 is being deleted"));
}

#[test]
fn revisions_beyond_the_limit_are_forgotten() {
    let mut cluster = Cluster::new(1);
    cluster.spec().revision_history_limit = Some(1);
    for image in ["a", "b", "c", "d"] {
        cluster.image(image);
        cluster.settle();
    }
    assert_eq!(cluster.revisions.len(), 2);
}

#[test]
fn a_set_that_is_going_only_counts() {
    let mut cluster = Cluster::new(2);
    cluster.set.metadata.deletion_timestamp = Some(objects::timestamp(time(0)));
    cluster.step();
    assert!(cluster.pods.is_empty());
}
