//! Schedules and their times in a time zone.

use jiff::{SignedDuration, Timestamp, Unit, Zoned, tz::TimeZone};

use crate::{
    duration,
    field::{DAY, Field, FieldError, HOUR, MINUTE, MONTH, WEEKDAY},
};

/// Error of parsing a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The number of fields is not five.
    #[error("expected exactly 5 fields, found {found}: [{text}]")]
    Fields {
        /// The number of fields.
        found: usize,
        /// The text.
        text: String,
    },
    /// A field is invalid.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// `@sometimes`.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every soon`.
    #[error("failed to parse duration {0}")]
    Duration(String),
}

/// Cron schedule in a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Every(SignedDuration),
    At(Box<[Field; 5]>),
}

/// Missed times of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// The latest time that was missed.
    pub latest: Timestamp,
    /// Whether more than a hundred were missed, as after a long downtime or with a wrong clock.
    pub many: bool,
}

impl Schedule {
    /// Parses a schedule, in UTC.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let text = text.trim();
        let rule = match text.strip_prefix('@') {
            Some(word) => {
                macro_rule(word).unwrap_or_else(|| Err(ScheduleError::Descriptor(text.to_owned())))?
            }
            None => fields(text)?,
        };
        Ok(Self { rule, zone: TimeZone::UTC })
    }

    /// Sets the time zone.
    #[must_use]
    pub fn in_zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Returns the first time after this one; `None` if there is none in five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(period) => Timestamp::from_second(after.as_second()).ok()?.checked_add(*period).ok(),
            Rule::At(fields) => self.next_at(fields, after),
        }
    }

    /// Returns all times after this one, in order.
    ///
    /// ```
    /// use kubewright_cron::Schedule;
    ///
    /// let hours = Schedule::parse("@hourly")?;
    /// let noon = "2026-01-01T12:00:00Z".parse()?;
    /// let next: Vec<String> = hours.after(noon).take(2).map(|time| time.to_string()).collect();
    /// assert_eq!(next, ["2026-01-01T13:00:00Z", "2026-01-01T14:00:00Z"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next(time), |time| self.next(*time))
    }

    fn next_at(&self, fields: &[Field; 5], after: Timestamp) -> Option<Timestamp> {
        let [minutes, hours, days, months, weekdays] = fields;
        let minute = SignedDuration::from_mins(1);
        let whole = Timestamp::from_second(after.as_second().div_euclid(60) * 60).ok()?;
        let mut at: Zoned = whole.checked_add(minute).ok()?.to_zoned(self.zone.clone());
        // Only historic zones have offsets that are no whole minutes; round for those.
        at = at.round(Unit::Minute).ok()?;
        let last = at.year().checked_add(5)?;
        let number = |value: i8| u32::try_from(value).unwrap_or(0);
        while at.year() <= last {
            let date = at.date();
            if !months.contains(number(date.month())) {
                at = date.last_of_month().tomorrow().ok()?.to_zoned(self.zone.clone()).ok()?;
                continue;
            }
            let by_day = days.contains(number(date.day()));
            let by_weekday = weekdays.contains(number(date.weekday().to_sunday_zero_offset()));
            // As in cron: if both day fields are restricted, one of them must match; otherwise both.
            let chosen = if days.any || weekdays.any { by_day && by_weekday } else { by_day || by_weekday };
            if !chosen {
                at = date.tomorrow().ok()?.to_zoned(self.zone.clone()).ok()?;
                continue;
            }
            if !hours.contains(number(at.hour())) {
                let rest = SignedDuration::from_mins(60 - i64::from(at.minute()));
                at = at.checked_add(rest).ok()?;
                continue;
            }
            if !minutes.contains(number(at.minute())) {
                at = at.checked_add(minute).ok()?;
                continue;
            }
            return Some(at.timestamp());
        }
        None
    }

    /// Returns the times after `since` up to `now`, without iterating over all of them.
    pub fn missed(&self, since: Timestamp, now: Timestamp) -> Option<Missed> {
        let first = self.next(since)?;
        if first > now {
            return None;
        }
        let Some(second) = self.next(first).filter(|second| *second <= now) else {
            return Some(Missed { latest: first, many: false });
        };
        let period = second.duration_since(first).as_secs().max(1);
        let missed = now.duration_since(first).as_secs() / period + 1;
        // Skips most of the missed times and iterates over the last two periods only, because intervals may
        // vary.
        let jump = SignedDuration::from_secs((missed - 2).max(0) * period);
        let mut latest = first;
        let mut at = first.checked_add(jump).unwrap_or(first);
        while let Some(next) = self.next(at).filter(|next| *next <= now) {
            latest = next;
            at = next;
        }
        Some(Missed { latest, many: missed > 100 })
    }

    /// Formats a time as the annotations of Jobs have it: RFC 3339 in the schedule's zone.
    pub fn format(&self, time: Timestamp) -> String {
        let zoned = time.to_zoned(self.zone.clone());
        if zoned.offset().is_zero() {
            return zoned.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        }
        zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }
}

fn fields(text: &str) -> Result<Rule, ScheduleError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = parts.as_slice() else {
        return Err(ScheduleError::Fields { found: parts.len(), text: parts.join(" ") });
    };
    Ok(Rule::At(Box::new([
        Field::parse(minute, MINUTE)?,
        Field::parse(hour, HOUR)?,
        Field::parse(day, DAY)?,
        Field::parse(month, MONTH)?,
        Field::parse(weekday, WEEKDAY)?,
    ])))
}

fn macro_rule(word: &str) -> Option<Result<Rule, ScheduleError>> {
    let text = match word {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => {
            let period = word.strip_prefix("every ")?;
            return Some(
                self::period(period)
                    .map(Rule::Every)
                    .ok_or_else(|| ScheduleError::Duration(format!("@{word}"))),
            );
        }
    };
    Some(fields(text))
}

/// The period of `@every`, in whole seconds and at least one.
fn period(text: &str) -> Option<SignedDuration> {
    duration::parse(text).map(|period| SignedDuration::from_secs(period.as_secs().max(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn nexts(schedule: &str, zone: &str, after: &str, many: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule).unwrap().in_zone(TimeZone::get(zone).unwrap());
        let mut time = at(after);
        let step = || {
            time = schedule.next(time)?;
            Some(time.to_string())
        };
        std::iter::from_fn(step).take(many).collect()
    }

    #[test]
    fn the_next_times_of_schedules() {
        let next = |schedule, after| nexts(schedule, "UTC", after, 1).remove(0);
        assert_eq!(next("* * * * *", "2026-01-01T00:00:00Z"), "2026-01-01T00:01:00Z");
        assert_eq!(next("* * * * *", "2026-01-01T00:00:59.5Z"), "2026-01-01T00:01:00Z");
        assert_eq!(next("*/15 2-4 * * *", "2026-01-01T04:45:00Z"), "2026-01-02T02:00:00Z");
        assert_eq!(next("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
        assert_eq!(next("30 9 * * MON-FRI", "2026-01-02T10:00:00Z"), "2026-01-05T09:30:00Z");
        assert_eq!(next("@yearly", "2026-01-01T00:00:00Z"), "2027-01-01T00:00:00Z");
        assert_eq!(next("@weekly", "2026-01-01T00:00:00Z"), "2026-01-04T00:00:00Z");
        assert_eq!(next("@every 1h30m", "2026-01-01T00:00:00.7Z"), "2026-01-01T01:30:00Z");
    }

    #[test]
    fn two_restricted_day_fields_are_alternatives() {
        let days = nexts("0 0 13 * FRI", "UTC", "2026-02-01T00:00:00Z", 4);
        assert_eq!(
            days,
            ["2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z", "2026-02-27T00:00:00Z"]
        );
    }

    #[test]
    fn a_schedule_without_times_has_no_next_time() {
        assert_eq!(nexts("0 0 31 2 *", "UTC", "2026-01-01T00:00:00Z", 1), Vec::<String>::new());
    }

    #[test]
    fn time_zones_decide_the_hour_and_clock_changes_skip_or_repeat_it() {
        assert_eq!(nexts("0 9 * * *", "Asia/Tokyo", "2026-01-01T00:30:00Z", 1), ["2026-01-02T00:00:00Z"]);
        // Clocks go from 2:00 to 3:00 on 29 March 2026: that day has no 2:30.
        let spring = nexts("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 1);
        assert_eq!(spring, ["2026-03-30T00:30:00Z"]);
        // Clocks go from 3:00 to 2:00 on 25 October: that day has two.
        let autumn = nexts("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    }

    #[test]
    fn invalid_schedules_are_refused_with_a_reason() {
        let why = |text| Schedule::parse(text).unwrap_err().to_string();
        assert_eq!(why("every day"), "expected exactly 5 fields, found 2: [every day]");
        assert_eq!(why("@sometimes"), "unrecognized descriptor: @sometimes");
        assert_eq!(why("@every soon"), "failed to parse duration @every soon");
        assert_eq!(why("61 * * * *"), "end of range (61) above maximum (59): 61");
    }

    #[test]
    fn the_latest_missed_time_is_returned() {
        let schedule = Schedule::parse("*/10 * * * *").unwrap();
        let latest = |since: &str, now: &str| {
            schedule.missed(at(since), at(now)).map(|missed| (missed.latest.to_string(), missed.many))
        };
        assert_eq!(latest("2026-01-01T00:00:00Z", "2026-01-01T00:09:00Z"), None);
        assert_eq!(
            latest("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"),
            Some(("2026-01-01T00:10:00Z".into(), false))
        );
        assert_eq!(
            latest("2026-01-01T00:00:00Z", "2026-01-01T01:05:00Z"),
            Some(("2026-01-01T01:00:00Z".into(), false))
        );
        assert_eq!(
            latest("2026-01-01T00:00:00Z", "2026-01-03T00:01:00Z"),
            Some(("2026-01-03T00:00:00Z".into(), true))
        );
    }

    #[test]
    fn a_period_is_at_least_a_second() {
        assert_eq!(period("10ms"), Some(SignedDuration::from_secs(1)));
        assert_eq!(period("1m0.9s"), Some(SignedDuration::from_secs(60)));
    }

    proptest! {
        #[test]
        fn no_matching_time_lies_before_the_next_one(
            minute in 0..60u32, step in 1..30u32, hour in 0..24u32, weekday in 0..7u32, start in 1_700_000_000i64..1_900_000_000,
        ) {
            let text = format!("{minute}/{step} {hour} * * {weekday}");
            let schedule = Schedule::parse(&text).unwrap();
            let start = Timestamp::from_second(start).unwrap();
            let next = schedule.next(start).unwrap();
            prop_assert!(next > start);
            let zoned = next.to_zoned(TimeZone::UTC);
            prop_assert_eq!(u32::try_from(zoned.hour()).unwrap(), hour);
            prop_assert_eq!(u32::try_from(zoned.weekday().to_sunday_zero_offset()).unwrap(), weekday);
            prop_assert!(u32::try_from(zoned.minute()).unwrap() >= minute);
            prop_assert_eq!((u32::try_from(zoned.minute()).unwrap() - minute) % step, 0);
            let before = next.checked_sub(SignedDuration::from_secs(1)).unwrap();
            if before > start {
                prop_assert_eq!(schedule.next(before), Some(next), "it is the first from wherever one looks");
            }
        }

        #[test]
        fn parsing_never_panics(text in ".{0,40}") {
            if let Ok(schedule) = Schedule::parse(&text) {
                let _ = schedule.next(Timestamp::UNIX_EPOCH);
            }
        }
    }
}
