use super::*;
use crate::{
    objects, pod,
    workloads::testing::{bound, time},
};

const PLACE: Place<'static> = Place { host_ip: "172.16.0.1", pod_ip: "10.128.0.2" };

/// A pod on a node, and its kubelet.
struct Node {
    pod: Pod,
    now: i64,
    said: Vec<String>,
    gone: bool,
}

impl Node {
    fn new(policy: &str, annotations: &[(&str, &str)]) -> Self {
        let mut pod = bound(crate::workloads::testing::pod("p"), "n");
        pod.spec.as_mut().unwrap().restart_policy = Some(policy.into());
        let annotations =
            annotations.iter().map(|(key, value)| (format!("sim.kubewright.dev/{key}"), (*value).to_owned()));
        pod.metadata.annotations = Some(annotations.collect());
        Self { pod, now: 0, said: Vec::new(), gone: false }
    }

    fn step(&mut self) -> Turn {
        let turn = turn(&self.pod, PLACE, time(self.now));
        if let Some(status) = turn.status.clone() {
            self.pod.status = Some(status);
        }
        self.gone |= turn.remove;
        self.said.extend(turn.notes.iter().map(|note| note.reason.clone()));
        turn
    }

    /// Until only time can change anything; how long that takes.
    fn settle(&mut self) -> Option<Duration> {
        for _ in 0..20 {
            let turn = self.step();
            if turn.status.is_none() {
                return turn.after;
            }
        }
        panic!("it does not settle: {:?}", self.pod.status);
    }

    fn status(&self) -> &PodStatus {
        self.pod.status.as_ref().unwrap()
    }

    fn state(&self) -> serde_json::Value {
        serde_json::to_value(self.status().container_statuses.as_ref().unwrap()[0].state.clone()).unwrap()
    }

    fn restarts(&self) -> i32 {
        self.status().container_statuses.as_ref().unwrap()[0].restart_count
    }
}

#[test]
fn a_pod_runs_and_is_ready_with_what_a_kubelet_writes() {
    let mut node = Node::new("Always", &[]);
    assert_eq!(node.settle(), None);
    let status = node.status();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(
        (status.host_ip.as_deref(), status.pod_ip.as_deref()),
        (Some("172.16.0.1"), Some("10.128.0.2"))
    );
    assert!(pod::is_ready(&node.pod));
    let kinds: Vec<&str> = status.conditions.as_ref().unwrap().iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(
        kinds,
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    );
    let container = &status.container_statuses.as_ref().unwrap()[0];
    assert_eq!((container.started, container.ready, container.image.as_str()), (Some(true), true, "nginx:1"));
    assert_eq!(node.said, ["Pulled", "Created", "Started"]);
}

#[test]
fn a_pod_that_ends_well_has_succeeded() {
    let mut node = Node::new("Never", &[("run-duration", "30s")]);
    assert_eq!(node.settle(), Some(Duration::from_secs(30)));
    node.now = 30;
    node.settle();
    assert_eq!(node.status().phase.as_deref(), Some("Succeeded"));
    assert_eq!(pod::condition(&node.pod, "Ready").unwrap().reason.as_deref(), Some("PodCompleted"));
    assert_eq!(node.state()["terminated"]["exitCode"], 0);
}

#[test]
fn a_pod_that_ends_badly_has_failed_unless_it_may_be_restarted() {
    let mut node = Node::new("Never", &[("exit-code", "3")]);
    node.settle();
    assert_eq!(
        (node.status().phase.as_deref(), node.state()["terminated"]["exitCode"].as_i64()),
        (Some("Failed"), Some(3))
    );
    let mut node = Node::new("OnFailure", &[("exit-code", "3")]);
    node.settle();
    assert_eq!((node.status().phase.as_deref(), node.restarts()), (Some("Running"), 1));
    let mut node = Node::new("OnFailure", &[("exit-code", "0")]);
    node.settle();
    assert_eq!(node.status().phase.as_deref(), Some("Succeeded"));
}

#[test]
fn a_crash_loop_waits_longer_and_longer() {
    let mut node = Node::new("Always", &[("crash-loop", "true")]);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let wait = node.settle().expect("it waits");
        assert_eq!(node.state()["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(node.status().phase.as_deref(), Some("Running"));
        waits.push(wait.as_secs());
        node.now += i64::try_from(wait.as_secs()).unwrap();
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(node.restarts(), 7);
    assert!(!pod::is_ready(&node.pod));
}

#[test]
fn an_image_that_cannot_be_pulled_keeps_the_pod_pending() {
    let mut node = Node::new("Always", &[("image-pull-error", "true")]);
    assert_eq!(node.settle(), Some(Duration::from_secs(10)));
    assert_eq!(
        (node.status().phase.as_deref(), node.state()["waiting"]["reason"].as_str()),
        (Some("Pending"), Some("ErrImagePull"))
    );
    node.now = 10;
    node.settle();
    assert_eq!(node.state()["waiting"]["reason"], "ImagePullBackOff");
    assert!(node.said.contains(&"BackOff".to_owned()));
}

#[test]
fn a_pod_may_start_late_or_never_be_ready() {
    let mut node = Node::new("Always", &[("start-delay", "5s"), ("not-ready", "true")]);
    assert_eq!(node.settle(), Some(Duration::from_secs(5)));
    assert_eq!(node.state()["waiting"]["reason"], "ContainerCreating");
    node.now = 5;
    node.settle();
    assert_eq!(node.status().phase.as_deref(), Some("Running"));
    let ready = pod::condition(&node.pod, "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("ContainersNotReady")));
    assert_eq!(ready.message.as_deref(), Some("containers with unready status: [c]"));
}

#[test]
fn the_delay_of_a_readiness_probe_is_kept() {
    let mut node = Node::new("Always", &[]);
    node.pod.spec.as_mut().unwrap().containers[0].readiness_probe =
        Some(serde_json::from_value(serde_json::json!({"initialDelaySeconds": 7})).unwrap());
    assert_eq!(node.settle(), Some(Duration::from_secs(7)));
    assert!(!pod::is_ready(&node.pod));
    node.now = 7;
    node.settle();
    assert!(pod::is_ready(&node.pod));
    assert_eq!(pod::ready_since(&node.pod), Some(time(7)));
}

#[test]
fn a_readiness_gate_holds_readiness_back() {
    let mut node = Node::new("Always", &[]);
    node.pod.spec.as_mut().unwrap().readiness_gates =
        Some(serde_json::from_value(serde_json::json!([{"conditionType": "example.com/ok"}])).unwrap());
    node.settle();
    assert_eq!(pod::condition(&node.pod, "Ready").unwrap().reason.as_deref(), Some("ReadinessGatesNotReady"));
    let mut open = pod::condition(&node.pod, "Ready").unwrap().clone();
    open.type_ = "example.com/ok".into();
    open.status = "True".into();
    node.pod.status.as_mut().unwrap().conditions.as_mut().unwrap().push(open);
    node.settle();
    assert!(pod::is_ready(&node.pod));
}

#[test]
fn a_deleted_pod_stops_and_goes_within_its_grace_period() {
    for (takes, ends_after, code) in [("0s", 0, 143), ("10s", 10, 143), ("1h", 30, 137)] {
        let mut node = Node::new("Always", &[("stop-duration", takes)]);
        node.settle();
        node.pod.metadata.deletion_timestamp = Some(objects::timestamp(time(130)));
        node.pod.metadata.deletion_grace_period_seconds = Some(30);
        node.now = 100;
        if ends_after > 0 {
            assert_eq!(node.settle(), Some(Duration::from_secs(ends_after)), "{takes}");
            assert!(!node.gone);
            node.now += i64::try_from(ends_after).unwrap();
        }
        node.step();
        assert!(node.gone, "{takes}");
        assert_eq!(node.state()["terminated"]["exitCode"], code, "{takes}");
        assert!(node.said.contains(&"Killing".to_owned()));
    }
}

#[test]
fn a_pod_of_a_job_ends_by_itself() {
    let mut node = Node::new("Never", &[]);
    let mut job = crate::workloads::testing::meta("job");
    job.uid = Some("job".into());
    node.pod = crate::workloads::testing::controlled(node.pod, &job);
    node.pod.metadata.owner_references.as_mut().unwrap()[0].kind = "Job".into();
    node.settle();
    node.now = 1;
    node.settle();
    assert_eq!(node.status().phase.as_deref(), Some("Succeeded"));
}
