//! Cron schedules as Kubernetes understands them.
//!
//! The grammar is that of robfig's cron, which Kubernetes and kubebuilder take: five fields, names, ranges and steps,
//! `@daily` and the like, `@every 1h30m`. A [`Schedule`] answers when it comes round next, which of the times that went
//! by were missed, and that in any time zone. Nothing here reads a clock: the time is handed in.
//!
//! ```
//! use kubewright_cron::Schedule;
//!
//! let weekdays = Schedule::parse("30 9 * * MON-FRI")?;
//! let friday_noon = "2026-01-02T12:00:00Z".parse()?;
//! let monday = weekdays.next(friday_noon).expect("there is always another Monday");
//! assert_eq!(monday.to_string(), "2026-01-05T09:30:00Z");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Pitfalls
//! - When clocks go forward, what falls into the gap does not happen; when they go back, what falls into the hour that is
//!   there twice happens twice. UTC knows neither.
//! - `@every` counts from the time that is handed in, not from midnight.

pub mod duration;
mod field;
mod schedule;

pub use field::FieldError;
pub use schedule::{Missed, Schedule, ScheduleError};

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
