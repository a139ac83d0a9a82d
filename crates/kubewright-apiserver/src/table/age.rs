//! Ages in the format of kubectl.

use jiff::Timestamp;
use serde_json::Value;

use crate::registry::json::{Json, meta, text};

/// Returns the age of an object; `<unknown>` without a creation timestamp.
pub fn age(object: &Json, now: Timestamp) -> Value {
    since(text(meta(object), "creationTimestamp"), now).into()
}

/// Formats the time since a timestamp.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => duration(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".into(),
    }
}

/// Formats seconds in the two most significant units.
pub(super) fn duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".into();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |main: String, rest: i64, unit: &str| {
        if rest == 0 { main } else { format!("{main}{rest}{unit}") }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        with(format!("{minutes}m"), seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        with(format!("{hours}h"), minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        with(format!("{days}d"), hours % 24, "h")
    } else if hours < 24 * 365 * 2 {
        format!("{days}d")
    } else if hours < 24 * 365 * 8 {
        with(format!("{}y", days / 365), days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_format_of_kubectl() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3600, "60m"),
            (10_800, "3h"),
            (14_700, "4h5m"),
            (90_000, "25h"),
            (259_200, "3d"),
            (900_000, "10d"),
            (86_400 * 365 * 2 + 86_400, "2y1d"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
