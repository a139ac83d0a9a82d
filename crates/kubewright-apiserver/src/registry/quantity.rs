//! Quantities: `100m`, `1Gi`, `2`, in thousandths.

use serde_json::Value;

/// A quantity in thousandths of its unit; `None` when it is none.
pub fn parse(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i64().map(|n| i128::from(n) * 1000),
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

/// As [`parse`], of text.
pub fn parse_text(text: &str) -> Option<i128> {
    let split =
        text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let negative = number.starts_with('-');
    let digits = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Nine places of fraction are more than any suffix needs.
    let scale = 1_000_000_000i128;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: i128 = format!("{fraction:0<9.9}").parse().ok()?;
    let base = whole.checked_mul(scale)?.checked_add(fraction)?;
    let binary = |power: u32| base.checked_mul(1000)?.checked_mul(1i128 << (10 * power))?.checked_div(scale);
    let decimal =
        |power: u32| base.checked_mul(1000)?.checked_mul(10i128.checked_pow(power)?)?.checked_div(scale);
    let thousandths = match suffix {
        "" => decimal(0)?,
        "n" => base / 1_000_000 / scale,
        "u" => base / 1000 / scale,
        "m" => base / scale,
        "k" => decimal(3)?,
        "M" => decimal(6)?,
        "G" => decimal(9)?,
        "T" => decimal(12)?,
        "P" => decimal(15)?,
        "E" => decimal(18)?,
        "Ki" => binary(1)?,
        "Mi" => binary(2)?,
        "Gi" => binary(3)?,
        "Ti" => binary(4)?,
        "Pi" => binary(5)?,
        "Ei" => binary(6)?,
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            if power >= 0 {
                decimal(u32::try_from(power).ok()?)?
            } else {
                base.checked_mul(1000)?
                    .checked_div(scale)?
                    .checked_div(10i128.checked_pow(power.unsigned_abs())?)?
            }
        }
    };
    Some(if negative { -thousandths } else { thousandths })
}

/// Whether a quantity is written in powers of 1024.
pub fn is_binary(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with('i'))
}

/// Thousandths as a quantity, in the largest unit without a fraction.
pub fn format(thousandths: i128, binary: bool) -> String {
    if thousandths % 1000 != 0 {
        return format!("{thousandths}m");
    }
    let units = thousandths / 1000;
    let (base, suffixes): (i128, [&str; 6]) = if binary {
        (1024, ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    } else {
        (1000, ["k", "M", "G", "T", "P", "E"])
    };
    let (mut number, mut suffix) = (units, "");
    for next in suffixes {
        if number == 0 || number % base != 0 {
            break;
        }
        number /= base;
        suffix = next;
    }
    format!("{number}{suffix}")
}

/// Maps of quantities: their values are stored in canonical form.
const MAPS: [&str; 11] = [
    "requests",
    "limits",
    "capacity",
    "allocatable",
    "hard",
    "used",
    "max",
    "min",
    "default",
    "defaultRequest",
    "overhead",
];

/// Writes every quantity of an object in canonical form: `1024Mi` is `1Gi`, `0.5` is `500m`.
pub fn canonicalise(object: &mut crate::registry::descriptor::Json) {
    for (key, value) in object.iter_mut() {
        match value {
            Value::Object(map) if MAPS.contains(&key.as_str()) => {
                for quantity in map.values_mut() {
                    if let (Some(amount), true) =
                        (parse(quantity), quantity.is_string() || quantity.is_number())
                    {
                        *quantity = format(amount, is_binary(quantity)).into();
                    }
                }
            }
            // Raw JSON and schemas are nobody's quantities.
            Value::Object(_) if matches!(key.as_str(), "fieldsV1" | "openAPIV3Schema" | "annotations") => {}
            Value::Object(map) => canonicalise(map),
            Value::Array(list) => list.iter_mut().filter_map(Value::as_object_mut).for_each(canonicalise),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_in_thousandths() {
        for (text, value) in [
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
            assert_eq!(parse_text(text), Some(value), "{text}");
        }
        for (text, canonical) in
            [("1024Mi", "1Gi"), ("0.5", "500m"), ("1000m", "1"), ("1500m", "1500m"), ("1000", "1k")]
        {
            let value = Value::from(text);
            assert_eq!(format(parse(&value).unwrap(), is_binary(&value)), canonical);
        }
        for bad in ["", "x", "1Q", ".", "--1x", "99999999999999999999999999999999999999Ei"] {
            assert_eq!(parse_text(bad), None, "{bad}");
        }
    }
}
