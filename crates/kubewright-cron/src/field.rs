//! Field of a schedule: `*`, `5`, `1-5`, `*/15`, `MON-FRI`, and lists of those.

/// Range of a field's values, and their names.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldKind {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) names: &'static [&'static str],
}

pub(super) const MINUTE: FieldKind = FieldKind { first: 0, last: 59, names: &[] };
pub(super) const HOUR: FieldKind = FieldKind { first: 0, last: 23, names: &[] };
pub(super) const DAY: FieldKind = FieldKind { first: 1, last: 31, names: &[] };
pub(super) const MONTH: FieldKind = FieldKind {
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const WEEKDAY: FieldKind =
    FieldKind { first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Error of parsing a field. The messages are robfig/cron's, because users search for them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Neither a number nor a name.
    #[error("failed to parse int from {0}")]
    Number(String),
    /// `1-2-3`.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// `1/2/3`.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A value below the field's range.
    #[error("beginning of range ({value}) below minimum ({bound}): {text}")]
    Below {
        /// The value.
        value: u32,
        /// The first value of the field.
        bound: u32,
        /// The part of the field.
        text: String,
    },
    /// A value above the field's range.
    #[error("end of range ({value}) above maximum ({bound}): {text}")]
    Above {
        /// The value.
        value: u32,
        /// The last value of the field.
        bound: u32,
        /// The part of the field.
        text: String,
    },
    /// `5-1`.
    #[error("beginning of range ({first}) beyond end of range ({last}): {text}")]
    Backwards {
        /// The start of the range.
        first: u32,
        /// The end of the range.
        last: u32,
        /// The part of the field.
        text: String,
    },
    /// `*/0`.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

/// Set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Field {
    values: u64,
    /// Whether it is a plain `*`, so that only the other of the two day fields restricts the days.
    pub(super) any: bool,
}

impl Field {
    pub(super) fn parse(text: &str, kind: FieldKind) -> Result<Self, FieldError> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let range = range(part, kind)?;
            field.values |= range.values;
            field.any |= range.any;
        }
        if field.values == 0 { Err(FieldError::Number(text.to_owned())) } else { Ok(field) }
    }

    pub(super) fn contains(self, value: u32) -> bool {
        value < 64 && self.values & (1 << value) != 0
    }
}

fn range(part: &str, kind: FieldKind) -> Result<Field, FieldError> {
    let mut slashes = part.split('/');
    let (span, step) = (slashes.next().unwrap_or_default(), slashes.next());
    if slashes.next().is_some() {
        return Err(FieldError::Slashes(part.to_owned()));
    }
    let wild = span == "*" || span == "?";
    let (first, last) = if wild {
        (kind.first, kind.last)
    } else {
        let mut ends = span.split('-');
        let first = value(ends.next().unwrap_or_default(), kind)?;
        let last = ends.next().map(|text| value(text, kind)).transpose()?;
        if ends.next().is_some() {
            return Err(FieldError::Hyphens(part.to_owned()));
        }
        // `5/15` runs from 5 to the end of the field.
        (first, last.unwrap_or(if step.is_some() { kind.last } else { first }))
    };
    let step = match step {
        None => 1,
        Some(text) => text.parse().map_err(|_| FieldError::Number(text.to_owned()))?,
    };
    let text = part.to_owned();
    if first < kind.first {
        return Err(FieldError::Below { value: first, bound: kind.first, text });
    }
    if last > kind.last {
        return Err(FieldError::Above { value: last, bound: kind.last, text });
    }
    if first > last {
        return Err(FieldError::Backwards { first, last, text });
    }
    if step == 0 {
        return Err(FieldError::Step(text));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let values = (first..=last).step_by(step).fold(0, |values, value| values | 1 << value);
    Ok(Field { values, any: wild && step == 1 })
}

fn value(text: &str, kind: FieldKind) -> Result<u32, FieldError> {
    let lower = text.to_ascii_lowercase();
    if let Some(place) = kind.names.iter().position(|name| *name == lower) {
        return Ok(kind.first + u32::try_from(place).unwrap_or(0));
    }
    text.parse().map_err(|_| FieldError::Number(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, kind: FieldKind) -> Vec<u32> {
        let field = Field::parse(text, kind).unwrap_or_else(|error| panic!("{text}: {error}"));
        (0..64).filter(|value| field.contains(*value)).collect()
    }

    #[test]
    fn lists_ranges_steps_and_names_are_understood() {
        assert_eq!(values("5", MINUTE), [5]);
        assert_eq!(values("1-3,7", HOUR), [1, 2, 3, 7]);
        assert_eq!(values("*/20", MINUTE), [0, 20, 40]);
        assert_eq!(values("50/4", MINUTE), [50, 54, 58]);
        assert_eq!(values("10-20/5", MINUTE), [10, 15, 20]);
        assert_eq!(values("Mon-FRI", WEEKDAY), [1, 2, 3, 4, 5]);
        assert_eq!(values("jan,DEC", MONTH), [1, 12]);
        assert_eq!(values("?", WEEKDAY).len(), 7);
    }

    #[test]
    fn only_a_plain_star_does_not_restrict_the_days() {
        assert!(Field::parse("*", DAY).unwrap().any);
        assert!(!Field::parse("*/2", DAY).unwrap().any);
        assert!(!Field::parse("1-31", DAY).unwrap().any);
    }

    #[test]
    fn invalid_fields_are_refused_with_a_reason() {
        for (text, kind, expected) in [
            ("60", MINUTE, "end of range (60) above maximum (59): 60"),
            ("0", DAY, "beginning of range (0) below minimum (1): 0"),
            ("5-1", HOUR, "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0", MINUTE, "step of range should be a positive number: */0"),
            ("1-2-3", HOUR, "too many hyphens: 1-2-3"),
            ("1/2/3", HOUR, "too many slashes: 1/2/3"),
            ("noon", HOUR, "failed to parse int from noon"),
            ("", HOUR, "failed to parse int from "),
            ("7", WEEKDAY, "end of range (7) above maximum (6): 7"),
        ] {
            assert_eq!(Field::parse(text, kind).unwrap_err().to_string(), expected);
        }
    }
}
