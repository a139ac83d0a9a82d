//! Cron schedules of Kubernetes.
//!
//! The grammar is that of robfig/cron, which Kubernetes and kubebuilder use: five fields, names, ranges and
//! steps, `@daily` and the like, `@every 1h30m`. A [`Schedule`] computes its next time and the missed ones,
//! in any time zone. Nothing here reads a clock: callers pass the time.
//!
//! ```
//! use kubewright_cron::Schedule;
//!
//! let weekdays = Schedule::parse("30 9 * * MON-FRI")?;
//! let friday_noon = "2026-01-02T12:00:00Z".parse()?;
//! let monday = weekdays.next(friday_noon).expect("the schedule has a next time");
//! assert_eq!(monday.to_string(), "2026-01-05T09:30:00Z");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Pitfalls
//! - When clocks go forward, times in the gap are skipped; when they go back, times in the repeated hour
//!   occur twice. UTC has neither.
//! - `@every` counts from the time that the caller passes, not from midnight.

pub mod duration;
mod field;
mod schedule;

pub use field::FieldError;
pub use schedule::{Missed, Schedule, ScheduleError};

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
