use serde_json::json;

use super::{
    super::testing::{meta, template, time},
    *,
};
use crate::objects;

fn cron(extra: &serde_json::Value) -> CronJob {
    let mut spec = json!({"schedule": "* * * * *", "jobTemplate": {"metadata": {"labels": {"team": "a"}},
                          "spec": {"template": serde_json::to_value(template()).unwrap()}},
                          "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1});
    for (key, value) in extra.as_object().unwrap() {
        spec[key] = value.clone();
    }
    CronJob { metadata: meta("tick"), spec: serde_json::from_value(spec).unwrap(), status: None }
}

/// Carries out a plan: the jobs after it.
fn carry_out(cron: &mut CronJob, jobs: &mut Vec<Job>, now: i64) -> Plan {
    let plan = plan(cron, jobs, time(now));
    for step in &plan.steps {
        if let Step::Delete(object) = step {
            jobs.retain(|job| job.metadata.name.as_deref() != Some(object.name()));
        }
    }
    let mut status = plan.status.clone();
    if let Some((job, due)) = &plan.start {
        let mut job = job.clone();
        job.metadata.uid = job.metadata.name.clone();
        status = started(&plan, &job, *due);
        jobs.push(job);
    }
    cron.status = Some(status);
    plan
}

fn finish(job: &mut Job, kind: &str, at: i64) {
    job.status = Some(
        serde_json::from_value(json!({"conditions": [{"type": kind, "status": "True"}],
            "startTime": time(at).to_string(), "completionTime": time(at).to_string()}))
        .unwrap(),
    );
}

fn reasons(plan: &Plan) -> Vec<&str> {
    let notes = plan.steps.iter().filter_map(|step| match step {
        Step::Say(note) => Some(note.reason.as_str()),
        _ => None,
    });
    notes.collect()
}

#[test]
fn a_job_starts_in_its_minute_and_carries_it_in_its_name() {
    let mut cron = cron(&json!({}));
    let mut jobs = Vec::new();
    // The beginning of time is a whole minute here.
    assert_eq!(time(0).as_second() % 60, 0);
    let plan = carry_out(&mut cron, &mut jobs, 30);
    assert_eq!((plan.start, plan.after), (None, Some(Duration::from_secs(30) + DELTA)));
    carry_out(&mut cron, &mut jobs, 60);
    let job = &jobs[0];
    assert_eq!(job.metadata.name, Some(format!("tick-{}", time(60).as_second() / 60)));
    assert_eq!(
        job.metadata.labels,
        Some([("team".to_owned(), "a".to_owned())].into()),
        "the template's, not the cron job's"
    );
    let due = objects::annotation(&job.metadata, "batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert_eq!(due, Some(&*time(60).to_string()));
    let status = cron.status.clone().unwrap();
    assert_eq!(status.last_schedule_time, Some(objects::timestamp(time(60))));
    assert_eq!(status.active.unwrap()[0].kind.as_deref(), Some("Job"));
    assert_eq!(carry_out(&mut cron, &mut jobs, 61).start, None, "once is enough");
}

#[test]
fn a_period_is_counted_from_the_start_before() {
    let mut cron = cron(&json!({"schedule": "@every 10s"}));
    let mut jobs = Vec::new();
    let begun = time(0).as_second();
    cron.metadata.creation_timestamp = Some(objects::timestamp(time(0)));
    let plan = carry_out(&mut cron, &mut jobs, 13);
    assert_eq!(plan.start.map(|(_, due)| due.as_second() - begun), Some(10));
    assert_eq!(plan.after, Some(Duration::from_secs(7) + DELTA), "the next is due at twenty");
}

#[test]
fn policies_decide_what_happens_to_a_job_that_still_runs() {
    for (policy, after_second) in [("Allow", 2), ("Forbid", 1), ("Replace", 1)] {
        let mut cron = cron(&json!({"concurrencyPolicy": policy}));
        let mut jobs = Vec::new();
        carry_out(&mut cron, &mut jobs, 60);
        let plan = carry_out(&mut cron, &mut jobs, 120);
        assert_eq!(jobs.len(), after_second, "{policy}");
        match policy {
            "Allow" => assert!(plan.steps.is_empty()),
            "Forbid" => assert_eq!(reasons(&plan), ["JobAlreadyActive"]),
            _ => assert_eq!(reasons(&plan), ["SuccessfulDelete"]),
        }
        let newest = jobs.last().unwrap().metadata.name.clone().unwrap();
        let expected = if policy == "Forbid" { 60 } else { 120 };
        assert_eq!(newest, format!("tick-{}", time(expected).as_second() / 60));
    }
}

#[test]
fn ended_jobs_leave_the_list_and_the_last_success_is_noted() {
    let mut cron = cron(&json!({}));
    let mut jobs = Vec::new();
    carry_out(&mut cron, &mut jobs, 60);
    finish(&mut jobs[0], "Complete", 70);
    let plan = carry_out(&mut cron, &mut jobs, 75);
    assert_eq!(reasons(&plan), ["SawCompletedJob"]);
    let status = cron.status.clone().unwrap();
    assert_eq!((status.active, status.last_successful_time), (None, Some(objects::timestamp(time(70)))));
}

#[test]
fn history_is_kept_within_its_limits() {
    let mut cron = cron(&json!({}));
    let mut jobs = Vec::new();
    for minute in 1..=6 {
        carry_out(&mut cron, &mut jobs, minute * 60);
        let kind = if minute % 2 == 0 { "Failed" } else { "Complete" };
        finish(jobs.last_mut().unwrap(), kind, minute * 60 + 1);
    }
    carry_out(&mut cron, &mut jobs, 6 * 60 + 30);
    let ended = |kind: &str| {
        jobs.iter().filter(|job| is_finished(job).is_some_and(|finish| finish.type_ == kind)).count()
    };
    assert_eq!((ended("Complete"), ended("Failed")), (3, 1));
}

#[test]
fn a_suspended_cron_job_starts_nothing_and_a_job_that_vanished_is_forgotten() {
    let mut cron = cron(&json!({}));
    let mut jobs = Vec::new();
    carry_out(&mut cron, &mut jobs, 60);
    jobs.clear();
    cron.spec.suspend = Some(true);
    let plan = carry_out(&mut cron, &mut jobs, 300);
    assert_eq!((reasons(&plan), plan.after), (vec!["MissingJob"], None));
    assert!(jobs.is_empty());
}

#[test]
fn a_start_that_is_too_late_is_missed() {
    let mut cron = cron(&json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 100}));
    let mut jobs = Vec::new();
    let hour = (3600 - time(0).as_second() % 3600) % 3600;
    assert!(carry_out(&mut cron, &mut jobs, hour + 101).start.is_none());
    cron.status = None;
    cron.metadata.creation_timestamp = Some(objects::timestamp(time(hour - 10)));
    assert!(carry_out(&mut cron, &mut jobs, hour + 50).start.is_some());
}

#[test]
fn very_many_missed_times_are_made_up_for_once_and_told() {
    let mut cron = cron(&json!({}));
    let mut jobs = Vec::new();
    let plan = carry_out(&mut cron, &mut jobs, 60 * 200);
    assert_eq!((reasons(&plan), jobs.len()), (vec!["TooManyMissedTimes"], 1));
}

#[test]
fn what_cannot_be_understood_is_told() {
    let mut broken = cron(&json!({"schedule": "nonsense"}));
    assert_eq!(reasons(&carry_out(&mut broken, &mut Vec::new(), 60)), ["UnparseableSchedule"]);
    let mut nowhere = cron(&json!({"timeZone": "Nowhere/Land"}));
    assert_eq!(reasons(&carry_out(&mut nowhere, &mut Vec::new(), 60)), ["UnknownTimeZone"]);
}
