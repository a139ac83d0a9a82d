//! Durations and timestamps.

use super::{super::eval::fail, EvalResult};
use crate::value::Val;
use kubewright_schema::{
    go,
    time::{civil_from_days, days_from_civil, format_date_time},
};

const SECOND: i64 = 1_000_000_000;

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    Some(match (function, args) {
        ("timestamp", [Val::Timestamp(_)]) | ("duration", [Val::Duration(_)]) => Ok(args[0].clone()),
        ("timestamp", [Val::String(text)]) => timestamp(text).map_or_else(
            || fail(format!("parsing time {text:?}: invalid timestamp")),
            |t| Ok(Val::Timestamp(t)),
        ),
        ("timestamp", [Val::Int(seconds)]) => Ok(Val::Timestamp(i128::from(*seconds) * i128::from(SECOND))),
        ("duration", [Val::String(text)]) => duration(text)
            .map_or_else(|| fail(format!("time: invalid duration {text:?}")), |d| Ok(Val::Duration(d))),
        (getter, [Val::Duration(nanos)]) => Ok(Val::Int(match getter {
            "getHours" => nanos / SECOND / 3600,
            "getMinutes" => nanos / SECOND / 60,
            "getSeconds" => nanos / SECOND,
            "getMilliseconds" => nanos / 1_000_000 % 1000,
            _ => return None,
        })),
        (getter, [Val::Timestamp(nanos), zone @ ..]) => {
            let offset = match zone {
                [] => 0,
                [Val::String(zone)] => match offset(zone) {
                    Some(offset) => offset,
                    None => return Some(fail(format!("unknown time zone {zone}"))),
                },
                _ => return None,
            };
            Ok(Val::Int(time_part(getter, nanos + i128::from(offset) * i128::from(SECOND))?))
        }
        _ => return None,
    })
}

/// Parses a zone offset in seconds.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "Z" | "") {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str, below: i64| text.parse::<i64>().ok().filter(|n| (0..below).contains(n));
    Some(sign * (part(hours, 24)? * 3600 + part(minutes, 60)? * 60))
}

fn time_part(getter: &str, nanos: i128) -> Option<i64> {
    let seconds = i64::try_from(nanos.div_euclid(i128::from(SECOND))).ok()?;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    Some(match getter {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDate" => day,
        "getDayOfMonth" => day - 1,
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getDayOfYear" => days - days_from_civil(year, 1, 1),
        "getHours" => second / 3600,
        "getMinutes" => second / 60 % 60,
        "getSeconds" => second % 60,
        "getMilliseconds" => i64::try_from(nanos.rem_euclid(i128::from(SECOND)) / 1_000_000).ok()?,
        _ => return None,
    })
}

/// Parses an RFC 3339 time into nanoseconds since the epoch.
pub(crate) fn timestamp(text: &str) -> Option<i128> {
    let number = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    };
    let at = |i: usize, wanted: &[u8]| text.as_bytes().get(i).is_some_and(|b| wanted.contains(b));
    if !(at(4, b"-") && at(7, b"-") && at(10, b"Tt") && at(13, b":") && at(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("", rest),
    };
    let good =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let offset = if zone.eq_ignore_ascii_case("z") { 0 } else { offset(zone).filter(|_| zone.len() == 6)? };
    let nanos: i128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    (good && civil_from_days(days_from_civil(year, month, day)) == (year, month, day))
        .then(|| i128::from(seconds) * i128::from(SECOND) + nanos)
}

/// Parses a Go duration into nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_f64;
    let mut exact = 0_i64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, tail) = rest.split_at(length);
        let unit_length = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let scale: i64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        match amount.parse::<i64>() {
            Ok(whole) => exact = exact.checked_add(whole.checked_mul(scale)?)?,
            #[expect(clippy::cast_precision_loss, reason = "the fraction of a unit")]
            Err(_) => total += amount.parse::<f64>().ok()? * scale as f64,
        }
        rest = tail;
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded, and bounded by the units")]
    let fraction = total.round() as i64;
    exact.checked_add(fraction)?.checked_mul(sign)
}

/// Formats a duration in seconds, as `string()` does.
#[expect(clippy::cast_precision_loss, reason = "shown in seconds")]
pub(super) fn format_duration(nanos: i64) -> String {
    format!("{}s", go::float(nanos as f64 / SECOND as f64))
}

pub(super) fn format_timestamp(nanos: i128) -> String {
    let (seconds, rest) = (nanos.div_euclid(i128::from(SECOND)), nanos.rem_euclid(i128::from(SECOND)));
    let seconds = i64::try_from(seconds).unwrap_or_default();
    let fraction =
        if rest == 0 { String::new() } else { format!(".{}", format!("{rest:09}").trim_end_matches('0')) };
    format!("{}{fraction}Z", format_date_time(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_parsed_and_formatted() {
        let leap = timestamp("2024-02-29T12:00:00.5+02:00").unwrap();
        assert_eq!(format_timestamp(leap), "2024-02-29T10:00:00.5Z");
        assert_eq!(time_part("getDayOfWeek", leap), Some(4));
        assert_eq!(time_part("getDayOfYear", leap), Some(59));
        for bad in ["2023-02-29T00:00:00Z", "2024-01-01", "2024-01-01T24:00:00Z", "x"] {
            assert!(timestamp(bad).is_none(), "{bad}");
        }
        assert_eq!(duration("1h30m").map(format_duration).as_deref(), Some("5400s"));
        assert_eq!(duration("-1.5s"), Some(-1_500_000_000));
        assert!(duration("1").is_none() && duration("").is_none() && duration("5 parsecs").is_none());
    }
}
