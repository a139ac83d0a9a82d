//! Quantities and semantic versions.

use std::{cmp::Ordering, fmt, sync::Arc};

use super::{super::eval::fail, EvalResult};
use crate::value::Val;
use kubewright_schema::quantity;

/// Quantity in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

const NANO: i128 = 1_000_000_000;

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        quantity::nano_value(text).map(Self)
    }

    fn as_integer(self) -> Option<i64> {
        (self.0 % NANO == 0).then(|| i64::try_from(self.0 / NANO).ok()).flatten()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scale, suffix) in [(NANO, ""), (1_000_000, "m"), (1000, "u"), (1, "n")] {
            if self.0 % scale == 0 {
                return write!(f, "{}{suffix}", self.0 / scale);
            }
        }
        Ok(())
    }
}

/// Semantic version; build metadata is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
}

impl Semver {
    fn parse(text: &str, normalise: bool) -> Option<Self> {
        let text = if normalise { text.strip_prefix('v').unwrap_or(text) } else { text };
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let identifier =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let number = |part: &str| {
            let part = if normalise && part.len() > 1 { part.trim_start_matches('0') } else { part };
            let part = if part.is_empty() { "0" } else { part };
            let plain =
                part.bytes().all(|b| b.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
            part.parse::<u64>().ok().filter(|_| plain)
        };
        let mut parts: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
        if normalise {
            parts.resize(parts.len().max(3), 0);
        }
        let pre: Vec<String> = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
        let builds_ok = build.is_none_or(|build| build.split('.').all(identifier));
        let pre_ok = pre.iter().all(|part| {
            identifier(part)
                && !(part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()))
        });
        (builds_ok && pre_ok).then_some(Self { numbers: parts.try_into().ok()?, pre })
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_part = |(a, b): (&String, &String)| match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let first = self.pre.iter().zip(&other.pre).map(by_part).find(|order| order.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        })
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn ordered<'v>(function: &str, order: Ordering) -> Option<EvalResult<'v>> {
    Some(Ok(match function {
        "isLessThan" => Val::Bool(order.is_lt()),
        "isGreaterThan" => Val::Bool(order.is_gt()),
        "compareTo" => Val::Int(order as i64),
        _ => return None,
    }))
}

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    let sum = |sum: Option<i128>| {
        Some(sum.map_or_else(|| fail("quantity overflow"), |sum| Ok(Val::Quantity(Quantity(sum)))))
    };
    let normalise = matches!(args.get(1), Some(Val::Bool(true)));
    match (function, args) {
        ("isQuantity", [Val::String(text)]) => Some(Ok(Val::Bool(Quantity::parse(text).is_some()))),
        ("quantity", [Val::String(text)]) => Some(match Quantity::parse(text) {
            Some(quantity) => Ok(Val::Quantity(quantity)),
            None => fail(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        }),
        ("sign", [Val::Quantity(quantity)]) => Some(Ok(Val::Int(quantity.0.signum() as i64))),
        ("isInteger", [Val::Quantity(quantity)]) => Some(Ok(Val::Bool(quantity.as_integer().is_some()))),
        ("asInteger", [Val::Quantity(quantity)]) => Some(match quantity.as_integer() {
            Some(n) => Ok(Val::Int(n)),
            None => fail("cannot convert value to integer"),
        }),
        #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
        ("asApproximateFloat", [Val::Quantity(quantity)]) => {
            Some(Ok(Val::Double(quantity.0 as f64 / NANO as f64)))
        }
        ("add", [Val::Quantity(a), Val::Quantity(b)]) => sum(a.0.checked_add(b.0)),
        ("sub", [Val::Quantity(a), Val::Quantity(b)]) => sum(a.0.checked_sub(b.0)),
        ("add", [Val::Quantity(a), Val::Int(n)]) => sum(a.0.checked_add(i128::from(*n) * NANO)),
        ("sub", [Val::Quantity(a), Val::Int(n)]) => sum(a.0.checked_sub(i128::from(*n) * NANO)),
        (function, [Val::Quantity(a), Val::Quantity(b)]) => ordered(function, a.cmp(b)),
        ("isSemver", [Val::String(text), ..]) => {
            Some(Ok(Val::Bool(Semver::parse(text, normalise).is_some())))
        }
        ("semver", [Val::String(text), ..]) => Some(match Semver::parse(text, normalise) {
            Some(version) => Ok(Val::Semver(Arc::new(version))),
            None => fail("No Major.Minor.Patch elements found"),
        }),
        ("major" | "minor" | "patch", [Val::Semver(version)]) => {
            let at = ["major", "minor", "patch"].iter().position(|name| *name == function)?;
            Some(Ok(Val::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX))))
        }
        (function, [Val::Semver(a), Val::Semver(b)]) => ordered(function, a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_by_amount_regardless_of_suffix() {
        let q = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(q("1Ki"), q("1024"));
        assert_eq!(q("0.5"), q("500m"));
        assert_eq!(q("1e3"), q("1k"));
        assert!(q("-1") < q("1n"));
        assert_eq!(q("1.5").to_string(), "1500m");
        for bad in ["", "x", "1.2.3", "1Kx", "Ki", "1e"] {
            assert!(Quantity::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn versions_are_ordered_by_semver() {
        let v = |text: &str| Semver::parse(text, false).unwrap();
        assert!(v("1.0.0-alpha.1") < v("1.0.0-alpha.beta"));
        assert!(v("1.0.0-rc.1") < v("1.0.0"));
        assert_eq!(v("1.2.3+a").cmp(&v("1.2.3+b")), Ordering::Equal);
        assert!(Semver::parse("v1.2", false).is_none() && Semver::parse("01.2.3", false).is_none());
        assert_eq!(Semver::parse("v01.2", true), Some(v("1.2.0")));
    }
}
