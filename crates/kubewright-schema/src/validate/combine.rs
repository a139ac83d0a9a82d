//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{
    check::{Outcome, Path, check_unratcheted},
    compile::Rules,
};
use crate::go;

/// Checks a value against combined rules; the choice of reported errors follows kube-openapi.
pub(super) fn combine(rules: &Rules, value: &Value, old: Option<&Value>, path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let quoted = go::quote(&path.0);
    if !rules.any_of.is_empty() {
        let (mut best, mut success): (Option<Outcome>, Option<Outcome>) = (None, None);
        for rules in &rules.any_of {
            let result = check_unratcheted(rules, value, old, path);
            if result.is_valid() {
                success = Some(result);
                break;
            }
            keep_better(&mut best, result);
        }
        if success.is_none() {
            outcome.add_general(format!("{quoted} must validate at least one schema (anyOf)"));
        }
        if let Some(result) = success.or(best) {
            outcome.merge(result);
        }
    }
    if !rules.one_of.is_empty() {
        let (mut best, mut success): (Option<Outcome>, Option<Outcome>) = (None, None);
        let mut valid = 0;
        for rules in &rules.one_of {
            let result = check_unratcheted(rules, value, old, path);
            if result.is_valid() {
                valid += 1;
                best = None;
                success.get_or_insert(result);
            } else if valid == 0 {
                keep_better(&mut best, result);
            }
        }
        if valid == 1 {
            outcome.merge(success.unwrap_or_default());
        } else {
            let found = if valid == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {valid} valid alternatives")
            };
            outcome.add_general(format!("{quoted} must validate one and only one schema (oneOf). {found}"));
            outcome.merge(best.unwrap_or_default());
        }
    }
    if !rules.all_of.is_empty() {
        let mut valid = 0;
        for rules in &rules.all_of {
            let result = check_unratcheted(rules, value, old, path);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid < rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add_general(format!("{quoted} must validate all the schemas (allOf){none}"));
        }
    }
    if let Some(not) = &rules.not
        && check_unratcheted(not, value, old, path).is_valid()
    {
        outcome.add_general(format!("{quoted} must not validate the schema (not)"));
    }
    outcome.passed += 1;
    outcome
}

/// Keeps the failure that passed the most checks.
fn keep_better(best: &mut Option<Outcome>, result: Outcome) {
    if best.as_ref().is_none_or(|best| result.passed > best.passed) {
        *best = Some(result);
    }
}
