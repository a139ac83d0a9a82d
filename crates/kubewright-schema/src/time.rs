//! Parsing and formatting of RFC 3339 times for `metav1.Time` and `metav1.MicroTime`.

/// Seconds since the Unix epoch and nanoseconds.
pub type Timestamp = (i64, u32);

/// Parses a time with seconds and a zone offset; `None` if Go would reject it.
pub fn parse(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    };
    let punctuation = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    if punctuation.iter().any(|(at, mark)| text.get(*at..at + 1) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=days_in(year, month)?).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (nanos, zone) = match rest.strip_prefix('.') {
        Some(fraction) => {
            let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            let digits = fraction.get(..end).filter(|digits| !digits.is_empty())?;
            let padded: String = digits.chars().chain(std::iter::repeat('0')).take(9).collect();
            (padded.parse().ok()?, &fraction[end..])
        }
        None => (0, rest),
    };
    let offset = match zone.as_bytes() {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let part =
                |from: usize| zone.get(from..from + 2).and_then(|p| p.parse::<u8>().ok()).map(i64::from);
            (part(1)? * 3600 + part(4)? * 60) * if *sign == b'+' { 1 } else { -1 }
        }
        _ => return None,
    };
    let days = days_from_civil(year, month, day);
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanos))
}

/// Formats as `metav1.Time`: whole seconds in UTC.
pub fn format_seconds((seconds, _): Timestamp) -> String {
    format!("{}Z", format_date_time(seconds))
}

/// Returns whether a string has the layout of whole seconds in UTC. It does not check that the date exists;
/// [`parse`] does. A valid time of this layout is canonical.
pub fn has_seconds_layout(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 20
        && bytes.iter().zip(b"dddd-dd-ddTdd:dd:ddZ").all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            mark => byte == mark,
        })
}

/// Formats as `metav1.MicroTime`: six fractional digits, in UTC.
pub fn format_micros((seconds, nanos): Timestamp) -> String {
    format!("{}.{:06}Z", format_date_time(seconds), nanos / 1000)
}

/// Formats as `2006-01-02T15:04:05`.
pub fn format_date_time(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

fn days_in(year: i64, month: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    Some(match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    })
}

/// Returns the days since the epoch of a date, counting years from March so that the leap day is last.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (m * 153 + 2) / 5 + day - 719_469
}

/// Returns year, month and day of a number of days since the epoch.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_formatted_in_utc() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-08-20T18:59:46Z", 1_787_252_386),
            ("2000-02-29T12:00:00.5+02:00", 951_818_400),
            ("1969-12-31T23:59:59Z", -1),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse(text).map(|t| t.0), Some(seconds), "{text}");
        }
        assert_eq!(format_seconds(parse("2000-02-29T12:00:00.5+02:00").unwrap()), "2000-02-29T10:00:00Z");
        assert_eq!(
            format_micros(parse("1999-12-31T23:59:59.1234567Z").unwrap()),
            "1999-12-31T23:59:59.123456Z"
        );
        for seconds in (-5_000_000_000..5_000_000_000).step_by(86_399 * 977) {
            assert_eq!(parse(&format_seconds((seconds, 0))), Some((seconds, 0)));
            assert!(has_seconds_layout(&format_seconds((seconds, 0))));
            assert!(!has_seconds_layout(&format_micros((seconds, 0))));
        }
    }

    #[test]
    fn times_that_go_rejects_are_rejected() {
        for bad in [
            "2021-02-29T00:00:00Z",
            "2020-01-01",
            "2020-01-01T00:00:00",
            "2020-01-01T25:00:00Z",
            "2020-1-1T0:0:0Z",
            "",
            "2020-01-01T00:00:00.Z",
            "2020-01-01t00:00:00Z",
            "2020-13-01T00:00:00Z",
            "ü020-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
