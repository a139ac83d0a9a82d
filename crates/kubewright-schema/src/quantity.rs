//! Canonical form of `resource.Quantity`.
//!
//! `1000m`, `1` and `1e0` are equal; the API server writes the largest suffix that leaves an integer, in the
//! format (decimal, binary, exponent) of the input.

/// Returns the canonical form of a quantity; `None` if it does not parse or overflows.
pub fn canonical(text: &str) -> Option<String> {
    let Parsed { nanos, family } = parse(text)?;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    // Amounts below 1024 are written without a binary suffix.
    if family == Family::Binary && nanos.abs() >= 1024 * NANO {
        let (mut amount, mut power) = (round_away(nanos, NANO), 0);
        while amount % 1024 == 0 && power < 6 {
            (amount, power) = (amount / 1024, power + 1);
        }
        return Some(format!("{amount}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]));
    }
    let (mut amount, mut exponent) = (nanos, -9);
    while amount % 1000 == 0 && exponent < 18 {
        (amount, exponent) = (amount / 1000, exponent + 3);
    }
    Some(match (family, exponent) {
        (_, 0) => amount.to_string(),
        (Family::Exponent, _) => format!("{amount}e{exponent}"),
        _ => {
            let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
            let at = usize::try_from((exponent + 9) / 3).unwrap_or_default();
            format!("{amount}{}", suffixes[at.min(suffixes.len() - 1)])
        }
    })
}

/// Returns whether a quantity is certainly canonical: an integer that no larger suffix shortens. A fast path
/// that most quantities take.
pub fn is_trivially_canonical(text: &str) -> bool {
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

/// Returns a quantity in thousandths, rounded away from zero, like `Quantity.MilliValue`; `None` if it does
/// not parse.
pub fn milli_value(text: &str) -> Option<i128> {
    Some(round_away(parse(text)?.nanos, NANO / 1000))
}

/// Returns a quantity in billionths; finer amounts are rounded away from zero. `None` if it does not parse.
pub fn nano_value(text: &str) -> Option<i128> {
    parse(text).map(|parsed| parsed.nanos)
}

const NANO: i128 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

struct Parsed {
    /// In billionths; finer amounts are rounded up so that none becomes zero.
    nanos: i128,
    family: Family,
}

fn parse(text: &str) -> Option<Parsed> {
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
    let (family, power, factor) = match suffix {
        "" => (Family::Decimal, 0, 1),
        "n" => (Family::Decimal, -9, 1),
        "u" => (Family::Decimal, -6, 1),
        "m" => (Family::Decimal, -3, 1),
        "k" => (Family::Decimal, 3, 1),
        "M" => (Family::Decimal, 6, 1),
        "G" => (Family::Decimal, 9, 1),
        "T" => (Family::Decimal, 12, 1),
        "P" => (Family::Decimal, 15, 1),
        "E" => (Family::Decimal, 18, 1),
        "Ki" => (Family::Binary, 0, 1i128 << 10),
        "Mi" => (Family::Binary, 0, 1 << 20),
        "Gi" => (Family::Binary, 0, 1 << 30),
        "Ti" => (Family::Binary, 0, 1 << 40),
        "Pi" => (Family::Binary, 0, 1 << 50),
        "Ei" => (Family::Binary, 0, 1 << 60),
        other => (Family::Exponent, other.strip_prefix(['e', 'E'])?.parse().ok()?, 1),
    };
    let amount = digits.checked_mul(factor)?;
    let shift = 9i32.checked_add(power)?.checked_sub(scale)?;
    let nanos = match u32::try_from(shift) {
        Ok(up) => amount.checked_mul(10i128.checked_pow(up)?)?,
        Err(_) => 10i128.checked_pow(shift.unsigned_abs()).map_or(1, |down| round_away(amount, down)),
    };
    Some(Parsed { nanos: if negative { -nanos } else { nanos }, family })
}

/// Divides, rounding away from zero.
fn round_away(amount: i128, by: i128) -> i128 {
    let quotient = amount / by;
    if amount % by == 0 { quotient } else { quotient + amount.signum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_quantities_have_one_canonical_form() {
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
        for (text, spelling) in cases {
            assert_eq!(canonical(text).as_deref(), Some(spelling), "{text}");
            assert_eq!(canonical(spelling).as_deref(), Some(spelling), "{spelling}");
        }
    }

    #[test]
    fn trivially_canonical_quantities_are_canonical() {
        for number in (0..3000_u64).chain([4096, 10_240, 1_000_000, 999_999_999_999]) {
            for suffix in ["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3"] {
                let text = format!("{number}{suffix}");
                if is_trivially_canonical(&text) {
                    assert_eq!(canonical(&text).as_deref(), Some(&*text));
                }
            }
        }
        assert!(
            is_trivially_canonical("500m") && is_trivially_canonical("512Mi") && is_trivially_canonical("1")
        );
        for other in ["", "0", "01", "1.5", "-1", "+1", "1e3", "9999999999999", "1x", "Mi"] {
            assert!(!is_trivially_canonical(other), "{other}");
        }
    }

    #[test]
    fn invalid_quantities_have_no_canonical_form() {
        for bad in ["", "Gi", "1x", "1.2.3", "1e", "--1", "1e999999999999", "9".repeat(60).as_str()] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
