//! The CronJob of the kubebuilder book: Jobs by the clock.
//!
//! - [`api`]: what a user writes, and what is reported back;
//! - [`history`]: the Jobs of a CronJob, sorted by how they ended;
//! - [`timetable`]: which run is due, and when the next one is;
//! - [`controller`]: how the Jobs come about.
//!
//! It keeps these promises, and `tests/` holds it to them:
//!
//! - every time that the schedule comes round, a Job is started from the template, once;
//! - of several runs that were missed the latest is made up for, if its deadline has not passed. After more than a hundred
//!   the operator does not guess: the condition `Available` says so;
//! - a run that meets an unfinished one is started, left out or takes its place, as `concurrencyPolicy` says;
//! - `suspend` starts nothing more and stops nothing;
//! - finished Jobs beyond the limits go, earliest first;
//! - a Job that is not ours is left alone, also when it has the name of one that is due;
//! - everything goes with the CronJob.
//!
//! One thing is not as in the book: there `status.lastScheduleTime` is made anew from the Jobs that exist, so that a Job
//! which somebody deletes runs once more, and with a history limit of zero every Job does so for ever. Here it never goes
//! back.
//!
//! The time is the context's, so that tests let an hour pass in milliseconds.

pub mod api;
pub mod controller;
pub mod history;
pub mod timetable;

pub use api::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus};
use k8s_openapi::api::batch::v1::Job;
use kubewright::{manager::ManagerBuilder, prelude::*};

/// The whole operator, for `main`, for tests and for whoever runs it inside of another program.
pub fn operator() -> ManagerBuilder {
    Manager::builder("cronjob")
        .leader_election(true)
        .controller(
            // Kubernetes has a controller of this kind's name: metrics should tell the two apart.
            Controller::of::<CronJob>()
                .named("cronjob-tutorial")
                .owns::<Job>()
                .reconcile(controller::reconcile),
        )
}
