//! Timestamps in the form of `metav1.Time`.

use jiff::Timestamp;

/// `2006-01-02T15:04:05Z`, the form of `metav1.Time`.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_machinery_writes_them() {
        let time: Timestamp = "2026-08-01T09:05:03.120004Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-08-01T09:05:03Z");
    }
}
