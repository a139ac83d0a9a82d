//! Amounts of resources as the Kubernetes API writes them: `100m`, `1.5Gi`, `2e3`.

use std::{cmp::Ordering, fmt, str::FromStr};

const NANO: i128 = 1_000_000_000;

/// An amount of a resource (`resource.Quantity` in Go), exact to a billionth.
///
/// `1000m`, `1` and `1e0` are the same amount. [`Display`](fmt::Display) writes the canonical form: the largest suffix that
/// leaves a whole number, of the notation that the amount was written in.
///
/// ```
/// use kubewright_core::Quantity;
///
/// let memory: Quantity = "1024Mi".parse()?;
/// assert_eq!(memory.to_string(), "1Gi");
/// assert_eq!(memory, "1073741824".parse()?);
/// assert!("500m".parse::<Quantity>()? < "1".parse()?);
/// # Ok::<(), kubewright_core::QuantityError>(())
/// ```
///
/// Equality and order compare amounts, not notations.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

/// The suffixes that an amount is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notation {
    /// `m`, `k`, `M`, `G`: powers of 1000 (`DecimalSI`).
    Decimal,
    /// `Ki`, `Mi`, `Gi`: powers of 1024 (`BinarySI`).
    Binary,
    /// `e3`: powers of ten (`DecimalExponent`).
    Exponent,
}

/// A text that is no amount, or one too large to compute with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a quantity: write a number with an optional suffix, such as 500m, 2 or 1Gi")]
pub struct QuantityError(pub String);

impl Quantity {
    /// The amount zero.
    pub const ZERO: Self = Self { nanos: 0, notation: Notation::Decimal };

    /// An amount in billionths.
    pub const fn from_nanos(nanos: i128, notation: Notation) -> Self {
        Self { nanos, notation }
    }

    /// An amount in thousandths; `None` on overflow.
    pub fn from_millis(millis: i128, notation: Notation) -> Option<Self> {
        Some(Self { nanos: millis.checked_mul(NANO / 1000)?, notation })
    }

    /// The amount in billionths.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// The amount in thousandths, rounded away from zero (`MilliValue` in Go).
    pub fn millis(self) -> i128 {
        round_away(self.nanos, NANO / 1000)
    }

    /// The amount in whole units, rounded away from zero (`Value` in Go).
    pub fn units(self) -> i128 {
        round_away(self.nanos, NANO)
    }

    /// The notation that the amount is written in.
    pub const fn notation(self) -> Notation {
        self.notation
    }

    /// The sum, in the notation of `self`, or of `other` where `self` is zero; `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let notation = if self.nanos == 0 { other.notation } else { self.notation };
        Some(Self { nanos: self.nanos.checked_add(other.nanos)?, notation })
    }

    /// The difference, in the notation of `self`; `None` on overflow.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_sub(other.nanos)?, notation: self.notation })
    }

    /// Whether a text is surely in canonical form, without parsing it: a whole number that no larger suffix shortens. False
    /// for some canonical texts.
    pub fn is_plainly_canonical(text: &str) -> bool {
        let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        if digits.is_empty() || digits.len() > 12 || digits.starts_with('0') {
            return false;
        }
        let number = digits.bytes().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        match suffix {
            "" | "m" | "k" | "M" | "G" => number % 1000 != 0,
            "Ki" | "Mi" | "Gi" => number % 1024 != 0,
            _ => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?;
        let (notation, power, factor) = match suffix {
            "" => (Notation::Decimal, 0, 1),
            "n" => (Notation::Decimal, -9, 1),
            "u" => (Notation::Decimal, -6, 1),
            "m" => (Notation::Decimal, -3, 1),
            "k" => (Notation::Decimal, 3, 1),
            "M" => (Notation::Decimal, 6, 1),
            "G" => (Notation::Decimal, 9, 1),
            "T" => (Notation::Decimal, 12, 1),
            "P" => (Notation::Decimal, 15, 1),
            "E" => (Notation::Decimal, 18, 1),
            "Ki" => (Notation::Binary, 0, 1i128 << 10),
            "Mi" => (Notation::Binary, 0, 1 << 20),
            "Gi" => (Notation::Binary, 0, 1 << 30),
            "Ti" => (Notation::Binary, 0, 1 << 40),
            "Pi" => (Notation::Binary, 0, 1 << 50),
            "Ei" => (Notation::Binary, 0, 1 << 60),
            other => (Notation::Exponent, other.strip_prefix(['e', 'E'])?.parse().ok()?, 1),
        };
        let amount = digits.checked_mul(factor)?;
        let shift = 9i32.checked_add(power)?.checked_sub(scale)?;
        // Finer amounts are rounded up, so that none becomes zero.
        let nanos = match u32::try_from(shift) {
            Ok(up) => amount.checked_mul(10i128.checked_pow(up)?)?,
            Err(_) => 10i128.checked_pow(shift.unsigned_abs()).map_or(1, |down| round_away(amount, down)),
        };
        Some(Self { nanos: if negative { -nanos } else { nanos }, notation })
    }
}

/// Divides and rounds away from zero.
fn round_away(amount: i128, by: i128) -> i128 {
    let quotient = amount / by;
    if amount % by == 0 { quotient } else { quotient + amount.signum() }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text).ok_or_else(|| QuantityError(text.to_owned()))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nanos, notation } = *self;
        if nanos == 0 {
            return f.write_str("0");
        }
        // There are no binary suffixes for amounts below the smallest of them.
        if notation == Notation::Binary && nanos.abs() >= 1024 * NANO {
            let (mut amount, mut power) = (round_away(nanos, NANO), 0);
            while amount % 1024 == 0 && power < 6 {
                (amount, power) = (amount / 1024, power + 1);
            }
            return write!(f, "{amount}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let (mut amount, mut exponent) = (nanos, -9);
        while amount % 1000 == 0 && exponent < 18 {
            (amount, exponent) = (amount / 1000, exponent + 3);
        }
        match (notation, exponent) {
            (_, 0) => write!(f, "{amount}"),
            (Notation::Exponent, _) => write!(f, "{amount}e{exponent}"),
            _ => {
                let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                let at = usize::try_from((exponent + 9) / 3).unwrap_or_default();
                write!(f, "{amount}{}", suffixes[at.min(suffixes.len() - 1)])
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        text.parse::<Quantity>().ok().map(|quantity| quantity.to_string())
    }

    #[test]
    fn each_amount_has_one_canonical_form() {
        let cases = [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1000Ki", "1000Ki"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("1E+3", "1e3"),
            ("12e6", "12e6"),
            ("100", "100"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1000m", "-1"),
            ("+1", "1"),
            ("1.1Ki", "1127"),
            ("0.0000000001", "1n"),
            ("5.", "5"),
            (".5", "500m"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("129M", "129M"),
            ("1023Ki", "1023Ki"),
        ];
        for (text, form) in cases {
            assert_eq!(canonical(text).as_deref(), Some(form), "{text}");
            assert_eq!(canonical(form).as_deref(), Some(form), "{form}");
        }
    }

    #[test]
    fn a_plainly_canonical_text_is_canonical() {
        for number in (0..3000_u64).chain([4096, 10_240, 1_000_000, 999_999_999_999]) {
            for suffix in ["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3"] {
                let text = format!("{number}{suffix}");
                if Quantity::is_plainly_canonical(&text) {
                    assert_eq!(canonical(&text).as_deref(), Some(&*text));
                }
            }
        }
        let plainly = Quantity::is_plainly_canonical;
        assert!(plainly("500m") && plainly("512Mi") && plainly("1"));
        for other in ["", "0", "01", "1.5", "-1", "+1", "1e3", "9999999999999", "1x", "Mi"] {
            assert!(!plainly(other), "{other}");
        }
    }

    #[test]
    fn texts_that_are_no_amounts_are_refused() {
        let long = "9".repeat(60);
        for bad in
            ["", "x", "Gi", "1x", "1Q", ".", "--1x", "1.2.3", "1e", "--1", "1e999999999999", long.as_str()]
        {
            assert_eq!(bad.parse::<Quantity>(), Err(QuantityError(bad.to_owned())));
        }
    }

    #[test]
    fn amounts_are_compared_in_thousandths_and_units() {
        for (text, millis) in [
            ("0", 0),
            ("1", 1000),
            ("100m", 100),
            ("1.5", 1500),
            ("1Ki", 1_024_000),
            ("1Gi", 1_073_741_824_000),
            ("2k", 2_000_000),
            ("1e3", 1_000_000),
            ("-1", -1000),
            ("0.5Gi", 536_870_912_000),
        ] {
            assert_eq!(text.parse::<Quantity>().map(Quantity::millis), Ok(millis), "{text}");
        }
        let sum: Option<Quantity> =
            ["1Gi", "512Mi"].iter().try_fold(Quantity::ZERO, |sum, text| sum.checked_add(text.parse().ok()?));
        assert_eq!(sum.map(|sum| sum.to_string()).as_deref(), Some("1536Mi"));
    }
}
