//! Which run is due, and when the next one is.

use jiff::{SignedDuration, Timestamp};
use kubewright_cron::{Schedule, ScheduleError};

use crate::CronJobSpec;

/// More missed runs than this are not made up for: something is wrong that guessing makes worse.
const TOO_MANY: usize = 100;

/// What the schedule says at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timetable {
    /// The latest run that should have started and has not.
    pub due: Option<Timestamp>,
    /// The next one; none if the schedule never comes round again.
    pub next: Option<Timestamp>,
}

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    /// The schedule makes no sense.
    #[error("unparseable schedule {schedule:?}: {source}")]
    Schedule {
        /// The schedule.
        schedule: String,
        /// What is wrong with it.
        source: ScheduleError,
    },
    /// Nobody has looked for very long, or a clock is wrong.
    #[error(
        "too many missed start times (> {TOO_MANY}): set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )]
    TooManyMissed,
}

impl TimetableError {
    /// The reason, in a word, as conditions and events have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "UnparseableSchedule",
            Self::TooManyMissed => "TooManyMissedTimes",
        }
    }
}

impl Timetable {
    /// What the schedule says `now`, if `since` was the last time that it was obeyed.
    pub fn at(now: Timestamp, since: Timestamp, spec: &CronJobSpec) -> Result<Self, TimetableError> {
        let schedule = Schedule::parse(&spec.schedule)
            .map_err(|source| TimetableError::Schedule { schedule: spec.schedule.clone(), source })?;
        let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        // What lies before this is too late to start.
        let horizon = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
        let since = horizon.map_or(since, |horizon| horizon.max(since));
        let mut due = None;
        for (missed, time) in schedule.after(since).enumerate() {
            if time > now {
                // Counted from the run before and not from now, so that `@every` keeps its beat.
                return Ok(Self { due, next: Some(time) });
            }
            if missed == TOO_MANY {
                return Err(TimetableError::TooManyMissed);
            }
            due = Some(time);
        }
        Ok(Self { due, next: None })
    }
}
