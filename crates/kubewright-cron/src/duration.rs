//! Parser of Go's durations: `1h30m`, `90s`, `1.5h`, `300ms`.

use jiff::SignedDuration;

/// Parses a non-negative duration.
///
/// ```
/// use kubewright_cron::duration;
///
/// assert_eq!(duration::parse("1m30s").map(|time| time.as_secs()), Some(90));
/// assert_eq!(duration::parse("soon"), None);
/// ```
pub fn parse(text: &str) -> Option<SignedDuration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end =
            tail.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(size)?)?;
        let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 9)?;
        if places > 0 {
            nanos =
                nanos.checked_add(fraction.parse::<i128>().ok()?.checked_mul(size)? / 10i128.pow(places))?;
        }
        rest = tail;
    }
    let seconds = i64::try_from(nanos / 1_000_000_000).ok()?;
    let left = i32::try_from(nanos % 1_000_000_000).ok()?;
    Some(SignedDuration::new(seconds, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        assert_eq!(parse("1h30m10s"), Some(SignedDuration::from_secs(5410)));
        assert_eq!(parse("1.5h"), Some(SignedDuration::from_secs(5400)));
        assert_eq!(parse("10ms"), Some(SignedDuration::from_millis(10)));
        for bad in ["", "1", "h", "1x", "-1s", "1h 2m"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
