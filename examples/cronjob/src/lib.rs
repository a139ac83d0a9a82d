//! The CronJob of the kubebuilder book: Jobs on a schedule.
//!
//! - [`api`]: the custom resource;
//! - [`history`]: the Jobs of a CronJob, grouped by outcome;
//! - [`timetable`]: the due run and the next one;
//! - [`controller`]: the reconciler.
//!
//! It guarantees, as `tests/` checks:
//!
//! - at each time of the schedule a Job is created from the template, once;
//! - of several missed runs the latest is started, if its deadline has not passed. If more than a hundred
//!   were missed, none is started and the condition `Available` reports it;
//! - a run that is due while another is unfinished is started, skipped or replaces it, as `concurrencyPolicy`
//!   says;
//! - `suspend` starts no more Jobs and stops none;
//! - finished Jobs beyond the limits are deleted, earliest first;
//! - a Job of another owner is left alone, even if it has the name of a due run;
//! - all Jobs are deleted with the CronJob.
//!
//! One difference to the book: there `status.lastScheduleTime` is recomputed from the existing Jobs, so that
//! a deleted Job runs again, and with a history limit of zero each Job does so for ever. Here it never goes
//! back.
//!
//! The time is the context's, so that tests are in virtual time.

pub mod api;
pub mod controller;
pub mod history;
pub mod timetable;

pub use api::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus};
use k8s_openapi::api::batch::v1::Job;
use kubewright::{manager::ManagerBuilder, prelude::*};

/// The whole operator, for `main`, for tests and for embedding.
pub fn operator() -> ManagerBuilder {
    Manager::builder("cronjob").leader_election(true).controller(
        // Kubernetes has a controller of the same kind name; metrics should distinguish the two.
        Controller::of::<CronJob>().named("cronjob-tutorial").owns::<Job>().reconcile(controller::reconcile),
    )
}
