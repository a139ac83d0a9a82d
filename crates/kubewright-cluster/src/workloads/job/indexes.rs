//! Sets of completion indexes, as statuses write them: `1,3-5,7`.

use std::{collections::BTreeSet, fmt};

use k8s_openapi::api::batch::v1::SuccessPolicy;

/// A set of indexes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indexes(BTreeSet<i32>);

impl Indexes {
    /// Reads a list, as far as it makes sense and is below the number of completions.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut found = BTreeSet::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else { break };
            found.extend((first.max(0)..=last).take_while(|index| *index < completions));
        }
        Self(found)
    }

    pub(super) fn contains(&self, index: i32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn total(&self) -> i32 {
        i32::try_from(self.0.len()).unwrap_or(i32::MAX)
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = i32>) {
        self.0.extend(more);
    }

    /// Which rule of a success policy these indexes meet, in words.
    pub(super) fn meets(&self, policy: Option<&SuccessPolicy>, completions: i32) -> Option<String> {
        let met = policy?.rules.iter().position(|rule| {
            let wanted = rule.succeeded_indexes.as_deref().map(|text| Self::parse(text, completions));
            match (wanted, rule.succeeded_count) {
                (Some(wanted), None) => wanted.0.is_subset(&self.0),
                (Some(wanted), Some(count)) => super::objects::count(wanted.0.intersection(&self.0)) >= count,
                (None, Some(count)) => self.total() >= count,
                (None, None) => false,
            }
        })?;
        Some(format!("Matched rules at index {met}"))
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|next| *next == last + 1) {
                last = next;
            }
            // Two neighbours are written one by one, three and more as a range.
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                1 => write!(f, "{separator}{first},{last}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_are_written_for_three_and_more() {
        let mut indexes = Indexes::default();
        indexes.extend([1, 3, 4, 5, 7, 8]);
        assert_eq!(indexes.to_string(), "1,3-5,7,8");
        assert_eq!(Indexes::parse("0-2,5,nonsense,6", 6), Indexes::parse("0,1,2,5", 10));
    }

    #[test]
    fn a_success_policy_is_met_by_indexes_or_by_number() {
        let policy: SuccessPolicy = serde_json::from_value(
            json!({"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}, {"succeededCount": 4}]}),
        )
        .unwrap();
        let meets = |text| Indexes::parse(text, 10).meets(Some(&policy), 10);
        assert_eq!(meets("0,1"), None);
        assert_eq!(meets("0,3").as_deref(), Some("Matched rules at index 0"));
        assert_eq!(meets("1,4,5,6").as_deref(), Some("Matched rules at index 1"));
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(set in proptest::collection::btree_set(0..200i32, 0..50)) {
            let indexes = Indexes(set);
            prop_assert_eq!(Indexes::parse(&indexes.to_string(), 200), indexes);
        }
    }
}
