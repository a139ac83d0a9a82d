//! Label selectors of specs, matched against labels.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whether the selector chooses nothing in particular, and so everything.
pub(crate) fn is_everything(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// Whether labels match.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    matches_by(selector, |key| labels.and_then(|labels| labels.get(key)).map(String::as_str))
}

/// The same with a function that looks labels up. An operator that nobody knows matches nothing.
pub(crate) fn matches_by<'a>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|term| {
            let value = label(&term.key);
            let listed =
                || value.is_some_and(|value| term.values.iter().flatten().any(|known| known == value));
            match term.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn term(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values),
            }]),
            match_labels: None,
        }
    }

    #[test]
    fn expressions_and_labels_must_all_hold() {
        let app = labels(&[("app", "web"), ("tier", "front")]);
        let by_label =
            LabelSelector { match_labels: Some(labels(&[("app", "web")])), match_expressions: None };
        assert!(matches(&by_label, Some(&app)) && !matches(&by_label, None));
        assert!(matches(&term("tier", "In", &["back", "front"]), Some(&app)));
        assert!(matches(&term("absent", "NotIn", &["x"]), Some(&app)), "what is not there is in no list");
        assert!(matches(&term("tier", "Exists", &[]), Some(&app)));
        assert!(!matches(&term("tier", "DoesNotExist", &[]), Some(&app)));
        assert!(!matches(&term("tier", "Near", &[]), Some(&app)), "an unknown operator matches nothing");
        assert!(is_everything(&LabelSelector::default()) && matches(&LabelSelector::default(), None));
    }
}
