use serde_json::json;

use super::{
    super::{
        step::Object,
        testing::{going, in_phase, meta, ready, running, template, time},
    },
    *,
};
use crate::{objects, pod};

/// A job on which passes are carried out as the server would.
struct Cluster {
    job: Job,
    pods: Vec<Pod>,
    now: i64,
    made: usize,
    /// Every status that was written.
    written: Vec<JobStatus>,
    said: Vec<String>,
    after: Option<Duration>,
}

impl Cluster {
    fn new(spec: serde_json::Value) -> Self {
        let mut spec: JobSpec = {
            let mut spec = spec;
            spec["template"] = serde_json::to_value(template()).unwrap();
            serde_json::from_value(spec).unwrap()
        };
        spec.parallelism.get_or_insert(1);
        spec.backoff_limit.get_or_insert(6);
        let job = Job { metadata: meta("work"), spec: Some(spec), status: None };
        Self { job, pods: Vec::new(), now: 0, made: 0, written: Vec::new(), said: Vec::new(), after: None }
    }

    fn step(&mut self) -> usize {
        self.now += 1;
        if is_finished(&self.job).is_some() {
            return 0;
        }
        let sync = Sync::begin(&self.job, self.pods.clone(), time(self.now));
        self.after = sync.after;
        for pod in sync.create.clone() {
            self.made += 1;
            let mut pod = in_phase(pod, "Pending");
            pod.metadata.name = Some(format!("work-{}", self.made));
            pod.metadata.uid = Some(format!("uid-{}", self.made));
            pod.metadata.creation_timestamp = Some(objects::timestamp(time(self.now)));
            self.pods.push(pod);
        }
        for Deletion { pod, uncounted } in sync.delete.clone() {
            // A finalizer keeps a deleted pod until it is off.
            let place = self.pods.iter().position(|known| known.metadata.uid == pod.metadata.uid).unwrap();
            if uncounted { drop(self.pods.remove(place)) } else { self.pods[place] = going(pod) }
        }
        let outcome = Outcome { created: sync.create.len(), deleted: sync.delete.len() };
        let changed = outcome.created + outcome.deleted;
        let steps = sync.conclude(outcome);
        for step in &steps {
            match step {
                Step::Status(Object::Job(job)) => {
                    self.written.push(job.status.clone().unwrap());
                    self.job.status.clone_from(&job.status);
                }
                Step::Patch(Object::Pod(pod), _) => {
                    let place =
                        self.pods.iter().position(|known| known.metadata.uid == pod.metadata.uid).unwrap();
                    self.pods[place].metadata.finalizers = None;
                    if pod::is_terminating(&self.pods[place]) {
                        self.pods.remove(place);
                    }
                }
                Step::Say(note) => self.said.push(note.reason.clone()),
                other => panic!("{other:?}"),
            }
        }
        changed + steps.len()
    }

    fn settle(&mut self) {
        for _ in 0..50 {
            if self.step() == 0 {
                return;
            }
        }
        panic!("it does not settle: {:?}", self.job.status);
    }

    fn end(&mut self, place: usize, phase: &str) {
        self.pods[place] = in_phase(self.pods[place].clone(), phase);
    }

    fn active(&self) -> Vec<usize> {
        (0..self.pods.len()).filter(|place| pod::is_active(&self.pods[*place])).collect()
    }

    fn status(&self) -> JobStatus {
        self.job.status.clone().unwrap()
    }

    fn conditions(&self) -> Vec<String> {
        self.status().conditions.into_iter().flatten().map(|condition| condition.type_).collect()
    }
}

#[test]
fn a_job_is_complete_in_two_writes() {
    let mut cluster = Cluster::new(json!({"completions": 1}));
    cluster.settle();
    assert_eq!(cluster.pods[0].metadata.finalizers.as_deref(), Some(&[FINALIZER.to_owned()][..]));
    let json = serde_json::to_value(cluster.status()).unwrap();
    let started = json["startTime"].clone();
    assert_eq!(
        json,
        json!({"startTime": started, "active": 1, "terminating": 0, "uncountedTerminatedPods": {}, "ready": 0})
    );
    cluster.end(0, "Succeeded");
    cluster.written.clear();
    cluster.step();
    let [first, second] = cluster.written.as_slice() else { panic!("{:?}", cluster.written) };
    assert_eq!(
        first.uncounted_terminated_pods.as_ref().unwrap().succeeded.as_deref(),
        Some(&["uid-1".to_owned()][..])
    );
    assert_eq!((first.succeeded, first.conditions.as_ref().unwrap().len()), (None, 1));
    assert_eq!((second.succeeded, second.active), (Some(1), None));
    assert!(second.completion_time.is_some());
    assert_eq!(cluster.conditions(), ["SuccessCriteriaMet", "Complete"]);
    assert!(!has_finalizer(&cluster.pods[0]));
    assert_eq!(cluster.said, ["Completed"]);
}

#[test]
fn a_pass_that_was_interrupted_counts_each_pod_once() {
    let mut cluster = Cluster::new(json!({"completions": 2}));
    cluster.settle();
    cluster.end(0, "Succeeded");
    let sync = Sync::begin(&cluster.job, cluster.pods.clone(), time(9));
    let steps = sync.conclude(Outcome { created: 0, deleted: 0 });
    // The lists were written and the finalizer came off, and then the controller died.
    let Step::Status(Object::Job(job)) = &steps[0] else { panic!("{steps:?}") };
    cluster.job = (**job).clone();
    cluster.pods[0].metadata.finalizers = None;
    cluster.settle();
    assert_eq!((cluster.status().succeeded, cluster.active().len()), (Some(1), 1));
}

#[test]
fn never_more_pods_run_than_are_needed() {
    let mut cluster = Cluster::new(json!({"parallelism": 2, "completions": 3}));
    cluster.settle();
    assert_eq!(cluster.active().len(), 2);
    cluster.end(0, "Succeeded");
    cluster.settle();
    assert_eq!((cluster.active().len(), cluster.status().succeeded), (2, Some(1)));
    for place in cluster.active() {
        cluster.end(place, "Succeeded");
    }
    cluster.settle();
    assert_eq!((cluster.status().succeeded, cluster.made), (Some(3), 3));
    assert_eq!(cluster.conditions(), ["SuccessCriteriaMet", "Complete"]);
}

#[test]
fn a_work_queue_is_complete_when_one_succeeded_and_the_rest_have_ended() {
    let mut cluster = Cluster::new(json!({"parallelism": 2}));
    cluster.settle();
    cluster.end(0, "Succeeded");
    cluster.settle();
    assert_eq!((cluster.active().len(), cluster.made, cluster.conditions().len()), (1, 2, 0));
    cluster.end(1, "Succeeded");
    cluster.settle();
    assert_eq!(cluster.status().succeeded, Some(2));
}

#[test]
fn a_failed_pod_is_replaced_after_a_while_until_the_limit_is_reached() {
    let mut cluster = Cluster::new(json!({"completions": 1, "backoffLimit": 2}));
    cluster.settle();
    for (failures, seconds) in [(1, 10), (2, 20)] {
        let place = cluster.active()[0];
        cluster.end(place, "Failed");
        cluster.settle();
        assert_eq!((cluster.status().failed, cluster.active().len()), (Some(failures), 0));
        let wait = cluster.after.expect("it looks again");
        assert!(wait <= Duration::from_secs(seconds), "{wait:?}");
        cluster.now += i64::try_from(wait.as_secs()).unwrap();
        cluster.settle();
        assert_eq!(cluster.active().len(), 1, "after {seconds} s");
    }
    let place = cluster.active()[0];
    cluster.end(place, "Failed");
    cluster.settle();
    assert_eq!(cluster.conditions(), ["FailureTarget", "Failed"]);
    assert_eq!(
        (cluster.status().failed, cluster.said.last().map(String::as_str)),
        (Some(3), Some("BackoffLimitExceeded"))
    );
}

#[test]
fn a_deadline_ends_the_job_and_its_pods() {
    let mut cluster = Cluster::new(json!({"completions": 1, "activeDeadlineSeconds": 60}));
    cluster.settle();
    assert!(cluster.after.is_some_and(|after| after <= Duration::from_mins(1)));
    cluster.now += 60;
    cluster.settle();
    assert_eq!(cluster.conditions(), ["FailureTarget", "Failed"]);
    assert_eq!((cluster.pods.len(), cluster.status().failed, cluster.status().active), (0, Some(1), None));
    assert_eq!(cluster.status().terminating, Some(0));
}

#[test]
fn a_rule_can_fail_the_job_or_forgive_the_pod() {
    let policy = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
    let mut cluster = Cluster::new(json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": policy}));
    cluster.settle();
    let mut disrupted = in_phase(cluster.pods[0].clone(), "Failed");
    disrupted.status.as_mut().unwrap().conditions =
        Some(serde_json::from_value(json!([{"type": "DisruptionTarget", "status": "True"}])).unwrap());
    cluster.pods[0] = disrupted;
    cluster.settle();
    assert_eq!((cluster.status().failed, cluster.conditions().len()), (None, 0));
    cluster.now += 10;
    cluster.settle();
    let place = cluster.active()[0];
    let mut failed = in_phase(cluster.pods[place].clone(), "Failed");
    failed.status.as_mut().unwrap().container_statuses = Some(
        serde_json::from_value(
            json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                                       "state": {"terminated": {"exitCode": 42}}}]),
        )
        .unwrap(),
    );
    cluster.pods[place] = failed;
    cluster.settle();
    assert_eq!(cluster.said.last().map(String::as_str), Some("PodFailurePolicy"));
    assert_eq!(cluster.conditions(), ["FailureTarget", "Failed"]);
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_anew_when_resumed() {
    let mut cluster = Cluster::new(json!({"completions": 1}));
    cluster.settle();
    cluster.job.spec.as_mut().unwrap().suspend = Some(true);
    cluster.settle();
    assert!(cluster.pods.is_empty());
    assert_eq!((cluster.conditions(), cluster.status().failed), (vec!["Suspended".to_owned()], None));
    cluster.job.spec.as_mut().unwrap().suspend = Some(false);
    cluster.now += 100;
    cluster.settle();
    assert_eq!(cluster.active().len(), 1);
    assert!(cluster.status().start_time.unwrap().0 >= time(100));
    assert_eq!(cluster.said, ["Suspended", "Resumed"]);
}

#[test]
fn less_parallelism_takes_pods_away_without_counting_them_as_failed() {
    let mut cluster = Cluster::new(json!({"parallelism": 3, "completions": 5}));
    cluster.settle();
    cluster.pods[0] = ready(running(cluster.pods[0].clone()), time(0));
    cluster.job.spec.as_mut().unwrap().parallelism = Some(1);
    cluster.settle();
    assert_eq!((cluster.pods.len(), cluster.status().failed, cluster.status().ready), (1, None, Some(1)));
}

#[test]
fn an_indexed_job_has_one_pod_per_index() {
    let mut cluster = Cluster::new(json!({"parallelism": 2, "completions": 4, "completionMode": "Indexed"}));
    cluster.settle();
    let pod = &cluster.pods[1];
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("work-1-"));
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("work-1"));
    assert_eq!(
        pod.spec.as_ref().unwrap().containers[0].env.as_ref().unwrap()[0].name,
        "JOB_COMPLETION_INDEX"
    );
    cluster.end(1, "Succeeded");
    cluster.settle();
    assert_eq!(cluster.status().completed_indexes.as_deref(), Some("1"));
    assert_eq!(pods_of::index(cluster.pods.last().unwrap()), Some(2));
    for _ in 0..4 {
        for place in cluster.active() {
            cluster.end(place, "Succeeded");
        }
        cluster.settle();
    }
    assert_eq!(cluster.status().completed_indexes.as_deref(), Some("0-3"));
    assert_eq!((cluster.status().succeeded, cluster.made), (Some(4), 4));
}

#[test]
fn a_failed_index_is_started_again_under_its_number() {
    let mut cluster = Cluster::new(json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed"}));
    cluster.settle();
    cluster.end(0, "Failed");
    cluster.settle();
    cluster.now += 10;
    cluster.settle();
    assert_eq!(pods_of::index(cluster.pods.last().unwrap()), Some(0));
}

#[test]
fn an_index_fails_alone_when_it_has_a_limit_of_its_own() {
    let spec = json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                      "backoffLimit": i32::MAX});
    let mut cluster = Cluster::new(spec);
    cluster.settle();
    cluster.end(0, "Failed");
    cluster.settle();
    assert!(has_finalizer(&cluster.pods[0]), "it waits for its replacement");
    cluster.now += 20;
    cluster.settle();
    let again = cluster.pods.last().unwrap();
    assert_eq!(
        objects::annotation(&again.metadata, "batch.kubernetes.io/job-index-failure-count"),
        Some("1")
    );
    let place = cluster.pods.len() - 1;
    cluster.end(place, "Failed");
    cluster.settle();
    assert_eq!(cluster.status().failed_indexes.as_deref(), Some("0"));
    assert_eq!(cluster.conditions().len(), 0, "the other index goes on");
    cluster.end(1, "Succeeded");
    cluster.settle();
    assert_eq!(cluster.said.last().map(String::as_str), Some("FailedIndexes"));
}

#[test]
fn a_success_policy_ends_a_job_early() {
    let spec = json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed",
                      "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let mut cluster = Cluster::new(spec);
    cluster.settle();
    cluster.end(0, "Succeeded");
    cluster.settle();
    assert_eq!(cluster.conditions(), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!((cluster.status().succeeded, cluster.status().failed), (Some(1), None));
    assert_eq!(cluster.pods.len(), 1);
}

#[test]
fn replacements_wait_for_the_end_when_asked_to() {
    for (policy, made) in [("TerminatingOrFailed", 2), ("Failed", 1)] {
        let mut cluster = Cluster::new(json!({"completions": 1, "podReplacementPolicy": policy}));
        cluster.settle();
        cluster.pods[0] = going(running(cluster.pods[0].clone()));
        cluster.now += 10;
        cluster.settle();
        cluster.now += 20;
        cluster.settle();
        assert_eq!(cluster.made, made, "{policy}");
    }
}

#[test]
fn a_finished_job_goes_when_its_time_is_over() {
    let mut cluster = Cluster::new(json!({"completions": 1, "ttlSecondsAfterFinished": 60}));
    cluster.settle();
    assert_eq!(ttl::left(&cluster.job, time(10)), ttl::Ttl::None);
    cluster.end(0, "Succeeded");
    cluster.settle();
    let finished = is_finished(&cluster.job).unwrap().last_transition_time.as_ref().unwrap().0;
    let at = |seconds| finished.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    assert_eq!(ttl::left(&cluster.job, at(20)), ttl::Ttl::In(Duration::from_secs(40)));
    assert_eq!(ttl::left(&cluster.job, at(60)), ttl::Ttl::Over);
}
