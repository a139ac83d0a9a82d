//! The due run of a CronJob, and the next one.

use jiff::{SignedDuration, Timestamp};
use kubewright_cron::{Schedule, ScheduleError};

use crate::CronJobSpec;

/// Limit of missed runs: beyond it something is wrong, such as a clock.
const MAX_MISSED: usize = 100;

/// The due and the next run of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timetable {
    /// The latest run that is due and has not started.
    pub due: Option<Timestamp>,
    /// The next run; `None` if there is none.
    pub next: Option<Timestamp>,
}

/// Error of computing the runs of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    /// The schedule is invalid.
    #[error("unparseable schedule {schedule:?}: {source}")]
    Schedule {
        /// The schedule.
        schedule: String,
        /// The parse error.
        source: ScheduleError,
    },
    /// Too many runs were missed.
    #[error(
        "too many missed start times (> {MAX_MISSED}): set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )]
    TooManyMissed,
}

impl TimetableError {
    /// The reason for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "UnparseableSchedule",
            Self::TooManyMissed => "TooManyMissedTimes",
        }
    }
}

impl Timetable {
    /// Computes the runs at `now`; `since` is the time of the last run.
    pub fn new(now: Timestamp, since: Timestamp, spec: &CronJobSpec) -> Result<Self, TimetableError> {
        let schedule = Schedule::parse(&spec.schedule)
            .map_err(|source| TimetableError::Schedule { schedule: spec.schedule.clone(), source })?;
        let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        // Earlier runs have missed their deadline.
        let horizon = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
        let since = horizon.map_or(since, |horizon| horizon.max(since));
        let mut due = None;
        for (missed, time) in schedule.after(since).enumerate() {
            if time > now {
                // Counted from the last run and not from now, so that the period of `@every` is kept.
                return Ok(Self { due, next: Some(time) });
            }
            if missed == MAX_MISSED {
                return Err(TimetableError::TooManyMissed);
            }
            due = Some(time);
        }
        Ok(Self { due, next: None })
    }
}
