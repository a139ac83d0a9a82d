//! A quantity as Go has it in memory, for [`dump`](super::dump).
//!
//! `resource.Quantity` keeps what it has read as a number and a power of ten, and sometimes the text as well; beyond some
//! fifteen digits it keeps a decimal of any length instead. Which of these it does follows `ParseQuantity` line by line,
//! for the server has made the text canonical: digits, perhaps a sign, and a suffix.

/// The smallest power of ten that a quantity counts in.
const NANO: i32 = -9;
/// The digits that surely fit into sixty-four bits.
const DIGITS: i32 = 18;
/// The most that a quantity with a binary suffix can be.
const MOST: u128 = (1 << 63) - 1;

/// What Go has in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quantity<'a> {
    amount: Amount,
    /// The text, where Go keeps it.
    text: &'a str,
    format: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
enum Amount {
    Int { value: i64, scale: i32 },
    Decimal { negative: bool, unscaled: u128, scale: i32 },
}

impl<'a> Quantity<'a> {
    /// Reads a canonical quantity.
    pub(super) fn parse(text: &'a str) -> Self {
        if text == "0" {
            return Self { amount: Amount::Int { value: 0, scale: 0 }, text, format: "DecimalSI" };
        }
        let negative = text.starts_with('-');
        let number = text.trim_start_matches(['-', '+']);
        let end =
            number.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(number.len());
        let (number, suffix) = number.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let (binary, exponent, format) = interpret(suffix);
        let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX);
        let unscaled: u128 = digits.parse().unwrap_or(u128::MAX);
        let places = length(fraction);

        let (room, scale, factor) = if binary {
            let room = if places == 0 { 15 - length(whole) - exponent * 3 / 10 - 1 } else { -1 };
            (room, 0, 1_u128 << exponent)
        } else {
            (DIGITS.saturating_sub(length(&digits)), exponent, 1)
        };
        let scale = scale - places;
        let product = unscaled.saturating_mul(factor);
        if let Ok(value) = i64::try_from(product)
            && room >= 0
            && scale >= NANO
        {
            let kept = if binary {
                exponent % 10 == 0 && unscaled & 7 != 0
            } else {
                scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
            };
            let value = if negative { -value } else { value };
            return Self { amount: Amount::Int { value, scale }, text: if kept { text } else { "" }, format };
        }
        // Rounded to nanos, which is what the decimal counts in from then on.
        let shift = u32::try_from(scale - NANO).unwrap_or_default();
        let nanos = 10_u128.checked_pow(shift).and_then(|power| product.checked_mul(power));
        let amount = if binary && product > MOST {
            Amount::Decimal { negative, unscaled: MOST, scale: 0 }
        } else {
            Amount::Decimal { negative, unscaled: nanos.unwrap_or(u128::MAX), scale: -NANO }
        };
        Self { amount, text: "", format }
    }

    /// The Go value as it is written down.
    pub(super) fn dump(&self) -> String {
        let (value, scale, decimal) = match self.amount {
            Amount::Int { value, scale } => (value, scale, "<nil>".to_owned()),
            Amount::Decimal { negative, unscaled, scale } => (0, 0, {
                let words: Vec<String> =
                    [unscaled & u128::from(u64::MAX), unscaled >> 64].map(|word| word.to_string()).into();
                let words = &words[..if unscaled >> 64 == 0 { 1 } else { 2 }];
                let number = format!("{{neg:(bool){negative} abs:(big.nat)[{}]}}", words.join(" "));
                format!("{{unscaled:(big.Int){number} scale:(inf.Scale){scale}}}")
            }),
        };
        format!(
            "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
             d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} s:(string){} Format:(resource.Format){}}}",
            self.text, self.format
        )
    }
}

/// Whether a suffix is a power of two, its exponent, and what Go calls its kind.
fn interpret(suffix: &str) -> (bool, i32, &'static str) {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let at = |suffixes: &[&str]| {
        suffixes.iter().position(|known| *known == suffix).and_then(|at| i32::try_from(at).ok())
    };
    if let Some(at) = at(&decimal) {
        (false, NANO + 3 * at, "DecimalSI")
    } else if let Some(at) = at(&binary) {
        (true, 10 * (at + 1), "BinarySI")
    } else {
        (false, suffix.trim_start_matches(['e', 'E']).parse().unwrap_or_default(), "DecimalExponent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go has in memory for these: number and power of ten, or words and scale of the decimal; text; format.
    #[test]
    fn quantities_are_kept_as_go_keeps_them() {
        for (text, (value, scale), decimal, kept, format) in [
            ("0", (0_i64, 0), None, "0", "DecimalSI"),
            ("100m", (100, -3), None, "100m", "DecimalSI"),
            ("500m", (500, -3), None, "500m", "DecimalSI"),
            ("1", (1, 0), None, "1", "DecimalSI"),
            ("2", (2, 0), None, "2", "DecimalSI"),
            ("64Mi", (67_108_864, 0), None, "", "BinarySI"),
            ("100Mi", (104_857_600, 0), None, "100Mi", "BinarySI"),
            ("1Gi", (1_073_741_824, 0), None, "1Gi", "BinarySI"),
            ("3Gi", (3_221_225_472, 0), None, "3Gi", "BinarySI"),
            ("1536Mi", (1_610_612_736, 0), None, "", "BinarySI"),
            ("10Gi", (10_737_418_240, 0), None, "10Gi", "BinarySI"),
            ("100Ti", (0, 0), Some(("8568098291072368640 5960", 9)), "", "BinarySI"),
            ("1e3", (1, 3), None, "1e3", "DecimalExponent"),
            ("1k", (1, 3), None, "1k", "DecimalSI"),
            ("1000k", (1000, 3), None, "", "DecimalSI"),
            ("9Ei", (0, 0), Some(("9223372036854775807", 0)), "", "BinarySI"),
            ("123456789012345678901", (0, 0), Some(("14083847773602697728 6692605942", 9)), "", "DecimalSI"),
            ("-5", (-5, 0), None, "-5", "DecimalSI"),
            ("8", (8, 0), None, "8", "DecimalSI"),
            ("1M", (1, 6), None, "1M", "DecimalSI"),
        ] {
            let decimal = decimal.map_or("<nil>".to_owned(), |(words, scale)| {
                format!("{{unscaled:(big.Int){{neg:(bool)false abs:(big.nat)[{words}]}} scale:(inf.Scale){scale}}}")
            });
            let wanted = format!(
                "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
                 d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} s:(string){kept} Format:(resource.Format){format}}}"
            );
            assert_eq!(Quantity::parse(text).dump(), wanted, "{text}");
        }
    }
}
