//! Arithmetic on quantities in thousandths. Their canonical form is in [`crate::schema::canonical`].

use serde_json::Value;

use crate::schema::quantity;

/// Parses a quantity in thousandths of its unit; `None` if invalid.
pub fn parse(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i64().map(|n| i128::from(n) * 1000),
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

/// Parses a quantity from a string; see [`parse`].
pub fn parse_text(text: &str) -> Option<i128> {
    quantity::milli_value(text)
}

/// Returns whether a quantity has a binary suffix.
pub fn is_binary(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with('i'))
}

/// Formats thousandths as a quantity, in the largest unit that leaves an integer.
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
