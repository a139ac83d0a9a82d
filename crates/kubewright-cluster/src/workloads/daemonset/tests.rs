use k8s_openapi::{
    api::apps::v1::{DaemonSetUpdateStrategy, RollingUpdateDaemonSet},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde_json::json;

use super::{
    super::{
        step::Object,
        testing::{bound, going, in_phase, meta, ready, selector, template, time},
    },
    *,
};
use crate::{objects, pod};

struct Cluster {
    set: DaemonSet,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    revisions: Vec<ControllerRevision>,
    failures: FailedBackoff,
    now: i64,
    uid: usize,
}

fn node(name: &str, taints: &serde_json::Value) -> Node {
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"kind": "worker"}}, "spec": {"taints": taints}}),
    )
    .unwrap()
}

impl Cluster {
    fn new(nodes: usize) -> Self {
        let spec = DaemonSetSpec { selector: selector(), template: template(), ..DaemonSetSpec::default() };
        let mut set = DaemonSet { metadata: meta("ds"), spec, status: None };
        let generation = ("deprecated.daemonset.template.generation".to_owned(), "1".to_owned());
        set.metadata.annotations = Some([generation].into());
        let nodes = (0..nodes).map(|number| node(&format!("n{number}"), &json!([]))).collect();
        Self {
            set,
            nodes,
            pods: Vec::new(),
            revisions: Vec::new(),
            failures: FailedBackoff::default(),
            now: 0,
            uid: 0,
        }
    }

    fn limits(&mut self, surge: i32, lack: i32) {
        self.set.spec.update_strategy = Some(DaemonSetUpdateStrategy {
            type_: Some("RollingUpdate".into()),
            rolling_update: Some(RollingUpdateDaemonSet {
                max_surge: Some(IntOrString::Int(surge)),
                max_unavailable: Some(IntOrString::Int(lack)),
            }),
        });
    }

    fn image(&mut self, image: &str) {
        let spec = &mut self.set.spec;
        spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
        let annotations = self.set.metadata.annotations.as_mut().unwrap();
        annotations.insert("deprecated.daemonset.template.generation".into(), image.into());
    }

    fn step(&mut self) -> Plan {
        self.now += 1;
        let world = World { pods: &self.pods, revisions: &self.revisions, nodes: &self.nodes };
        let plan = plan(&self.set, world, &mut self.failures, time(self.now));
        for pod in &plan.delete {
            self.pods.retain(|known| known.metadata.name != pod.metadata.name);
        }
        for pod in plan.create.clone() {
            self.uid += 1;
            let target = placement::target(&pod).unwrap().to_owned();
            let mut pod = in_phase(bound(pod, &target), "Pending");
            pod.metadata.name = Some(format!("ds-{}", self.uid));
            pod.metadata.creation_timestamp = Some(objects::timestamp(time(self.now)));
            self.pods.push(pod);
        }
        for step in plan.before.iter().chain(&plan.after_pods).cloned() {
            match step {
                Step::Create(Object::Revision(revision)) => self.revisions.push(*revision),
                Step::Status(Object::DaemonSet(set)) => self.set = *set,
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
        for _ in 0..50 {
            if self.step() == Plan::default() {
                return;
            }
            self.make_ready();
        }
        panic!("it does not settle");
    }

    fn status(&self) -> serde_json::Value {
        serde_json::to_value(self.set.status.as_ref().unwrap()).unwrap()
    }
}

#[test]
fn every_node_that_fits_gets_one_pod() {
    let mut cluster = Cluster::new(3);
    cluster.nodes[1] = node("n1", &json!([{"key": "x", "effect": "NoSchedule"}]));
    cluster.settle();
    let mut on: Vec<&str> = cluster.pods.iter().filter_map(pod::node).collect();
    on.sort_unstable();
    assert_eq!(on, ["n0", "n2"]);
    assert_eq!(cluster.status()["desiredNumberScheduled"], 2);
    assert_eq!(cluster.status()["numberAvailable"], 2);
    let pod = &cluster.pods[0];
    assert_eq!(objects::label(&pod.metadata, "pod-template-generation"), Some("1"));
    let hash = objects::label(&pod.metadata, "controller-revision-hash").unwrap();
    assert_eq!(cluster.revisions[0].metadata.name.as_deref(), Some(&*format!("ds-{hash}")));
    let tolerations = pod.spec.as_ref().unwrap().tolerations.as_ref().unwrap();
    assert_eq!(tolerations.len(), 6);
    assert_eq!(tolerations[0].key.as_deref(), Some("node.kubernetes.io/not-ready"));
}

#[test]
fn a_set_without_nodes_writes_its_status_once() {
    let mut cluster = Cluster::new(0);
    cluster.step();
    assert_eq!(
        cluster.status(),
        json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
               "observedGeneration": 1})
    );
    assert_eq!(cluster.step(), Plan::default());
}

#[test]
fn a_taint_that_only_keeps_others_out_leaves_running_pods_alone() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    cluster.nodes[0] = node("n0", &json!([{"key": "x", "effect": "NoSchedule"}]));
    cluster.settle();
    assert_eq!(cluster.pods.len(), 1);
    cluster.nodes[0] = node("n0", &json!([{"key": "x", "effect": "NoExecute"}]));
    cluster.settle();
    assert!(cluster.pods.is_empty());
}

#[test]
fn a_node_that_loses_its_label_loses_its_pod() {
    let mut cluster = Cluster::new(1);
    let spec = &mut cluster.set.spec;
    spec.template.spec.as_mut().unwrap().node_selector =
        Some([("kind".to_owned(), "worker".to_owned())].into());
    cluster.settle();
    assert_eq!(cluster.pods.len(), 1);
    cluster.nodes[0].metadata.labels = None;
    let pods = cluster.pods.clone();
    cluster.step();
    assert!(cluster.pods.is_empty());
    cluster.pods = pods.into_iter().map(going).collect();
    cluster.step();
    assert_eq!(cluster.status()["numberMisscheduled"], 1, "while it terminates");
}

#[test]
fn a_failed_pod_is_replaced() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    cluster.pods[0] = in_phase(cluster.pods[0].clone(), "Failed");
    let plan = cluster.step();
    assert!(matches!(&plan.before[0], Step::Say(note) if note.reason == "FailedDaemonPod"));
    assert!(cluster.pods.is_empty());
    cluster.settle();
    assert_eq!(cluster.pods.len(), 1);
}

#[test]
fn pods_that_keep_failing_are_replaced_more_and_more_slowly() {
    let mut failures = FailedBackoff::default();
    assert_eq!(failures.wait("set", "n", time(0)), None, "the first one at once");
    assert_eq!(failures.wait("set", "n", time(0)), Some(Duration::from_secs(1)));
    assert_eq!(failures.wait("set", "other", time(0)), None, "each node for itself");
    assert_eq!(failures.wait("set", "n", time(1)), None);
    assert_eq!(failures.wait("set", "n", time(2)), Some(Duration::from_secs(1)));
    assert_eq!(failures.wait("set", "n", time(3)), None);
    assert_eq!(failures.wait("set", "n", time(4000)), None, "and a long time without failures is forgiven");
    assert_eq!(failures.wait("set", "n", time(4000)), Some(Duration::from_secs(1)));
}

#[test]
fn a_rolling_update_has_no_more_nodes_without_a_pod_than_allowed() {
    let mut cluster = Cluster::new(5);
    cluster.limits(0, 2);
    cluster.settle();
    cluster.image("nginx:2");
    for _ in 0..20 {
        let plan = cluster.step();
        let well = cluster.pods.iter().filter(|pod| pod::is_ready(pod)).count();
        assert!(well >= 3, "{well}");
        assert!(plan.delete.len() <= 2);
        cluster.make_ready();
    }
    assert_eq!(cluster.status()["updatedNumberScheduled"], 5);
    assert!(
        cluster
            .pods
            .iter()
            .all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("nginx:2"))
    );
}

#[test]
fn with_surge_the_new_pod_is_there_before_the_old_one_goes() {
    let mut cluster = Cluster::new(3);
    cluster.limits(1, 0);
    cluster.settle();
    cluster.image("nginx:2");
    for _ in 0..30 {
        cluster.step();
        assert!(cluster.pods.len() <= 4);
        assert!(cluster.pods.iter().filter(|pod| pod::is_ready(pod)).count() >= 3);
        cluster.make_ready();
    }
    assert_eq!(cluster.status()["updatedNumberScheduled"], 3);
    assert_eq!(cluster.pods.len(), 3);
}

#[test]
fn on_delete_leaves_old_pods_alone() {
    let mut cluster = Cluster::new(1);
    cluster.set.spec.update_strategy =
        Some(DaemonSetUpdateStrategy { type_: Some("OnDelete".into()), rolling_update: None });
    cluster.settle();
    cluster.image("nginx:2");
    cluster.settle();
    assert_eq!(cluster.pods[0].spec.as_ref().unwrap().containers[0].image.as_deref(), Some("nginx:1"));
}

#[test]
fn two_pods_on_a_node_become_one_and_the_older_stays() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    let mut twin = cluster.pods[0].clone();
    twin.metadata.name = Some("twin".into());
    twin.metadata.creation_timestamp = Some(objects::timestamp(time(100)));
    cluster.pods.push(twin);
    cluster.settle();
    assert_eq!(cluster.pods.len(), 1);
    assert_eq!(cluster.pods[0].metadata.name.as_deref(), Some("ds-1"));
}
