//! Numbers that may be written as a percentage of something.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage that is no whole number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the next larger number.
    Up,
    /// To the next smaller number.
    Down,
}

/// The number, or the percentage of `total`. What is neither is zero; the server lets none of it in.
pub(crate) fn resolve(value: &IntOrString, total: i32, round: Round) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or(0);
            let product = percent.saturating_mul(total.into());
            let number = match round {
                Round::Up => product.saturating_add(99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            };
            i32::try_from(number).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_the_way_that_is_asked_for() {
        let quarter = IntOrString::String("25%".into());
        assert_eq!((resolve(&quarter, 2, Round::Up), resolve(&quarter, 2, Round::Down)), (1, 0));
        assert_eq!((resolve(&quarter, 8, Round::Up), resolve(&quarter, 8, Round::Down)), (2, 2));
        assert_eq!(resolve(&IntOrString::Int(3), 100, Round::Down), 3);
        assert_eq!(resolve(&IntOrString::String("many".into()), 100, Round::Up), 0);
    }
}
